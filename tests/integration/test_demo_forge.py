"""`scripts/demo-forge` for real, on the mini set: same commits everywhere, git and GitHub answers over HTTP."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "scripts" / "demo-forge"


def demo_forge(
    command: str, root: Path, *, umask: int = 0o022, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run the script on the mini set with an environment of our own: no user's git configuration."""
    base = {"PATH": os.environ["PATH"], "HOME": str(root.parent), **env}
    argv = [sys.executable, str(SCRIPT), command, "--root", str(root), "--set", "mini"]
    return subprocess.run(
        argv, env=base, umask=umask, capture_output=True, text=True, timeout=60, check=False
    )


class Forge:
    """A running forge."""

    def __init__(self, root: Path) -> None:
        done = demo_forge("up", root)
        assert done.returncode == 0, done.stderr
        self.root, self.map_file = root, Path(done.stdout.strip())
        self.address = json.loads(self.map_file.read_text())["https://forge.invalid"]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.address}/api/v3{path}", timeout=10) as answer:
            return json.load(answer)

    def status(self) -> Any:
        return json.loads(demo_forge("status", self.root).stdout)


@pytest.fixture(scope="module")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forge]:
    root = tmp_path_factory.mktemp("forge") / "root"
    forge = Forge(root)
    yield forge
    assert demo_forge("down", root).returncode == 0


def git(*args: str, **env: str) -> str:
    base = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **env}
    done = subprocess.run(["git", *args], env=base, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_commits_do_not_depend_on_folder_time_zone_umask_or_git_configuration(
    forge: Forge, tmp_path: Path
) -> None:
    (tmp_path / ".gitconfig").write_text(
        "[user]\nname=x\nemail=y\n[core]\nautocrlf=true\n[commit]\ngpgsign=true\n"
    )
    other = tmp_path / "another place"
    try:
        done = demo_forge(
            "up", other, umask=0o077, TZ="Asia/Tokyo", LANG="de_DE.UTF-8", GIT_AUTHOR_DATE="0 +0900"
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(demo_forge("status", other).stdout)["pins"] == forge.status()["pins"]
    finally:
        demo_forge("down", other)


def test_the_mini_recipe_pins_these_commits(forge: Forge) -> None:
    text = (REPOSITORY / "images" / "recipes" / "mini.yaml").read_text()
    pinned = re.findall(r"\b(?:base|head): ([0-9a-f]{40})", text)
    wanted = [pins[side] for pins in forge.status()["pins"].values() for side in ("base", "head")]
    assert sorted(pinned) == sorted(wanted)


def test_a_second_up_makes_nothing_and_keeps_the_server(forge: Forge) -> None:
    before = forge.status()
    stamp = forge.root / "demo" / "alpha.git" / "demo-stamp.json"
    made = stamp.stat().st_mtime_ns
    again = Forge(forge.root)
    assert (again.address, again.status()) == (forge.address, before)
    assert stamp.stat().st_mtime_ns == made


@pytest.mark.parametrize("name", ["alpha", "beta", "gamma"])
def test_clone_and_fetch_of_the_pull_request_over_smart_http(forge: Forge, name: str, tmp_path: Path) -> None:
    pins = forge.status()["pins"][f"mini-{name}"]
    git("clone", "--quiet", f"{forge.address}/demo/{name}.git", str(tmp_path / "clone"))
    assert git("-C", str(tmp_path / "clone"), "rev-parse", "HEAD").strip() == pins["base"]
    git("-C", str(tmp_path / "clone"), "fetch", "--quiet", "origin", "refs/pull/1/head")
    assert git("-C", str(tmp_path / "clone"), "rev-parse", "FETCH_HEAD").strip() == pins["head"]
    changed = git("-C", str(tmp_path / "clone"), "diff", "--name-only", "HEAD", "FETCH_HEAD")
    assert {Path(line).suffix for line in changed.splitlines()} >= {".c", ".py"}


def test_fetch_of_a_commit_and_without_blobs(forge: Forge, tmp_path: Path) -> None:
    head = forge.status()["pins"]["mini-alpha"]["head"]
    git("init", "--quiet", "--bare", str(tmp_path / "mirror"))
    where = ("-C", str(tmp_path / "mirror"))
    git(*where, "fetch", "--quiet", "--filter=blob:none", f"{forge.address}/demo/alpha", head)
    assert git(*where, "rev-parse", "FETCH_HEAD").strip() == head


def test_the_pull_request_as_github_shows_it(forge: Forge) -> None:
    pins = forge.status()["pins"]["mini-beta"]
    pull = forge.get("/repos/demo/beta/pulls/1")
    assert (pull["base"]["sha"], pull["head"]["sha"]) == (pins["base"], pins["head"])
    assert (pull["state"], pull["draft"], pull["merged"], pull["mergeable"]) == ("open", False, False, True)
    assert pull["base"]["repo"]["id"] == forge.get("/repos/demo/beta")["id"]
    assert [row["number"] for row in forge.get("/repos/demo/beta/pulls?state=open&per_page=100")] == [1]
    assert forge.get("/repos/demo/beta/git/ref/heads/main")["object"]["sha"] == pins["base"]
    assert forge.address not in json.dumps(pull)


def test_mergeable_is_computed_from_the_repository(forge: Forge, tmp_path: Path) -> None:
    """A trunk that moved on and changed the same lines: the answer changes with it."""
    bare = forge.root / "demo" / "gamma.git"
    work = tmp_path / "work"
    git("clone", "--quiet", str(bare), str(work))
    code = work / "src" / "tic_mini_gamma" / "_mask.c"
    code.write_text(code.read_text().replace("valid += mask[i];", "valid += mask[i] > 0;"))
    people = ("-c", "user.name=n", "-c", "user.email=e@forge.invalid")
    before = git("-C", str(bare), "rev-parse", "main").strip()
    try:
        git("-C", str(work), *people, "commit", "--quiet", "-am", "move")
        git("-C", str(work), "push", "--quiet", str(bare), "main")
        pull = forge.get("/repos/demo/gamma/pulls/1")
        assert (pull["mergeable"], pull["mergeable_state"]) == (False, "dirty")
    finally:
        git("-C", str(bare), "update-ref", "refs/heads/main", before)


@pytest.mark.parametrize(
    "path", ["/repos/demo/none", "/repos/demo/alpha/pulls/2", "/repos/../demo/alpha", "/x"]
)
def test_what_is_not_there_is_404(forge: Forge, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        forge.get(path)


def test_nothing_can_be_pushed(forge: Forge, tmp_path: Path) -> None:
    git("clone", "--quiet", f"{forge.address}/demo/alpha.git", str(tmp_path / "clone"))
    argv = ["git", "-C", str(tmp_path / "clone"), "push", "origin", "HEAD:refs/heads/new"]
    done = subprocess.run(argv, capture_output=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "refs/heads/new" not in git("-C", str(forge.root / "demo" / "alpha.git"), "show-ref")


def test_down_ends_only_its_own_server_and_a_killed_one_is_started_again(tmp_path: Path) -> None:
    root = tmp_path / "root"
    forge = Forge(root)
    pid = forge.status()["server"]["pid"]
    os.kill(pid, signal.SIGKILL)
    assert demo_forge("status", root).returncode == 3
    state = json.loads((root / "server.json").read_text())
    (root / "server.json").write_text(json.dumps({**state, "pid": os.getpid()}))
    assert demo_forge("down", root).returncode == 0  # our own pid, another start time: left alone
    again = Forge(root)
    assert again.get("/repos/demo/alpha")["full_name"] == "demo/alpha"
    assert demo_forge("down", root).returncode == 0
    assert demo_forge("status", root).returncode == 3
