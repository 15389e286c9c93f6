"""GitHub-shaped answers computed from the bare repositories below a root.

Shapes follow GitHub's REST description (`@octokit/openapi`); addresses are those of the public name
`https://forge.invalid`, never of the server.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from repository import ISOLATED, PULLS, git

SITE, API = "https://forge.invalid", "https://forge.invalid/api/v3"
CREATED = "2026-09-01T00:00:00Z"
NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
Json = Any


class Answer(NamedTuple):
    """Status and JSON body of one answer."""

    status: int
    body: Json


NOT_FOUND = Answer(404, {"message": "Not Found", "documentation_url": SITE + "/docs", "status": "404"})


def answer(root: Path, target: str) -> Answer:
    """Answer `GET target` (path and query below /api/v3)."""
    parts = urlsplit(target)
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    path = unquote(parts.path).rstrip("/")
    if path == "/rate_limit":
        return Answer(200, {"rate": {"limit": 5000, "remaining": 5000, "reset": 0, "used": 0}})
    found = re.fullmatch(rf"/repos/({NAME})/({NAME})(/.*)?", path)
    place = root / found[1] / f"{found[2]}.git" if found else None
    if found is None or place is None or not (place / PULLS).is_file():
        return NOT_FOUND
    return Repository(place).answer(found[3] or "", query)


class Repository:
    """One repository of the forge: what its refs say now, and what its pull requests say."""

    def __init__(self, place: Path) -> None:
        self.place = place
        stored = json.loads((place / PULLS).read_text(encoding="utf-8"))
        self.about, self.pulls = stored["repository"], stored["pulls"]
        self.full_name = f"{self.about['owner']}/{self.about['name']}"

    def answer(self, rest: str, query: dict[str, str]) -> Answer:
        """Answer for the path below /repos/{owner}/{repo}."""
        if rest == "/pulls":
            return Answer(200, self.listed(query))
        for pattern, answers in self.routes.items():
            if found := re.fullmatch(pattern, rest):
                return answers(found[1])
        return NOT_FOUND

    @property
    def routes(self) -> dict[str, Callable[[str], Answer]]:
        """Path patterns; their one group goes to the method that answers."""
        return {
            r"()": lambda _: Answer(200, self.repository()),
            r"/pulls/(\d+)": self.pull_request,
            r"/pulls/(\d+)/commits": self.commits_of,
            r"/git/refs?/(.+)": lambda name: self.ref("refs/" + name),
            r"/branches/(.+)": self.branch,
            r"/commits/([0-9a-f]{40})": self.commit,
        }

    def commit_at(self, ref: str) -> str | None:
        """Commit of a full ref name or of a 40-digit id; None where there is none."""
        try:
            return git(self.place, "rev-parse", "--verify", "--quiet", "--end-of-options", ref + "^{commit}")
        except subprocess.CalledProcessError:
            return None

    def user(self, login: str, kind: str = "User") -> Json:
        """A user or organization."""
        number = sum(ord(letter) << (index % 3 * 8) for index, letter in enumerate(login))
        return {
            "login": login,
            "id": number,
            "type": kind,
            "html_url": f"{SITE}/{login}",
            "site_admin": False,
        }

    def repository(self) -> Json:
        """`GET /repos/{owner}/{repo}`."""
        page, api = f"{SITE}/{self.full_name}", f"{API}/repos/{self.full_name}"
        return {
            "id": self.about["id"], "name": self.about["name"], "full_name": self.full_name, "private": False,
            "owner": self.user(self.about["owner"], "Organization"), "html_url": page, "url": api,
            "git_url": page + ".git", "clone_url": page + ".git", "default_branch": self.about["trunk"],
            "fork": False, "archived": False, "disabled": False, "visibility": "public",
            "created_at": CREATED, "updated_at": CREATED, "pushed_at": CREATED,
        }  # fmt: skip

    def listed(self, query: dict[str, str]) -> list[Json]:
        """`GET …/pulls`: open ones by default; one page holds them all."""
        if query.get("page", "1") != "1":
            return []
        wanted, base = query.get("state", "open"), query.get("base")
        rows = [self.row(pull) for pull in self.pulls]
        return [r for r in rows if wanted in {"all", r["state"]} and base in {None, r["base"]["ref"]}]

    def side(self, ref: str, commit: str | None) -> Json:
        """`head` or `base` of a pull request."""
        owner = self.about["owner"]
        user = self.user(owner, "Organization")
        return {"label": f"{owner}:{ref}", "ref": ref, "sha": commit, "user": user, "repo": self.repository()}

    def row(self, pull: Json) -> Json:
        """A pull request as lists show it."""
        number, api = pull["number"], f"{API}/repos/{self.full_name}"
        page = f"{SITE}/{self.full_name}/pull/{number}"
        base = self.about["trunk"]
        return {
            "url": f"{api}/pulls/{number}", "id": self.about["id"] * 1000 + number, "html_url": page,
            "diff_url": page + ".diff", "patch_url": page + ".patch", "issue_url": f"{api}/issues/{number}",
            "number": number, "state": pull.get("state", "open"), "locked": False, "title": pull["title"],
            "user": self.user(pull["user"]), "body": pull["body"], "created_at": CREATED,
            "updated_at": CREATED, "closed_at": None, "merged_at": None, "assignee": None, "assignees": [],
            "labels": [],
            "requested_reviewers": [], "requested_teams": [], "milestone": None, "auto_merge": None,
            "merge_commit_sha": self.commit_at(f"refs/pull/{number}/merge"),
            "draft": pull.get("draft", False), "author_association": "CONTRIBUTOR",
            "active_lock_reason": None, "commits_url": f"{api}/pulls/{number}/commits",
            "statuses_url": f"{api}/statuses",
            "head": self.side(pull["branch"], self.commit_at(f"refs/pull/{number}/head")),
            "base": self.side(base, self.commit_at(f"refs/heads/{base}")),
        }  # fmt: skip

    def pull_request(self, name: str) -> Answer:
        """`GET …/pulls/{number}`, with the test merge really made."""
        pull = next((one for one in self.pulls if str(one["number"]) == name), None)
        if pull is None:
            return NOT_FOUND
        row = self.row(pull)
        clean = self.merges(row["base"]["sha"], row["head"]["sha"])
        paths = self.changed(row["base"]["sha"], row["head"]["sha"])
        row.update(
            merged=False, merged_by=None, mergeable=clean, rebaseable=clean,
            mergeable_state={True: "clean", False: "dirty", None: "unknown"}[clean], comments=0,
            review_comments=0, maintainer_can_modify=True, commits=len(self.between(name)),
            changed_files=len(paths), additions=sum(p[0] for p in paths), deletions=sum(p[1] for p in paths),
        )  # fmt: skip
        return Answer(200, row)

    def merges(self, base: str | None, head: str | None) -> bool | None:
        """Whether base and head merge; None where git gives no verdict."""
        if base is None or head is None:
            return None
        command = [
            "git",
            f"--git-dir={self.place}",
            "merge-tree",
            "--write-tree",
            "--no-messages",
            base,
            head,
        ]
        done = subprocess.run(command, capture_output=True, env=ISOLATED, check=False)
        return {0: True, 1: False}.get(done.returncode)

    def changed(self, base: str | None, head: str | None) -> list[tuple[int, int]]:
        """Added and deleted lines of each file between merge base and head; binary files count as zero."""
        if base is None or head is None:
            return []
        lines = git(self.place, "diff", "--numstat", "--no-renames", f"{base}...{head}").splitlines()
        return [
            (int("0" + a.strip("-")), int("0" + d.strip("-"))) for a, d, _ in (x.split("\t") for x in lines)
        ]

    def between(self, number: str) -> list[str]:
        """The commits of a pull request, oldest first."""
        trunk = self.about["trunk"]
        span = f"refs/heads/{trunk}..refs/pull/{number}/head"
        return git(self.place, "rev-list", "--reverse", span).split()

    def commits_of(self, number: str) -> Answer:
        """`GET …/pulls/{number}/commits`."""
        if all(str(pull["number"]) != number for pull in self.pulls):
            return NOT_FOUND
        return Answer(200, [self.commit(commit).body for commit in self.between(number)])

    def ref(self, name: str) -> Answer:
        """`GET …/git/ref/{ref}`."""
        commit = self.commit_at(name)
        if commit is None:
            return NOT_FOUND
        url = f"{API}/repos/{self.full_name}/git"
        target = {"type": "commit", "sha": commit, "url": f"{url}/commits/{commit}"}
        return Answer(200, {"ref": name, "url": f"{url}/{name}", "object": target})

    def branch(self, name: str) -> Answer:
        """`GET …/branches/{branch}`."""
        commit = self.commit_at("refs/heads/" + name)
        if commit is None:
            return NOT_FOUND
        return Answer(200, {"name": name, "commit": self.commit(commit).body, "protected": False})

    def commit(self, commit: str) -> Answer:
        """`GET …/commits/{sha}`."""
        if self.commit_at(commit) is None:
            return NOT_FOUND
        form = "%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B"
        shown = git(self.place, "show", "-s", f"--format={form}", "--end-of-options", commit).split("\0")
        tree, parents, *people, message = shown
        author, committer = (
            dict(zip(("name", "email", "date"), p, strict=True)) for p in (people[:3], people[3:])
        )
        body = {"author": author, "committer": committer, "message": message, "tree": {"sha": tree}}
        url = f"{API}/repos/{self.full_name}/commits/{commit}"
        ancestors = [{"sha": parent} for parent in parents.split()]
        return Answer(200, {"sha": commit, "url": url, "commit": body, "parents": ancestors})
