"""A private repository and a person who is logged in: each store is asked once, and the secret stays nowhere.

A fake `gh` and a fake credential helper on a real git, a forge that answers nobody without a token, and a git
server with a password.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.adapters.git_run import GitRunner
from tic_manifest.adapters.user_login import UserLogin

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from scenarios import githttp  # noqa: E402
from scenarios.forge import Forge  # noqa: E402
from scenarios.httpd import Request, Server  # noqa: E402
from scenarios.reply import Reply, json_reply  # noqa: E402

GIT, GH = "canary-git-6b1f", "canary-gh-c20d"


class Place:
    """A home with a helper and a `gh` that count, and a forge that wants what they say."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("work", "home", "bin", "tmp"):
            (root / name).mkdir()
        self.closed = False
        self.forge = Forge(root / "work")
        self.heard: list[str] = []
        self.server = Server(self.answer)
        self.elsewhere = Server(self.other)

    def answer(self, request: Request) -> Any:
        """Git for the helper's password, the interface for gh's token."""
        given = request.headers.get("authorization", "")
        self.heard.append(given)
        if not self.closed:
            return self.forge.answer(request)
        if githttp.is_git(request):
            wanted = "Basic " + b64encode(f"me:{GIT}".encode()).decode()
            refused = Reply(401, b"who?", {"WWW-Authenticate": 'Basic realm="git"'})
            return self.forge.answer(request) if given == wanted else refused
        if given != f"Bearer {GH}":
            return json_reply(404, {"message": "Not Found"})
        return self.forge.answer(request)

    def other(self, request: Request) -> Any:
        """A host that no environment names: it asks everybody for a password."""
        self.heard.append("elsewhere " + request.headers.get("authorization", ""))
        return Reply(401, b"who?", {"WWW-Authenticate": 'Basic realm="git"'})

    def prepare(self) -> None:
        """Scenario S06, then nobody is let in without a password."""
        env = {**os.environ, "FORGE": self.server.url, "GIT": self.server.url}
        make = ROOT / "tests/scenarios/gate/S06/make"
        subprocess.run([str(make)], cwd=self.root / "work", env=env, check=True)
        self.program("helper", f'echo "$1" >> {self.root}/asked-git; cat >/dev/null; [ "$1" = get ] || exit 0;'
                               f" echo username=me; echo password={GIT}")  # fmt: skip
        self.program("gh", f'echo "$@" >> {self.root}/asked-gh; echo {GH}')
        self.program("git", f'printf "%s\\n" "$*" >> {self.root}/argv; exec {shutil.which("git")} "$@"')
        (self.root / "home/.gitconfig").write_text(f"[credential]\n\thelper = {self.root}/bin/helper\n")
        self.closed = True

    def program(self, name: str, body: str) -> None:
        """A program on the PATH."""
        path = self.root / "bin" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def environment(self, **more: str) -> dict[str, str]:
        """As a user who is logged in has it."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_CONFIG", "GH_", "GITHUB_"))}
        return kept | {
            "PATH": f"{self.root}/bin:{os.environ['PATH']}", "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"), "TIC_TIME_SCALE": "0", **more,
        }  # fmt: skip

    def gate(self, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run the gate."""
        command = [sys.executable, "-m", "tic_manifest", "-v", "gate", "recipe.yaml", *argv]
        return subprocess.run(
            command, cwd=self.root / "work", env=self.environment(**more), capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    def asked(self, name: str) -> list[str]:
        """What a store was asked."""
        path = self.root / f"asked-{name}"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    one = Place(tmp_path)
    one.prepare()
    yield one
    one.server.close()
    one.elsewhere.close()


def test_a_private_repository_is_judged_for_a_person_who_is_logged_in(place: Place) -> None:
    done = place.gate("--record", "proof", "--output", "json", GITHUB_API_URL=place.server.url)
    assert done.returncode == 1, done.stderr + done.stdout
    assert "STACKED_SHA" in done.stdout
    assert place.asked("git") == ["get"]
    assert len(place.asked("gh")) == 1
    assert any(line.startswith("Basic ") for line in place.heard)
    assert f"Bearer {GH}" in place.heard
    assert "canary-" not in done.stdout + done.stderr
    put = {place.root / "bin/helper", place.root / "bin/gh"}
    files = [one for one in place.root.rglob("*") if one.is_file() and one not in put]
    assert not [one for one in files if b"canary-" in one.read_bytes()]
    assert "fetch" in (place.root / "argv").read_text()
    replayed = place.gate("--replay", "proof", "--output", "json", GITHUB_API_URL=place.server.url)
    assert replayed.stdout == done.stdout
    assert place.asked("git") == ["get"]


def test_nobody_is_asked_for_a_host_that_only_a_document_names(place: Place) -> None:
    done = place.gate("--output", "json")
    assert done.returncode == 3
    assert "NO_ACCESS" in done.stdout
    recipe = place.root / "work/recipe.yaml"
    recipe.write_text(recipe.read_text().replace(f"{place.server.url}/o/r.git", f"{place.elsewhere.url}/o/r"))
    done = place.gate("--output", "json", GITHUB_API_URL=place.server.url)
    assert done.returncode == 3
    assert {line for line in place.heard if line.startswith("elsewhere")} == {"elsewhere "}
    assert place.asked("git") == []


def test_a_public_forge_asks_nobody(place: Place) -> None:
    place.closed = False
    done = place.gate("--output", "json", GITHUB_API_URL=place.server.url)
    assert done.returncode == 1, done.stderr
    assert (place.asked("git"), place.asked("gh")) == ([], [])


def test_a_token_that_was_set_is_the_one_that_counts(place: Place) -> None:
    place.gate("--output", "json", GITHUB_API_URL=place.server.url, GITHUB_TOKEN="canary-wrong")
    assert (place.asked("git"), place.asked("gh")) == ([], [])
    assert "Bearer canary-wrong" in place.heard


def test_a_store_that_prompts_or_hangs_is_left(place: Place) -> None:
    place.program("helper", "read line < /dev/tty && echo password=$line; sleep 60 & sleep 60")
    place.program("gh", "sleep 60")
    login = UserLogin(place.environment(GITHUB_API_URL=place.server.url), seconds=0.5)
    began = time.monotonic()
    assert login.for_git(f"{place.server.url}/o/r.git") is None
    assert login.for_api(f"{place.server.url}/repos/o/r") == ""
    assert login.for_git(f"{place.server.url}/o/r.git") is None
    assert time.monotonic() - began < 8


def test_a_repository_in_the_current_folder_configures_nothing(place: Place) -> None:
    subprocess.run(["git", "init", "-q", str(place.root / "work")], check=True)
    (place.root / "home/.gitconfig").unlink()
    touched = place.root / "touched"
    with (place.root / "work/.git/config").open("a") as config:
        config.write(f'[credential]\n\thelper = "!touch {touched}; echo password=x"\n')
    place.gate("--output", "json", GITHUB_API_URL=place.server.url)
    assert not touched.exists()


@pytest.mark.parametrize(
    "answer", ["username=a\npassword=b\r", "password=b", "", "username=\x1b[1m\npassword=b"]
)
def test_an_answer_that_is_no_name_and_secret_is_none(place: Place, answer: str) -> None:
    (place.root / "answer").write_text(answer + "\n")
    place.program("git", f"cat {place.root}/answer")
    place.program("gh", "exit 1")
    login = UserLogin(place.environment(GITHUB_API_URL=place.server.url))
    assert login.for_git(f"{place.server.url}/o/r.git") is None


def test_what_the_user_set_does_not_undo_what_we_set(tmp_path: Path) -> None:
    env = {**os.environ, "GIT_ALLOW_PROTOCOL": "ext", "GIT_CONFIG_COUNT": "0", "GIT_TERMINAL_PROMPT": "1"}
    ran = GitRunner(env).run(["-c", "alias.e=!env", "e"], repo=tmp_path)
    shown = ran.out.decode().splitlines()
    assert {"GIT_ALLOW_PROTOCOL=http:https", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1"} <= set(shown)
    assert not [line for line in shown if line.startswith("GIT_CONFIG_COUNT=")]
