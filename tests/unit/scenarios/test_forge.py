"""The local forge against GitHub's own description of its interface, over repositories made by real git."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import requests
from scenarios.forge import Forge
from scenarios.httpd import Server
from scenarios.script import Script

REPOSITORY = Path(__file__).resolve().parents[3]

# Required fields, from `components.schemas` of @octokit/openapi 23.0.2 (api.github.com).
USER = "avatar_url events_url followers_url following_url gists_url gravatar_id html_url id node_id login organizations_url received_events_url repos_url site_admin starred_url subscriptions_url type url"
REPO = "archive_url assignees_url blobs_url branches_url collaborators_url comments_url commits_url compare_url contents_url contributors_url deployments_url description downloads_url events_url fork forks_url full_name git_commits_url git_refs_url git_tags_url hooks_url html_url id node_id issue_comment_url issue_events_url issues_url keys_url labels_url languages_url merges_url milestones_url name notifications_url owner private pulls_url releases_url stargazers_url statuses_url subscribers_url subscription_url tags_url teams_url trees_url url clone_url default_branch forks forks_count git_url has_downloads has_issues has_projects has_wiki has_pages homepage language archived disabled mirror_url open_issues open_issues_count license pushed_at size ssh_url stargazers_count svn_url watchers watchers_count created_at updated_at"
FULL = REPO + " has_discussions network_count subscribers_count"
SIMPLE = "_links assignee labels base body closed_at comments_url commits_url created_at diff_url head html_url id node_id issue_url merge_commit_sha merged_at milestone number patch_url review_comment_url review_comments_url statuses_url state locked title updated_at url user author_association auto_merge"
PULL = (
    SIMPLE
    + " additions changed_files comments commits deletions mergeable mergeable_state merged maintainer_can_modify merged_by review_comments"
)
SHAPES: list[tuple[str, str, str]] = [
    ("/repos/o/r", "", FULL),
    ("/repos/o/r", "owner", USER),
    ("/repositories/1001", "", FULL),
    ("/repos/o/r/pulls", "0", SIMPLE),
    ("/repos/o/r/pulls", "0.base", "label ref repo sha user"),
    ("/repos/o/r/pulls/7", "", PULL),
    ("/repos/o/r/pulls/7", "head", "label ref repo sha user"),
    ("/repos/o/r/pulls/7", "head.repo", REPO),
    ("/repos/o/r/pulls/7", "user", USER),
    ("/repos/o/r/pulls/7", "_links", "comments commits statuses html issue review_comments review_comment self"),
    ("/repos/o/r/pulls/7", "_links.self", "href"),
    ("/repos/o/r/pulls/7/commits", "0", "url sha node_id html_url comments_url commit author committer parents"),
    ("/repos/o/r/pulls/7/commits", "0.commit", "author committer comment_count message tree url"),
    ("/repos/o/r/pulls/7/files", "0", "additions blob_url changes contents_url deletions filename raw_url sha status"),
    ("/repos/o/r/branches", "0", "name commit protected"),
    ("/repos/o/r/branches/main", "", "name commit _links protection protected protection_url"),
    ("/repos/o/r/git/ref/heads/main", "", "ref node_id url object"),
    ("/repos/o/r/git/ref/heads/main", "object", "type sha url"),
    ("/repos/o/r/git/matching-refs/heads/", "0", "ref node_id url object"),
    ("/repos/o/r/commits/main", "", "url sha node_id html_url comments_url commit author committer parents"),
    ("/repos/o/r/compare/main...feat", "", "url html_url permalink_url diff_url patch_url base_commit merge_base_commit status ahead_by behind_by total_commits commits"),
    ("/rate_limit", "", "rate resources"),
    ("/rate_limit", "rate", "limit remaining reset used"),
    ("/repos/o/none", "", "message documentation_url status"),
]  # fmt: skip


def _library() -> ModuleType:
    path = REPOSITORY / "tests" / "scenarios" / "lib" / "topology.py"
    spec = importlib.util.spec_from_file_location("topology", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["topology"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    world = _library().Topology(folder)
    repo = world.repo("o/r", old_names=["o/before"])
    repo.commit("feat", {"new.txt": "new\n"})
    repo.commit("clash", {"a.txt": "clash\n"})
    repo.commit("release/1.2", {"release.txt": "1.2\n"})
    fork = world.fork(repo, "alice/r")
    fork.commit("fix", {"fix.txt": "fix\n"})
    repo.commit("main", {"a.txt": "main\n"})
    repo.pull(5, "fix", head_repo="alice/r", draft=True)
    repo.pull(6, "clash", body="text")
    repo.pull(7, "feat")
    repo.pull(8, "feat", state="closed")
    repo.pull(9, "feat", merged=True, head_repo=None)
    world.recipe(vllm=repo.pin(7))
    return folder


@pytest.fixture
def forge(work: Path) -> Iterator[tuple[Forge, Server]]:
    forge = Forge(work)
    server = Server(forge.answer)
    yield forge, server
    server.close()


def _get(server: Server, path: str, **headers: str) -> requests.Response:
    return requests.get(server.url + path, headers=headers, timeout=20, allow_redirects=False)


@pytest.mark.parametrize(("path", "inside", "required"), SHAPES)
def test_every_required_field_is_there(
    path: str, inside: str, required: str, forge: tuple[Forge, Server]
) -> None:
    value: Any = _get(forge[1], path).json()
    for part in inside.split(".") if inside else []:
        value = value[int(part)] if part.isdigit() else value[part]
    assert sorted(set(required.split()) - set(value)) == []


def test_a_listing_row_has_no_merge_state(forge: tuple[Forge, Server]) -> None:
    rows = _get(forge[1], "/repos/o/r/pulls").json()
    assert [row["number"] for row in rows] == [7, 6, 5]
    assert not any("mergeable" in row for row in rows)


STATES = [(5, True, "draft", "open"), (6, False, "dirty", "open"), (7, True, "clean", "open"),
          (8, None, "unknown", "closed"), (9, None, "unknown", "closed")]  # fmt: skip


@pytest.mark.parametrize(("number", "mergeable", "merge_state", "state"), STATES)
def test_the_merge_state_is_that_of_git(
    number: int, mergeable: bool | None, merge_state: str, state: str, forge: tuple[Forge, Server]
) -> None:
    pull = _get(forge[1], f"/repos/o/r/pulls/{number}").json()
    assert (pull["mergeable"], pull["mergeable_state"], pull["state"]) == (mergeable, merge_state, state)


def test_a_fork_and_a_deleted_fork(forge: tuple[Forge, Server]) -> None:
    fork = _get(forge[1], "/repos/o/r/pulls/5").json()["head"]
    assert (fork["label"], fork["repo"]["full_name"], fork["repo"]["fork"]) == ("alice:fix", "alice/r", True)
    assert _get(forge[1], "/repos/o/r/pulls/9").json()["head"]["repo"] is None


LISTS = [
    ("?state=all", [9, 8, 7, 6, 5]),
    ("?state=closed", [9, 8]),
    ("?head=o:feat", [7]),
    ("?base=main&direction=asc", [5, 6, 7]),
    ("?base=release/1.2", []),
]


@pytest.mark.parametrize(("query", "numbers"), LISTS)
def test_listings_are_filtered(query: str, numbers: list[int], forge: tuple[Forge, Server]) -> None:
    assert [row["number"] for row in _get(forge[1], f"/repos/o/r/pulls{query}").json()] == numbers


@pytest.mark.parametrize("prefix", ["", "/api/v3"])
def test_pages_are_linked_by_number_and_keep_the_prefix(prefix: str, forge: tuple[Forge, Server]) -> None:
    server, seen = forge[1], []
    url = f"{server.url}{prefix}/repos/o/r/pulls?per_page=2"
    while url:
        answer = requests.get(url, timeout=20)
        seen += [row["number"] for row in answer.json()]
        url = answer.links.get("next", {}).get("url", "")
        assert not url or url.startswith(f"{server.url}{prefix}/repositories/1001/pulls?")
    assert seen == [7, 6, 5]


STATUS = [
    ("/repos/o/before/pulls/7", 301),
    ("/repos/o/r/branches/release%2F1.2", 200),
    ("/repos/o/r/branches/release/1.2", 404),
    ("/repos/o/r/git/ref/heads/release/1.2", 200),
    ("/repos/o/r/git/ref/heads/gone", 404),
    ("/repos/o/r/pulls/99", 404),
    ("/repos/x/r", 404),
    ("/repositories/77", 404),
    ("/repos/o/r/commits/0000000000000000000000000000000000000000", 422),
    ("/nothing", 404),
]


@pytest.mark.parametrize(("path", "status"), STATUS)
def test_status(path: str, status: int, forge: tuple[Forge, Server]) -> None:
    assert _get(forge[1], path).status_code == status


def test_a_rename_redirects_by_number(forge: tuple[Forge, Server]) -> None:
    answer = _get(forge[1], "/repos/o/before/pulls?state=all")
    assert answer.headers["Location"] == f"{forge[1].url}/repositories/1001/pulls?state=all"


def test_an_entity_tag_that_still_holds_is_304(forge: tuple[Forge, Server]) -> None:
    first = _get(forge[1], "/repos/o/r/pulls")
    again = _get(forge[1], "/repos/o/r/pulls", **{"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_interface_is_read_only(forge: tuple[Forge, Server]) -> None:
    assert requests.post(f"{forge[1].url}/repos/o/r/pulls", json={}, timeout=20).status_code == 403


def _scripted(forge: Forge, **answers: Any) -> None:
    forge.use(Script({f"GET /repos/o/r/pulls/{key.lstrip('p')}": value for key, value in answers.items()}))


def test_a_listing_follows_what_is_scripted(forge: tuple[Forge, Server]) -> None:
    _scripted(forge[0], p7=[{"body": {"number": 7, "draft": True}}])
    rows = {row["number"]: row["draft"] for row in _get(forge[1], "/repos/o/r/pulls").json()}
    assert rows == {7: True, 6: False, 5: True}


def test_a_script_by_name_holds_for_the_number_and_the_prefix(forge: tuple[Forge, Server]) -> None:
    _scripted(forge[0], p7=[{"body": {"number": 70}}])
    for path in ("/repositories/1001/pulls/7", "/api/v3/repos/o/r/pulls/7"):
        assert _get(forge[1], path).json() == {"number": 70}


TOLD_IDS: list[tuple[str, Any]] = [
    ("/repos/some/plain/pulls/1", {"base": {"repo": {"id": 42, "full_name": "some/plain"}}}),
    ("/repos/some/plain/pulls/1", {"base": {"repo": {"id": 42}}}),
    ("/repos/some/plain/pulls", [{"base": {"repo": {"id": 42}}}]),
    ("/repos/some/plain", {"id": 42, "full_name": "some/plain"}),
]


@pytest.mark.parametrize(("path", "body"), TOLD_IDS)
def test_numbers_of_repositories_are_those_of_the_script(path: str, body: Any, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "plain.git")], check=True)
    server = Server(Forge(tmp_path, script=Script({f"GET {path}": [{"body": body}]})).answer)
    try:
        assert _get(server, "/repos/some/plain").json()["id"] == 42
        assert _get(server, "/repositories/42").json()["full_name"] == "some/plain"
    finally:
        server.close()


def test_pull_requests_without_any_facts_come_from_refs(work: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "-b", "trunk", str(plain)], check=True)
    subprocess.run(
        ["git", "-C", str(plain), "fetch", "-q", str(work / "r.git"), "+refs/*:refs/*"], check=True
    )
    server = Server(Forge(tmp_path).answer)
    try:
        pull = _get(server, "/repos/any/plain/pulls/7").json()
        numbers = [row["number"] for row in _get(server, "/repos/any/plain/pulls").json()]
    finally:
        server.close()
    assert (pull["base"]["ref"], pull["head"]["ref"], pull["mergeable"]) == ("main", "feat", True)
    assert numbers == [9, 8, 7, 6, 5]


NULLS = [
    ([], [None, None, True, True]),
    ([{"body": {"mergeable": False}}], [None, None, False, False]),
    ([{"body": {"mergeable": None}}, {"body": {"mergeable": True}}], [None, None, None, True]),
    ([{"status": 403, "body": {}}], ["none", "none", "none", "none"]),
]


@pytest.mark.parametrize(("script", "wanted"), NULLS)
def test_mergeable_null_twice_then_final(script: list[Any], wanted: list[Any], work: Path) -> None:
    forge = Forge(work, nulls=True)
    if script:
        _scripted(forge, p7=script)
    server = Server(forge.answer)
    try:
        seen = [_get(server, "/repos/o/r/pulls/7").json().get("mergeable", "none") for _ in wanted]
    finally:
        server.close()
    assert seen == wanted


def test_faults_on_what_is_not_scripted(forge: tuple[Forge, Server]) -> None:
    forge[0].use(Script({"GET /repos/o/r": [{"truncate": 10}, {"reset": True}, {"headers": {"X-A": "b"}}]}))
    with pytest.raises(requests.exceptions.RequestException):
        _get(forge[1], "/repos/o/r")
    with pytest.raises(requests.exceptions.ConnectionError):
        _get(forge[1], "/repos/o/r")
    last = _get(forge[1], "/repos/o/r")
    assert (last.headers["X-A"], last.json()["full_name"]) == ("b", "o/r")


GIT_NAMES = ["r.git", "o/r.git", "o/r", "o/before.git", "alice/r.git"]


@pytest.mark.parametrize("name", GIT_NAMES)
def test_git_is_served_at_the_same_address(name: str, forge: tuple[Forge, Server]) -> None:
    out = subprocess.run(
        ["git", "ls-remote", f"{forge[1].url}/{name}", "refs/heads/*"], check=True, capture_output=True
    )
    assert (b"refs/heads/fix" in out.stdout) is name.startswith("alice")


def test_git_serves_partial_clones_and_objects_by_name_and_takes_no_push(
    forge: tuple[Forge, Server], tmp_path: Path
) -> None:
    url, git = f"{forge[1].url}/o/r.git", ["git", "-C", str(tmp_path / "clone")]
    subprocess.run(
        ["git", "clone", "-q", "--bare", "--filter=tree:0", url, str(tmp_path / "clone")], check=True
    )
    head = _get(forge[1], "/repos/o/r/pulls/7").json()["head"]["sha"]
    subprocess.run([*git, "fetch", "-q", url, head], check=True)
    pushed = subprocess.run(
        [*git, "push", "-q", url, "main:refs/heads/mine"], check=False, capture_output=True
    )
    assert pushed.returncode != 0


def test_no_path_leaves_the_work_folder(forge: tuple[Forge, Server]) -> None:
    for path in (
        "/../r.git/info/refs?service=git-upload-pack",
        "/%2e%2e/r.git/info/refs?service=git-upload-pack",
    ):
        answer = requests.Request("GET", forge[1].url).prepare()
        answer.url = forge[1].url + path
        assert requests.Session().send(answer, timeout=20).status_code in (200, 404)
    assert json.loads((forge[0].work / "r.git" / "pulls.json").read_text())["id"] == 1001
