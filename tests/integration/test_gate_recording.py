"""A recording is proof: it replays to the same bytes without network, and every change of it shows.

Also here: secrets in every place that a tool could read are in no file, log, argv or request of the gate.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parents[1] / "kit"))
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "tests" / "scenarios" / "lib"))

from git_repos import git  # noqa: E402
from scenarios.forge import Forge  # noqa: E402
from scenarios.httpd import Server  # noqa: E402
from scenarios.reply import Reply  # noqa: E402

CANARY = "canary-7f3a9c"


class World:
    """A work folder with a stacked pull request, and a forge that serves it and keeps what it was sent."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / "work"
        self.work.mkdir()
        self.heard: list[str] = []
        forge = Forge(self.work)
        self.server = Server(lambda request: self._answer(forge, request))

    def _answer(self, forge: Forge, request: Any) -> Any:
        self.heard.append(f"{request.target} {dict(request.headers)} {request.body[:9000]!r}")
        return forge.answer(request)

    def make(self) -> None:
        """Scenario S06: #12 carries both commits of the open #11."""
        env = {**os.environ, "FORGE": self.server.url, "GIT": self.server.url}
        subprocess.run([str(ROOT / "tests/scenarios/gate/S06/make")], cwd=self.work, env=env, check=True)

    def gate(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the gate in the work folder."""
        return subprocess.run(
            [sys.executable, "-m", "tic_manifest", "gate", "recipe.yaml", *argv],
            cwd=self.work, env={**os.environ, "TIC_TIME_SCALE": "0", **env}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    one = World(tmp_path_factory.mktemp("gate"))
    one.make()
    yield one
    one.server.close()


@pytest.fixture(scope="module")
def recorded(world: World) -> str:
    """The report of the recorded run."""
    done = world.gate("--record", "proof", "--output", "json")
    assert done.returncode == 1, done.stderr
    return done.stdout


def replay(world: World, folder: str = "proof") -> subprocess.CompletedProcess[str]:
    """Replay with every way to a network closed."""
    nowhere = "http://127.0.0.1:9"
    return world.gate(
        "--replay", folder, "--output", "json", https_proxy=nowhere, http_proxy=nowhere, no_proxy=""
    )


def test_same_bytes_without_network(world: World, recorded: str) -> None:
    before = len(world.heard)
    again = replay(world)
    assert (again.returncode, again.stdout) == (1, recorded)
    assert len(world.heard) == before


def test_a_recording_holds_no_verdict(world: World, recorded: str) -> None:
    assert recorded
    text = "".join(p.read_text(errors="replace") for p in (world.work / "proof").rglob("*.json"))
    assert "STACKED" not in text
    assert "outcome" not in text


def flip_answer(proof: Path) -> None:
    answers = json.loads((proof / "forge.json").read_text())
    (key,) = [key for key in answers if key.endswith("/pulls/12")]
    for row in answers[key]:
        row["body"] = row["body"].replace('"draft": false', '"draft": true')
    (proof / "forge.json").write_text(json.dumps(answers))


def flip_a_title(proof: Path) -> None:
    answers = json.loads((proof / "forge.json").read_text())
    (key,) = [key for key in answers if key.endswith("/pulls/12")]
    body = json.loads(answers[key][0]["body"])
    answers[key][0]["body"] = json.dumps({**body, "title": "another title"})
    (proof / "forge.json").write_text(json.dumps(answers))


def drop_page(proof: Path) -> None:
    answers = json.loads((proof / "forge.json").read_text())
    (key,) = [key for key in answers if "/pulls?" in key]
    answers[key].pop()
    (proof / "forge.json").write_text(json.dumps(answers))


def delete_object(proof: Path) -> None:
    (repo,) = (proof / "git").glob("*.git")
    folder = repo / "objects" / "pack"
    packs = [pack.read_bytes() for pack in sorted(folder.glob("*.pack"))]
    for part in list(folder.glob("*")):
        part.unlink()
    for data in packs:
        git(repo, "unpack-objects", "-q", stdin=data)
    objects = sorted(p for p in (repo / "objects").rglob("*") if len(p.name) == 38)
    objects[len(objects) // 2].unlink()


def flip_ref(proof: Path) -> None:
    path = proof / "git" / "vllm.json"
    rows = json.loads(path.read_text())
    for row in rows:
        if "refs" in row:
            row["answer"].pop("refs/heads/main")
    path.write_text(json.dumps(rows))


@pytest.mark.parametrize("change", [flip_answer, flip_a_title, drop_page, delete_object, flip_ref])
def test_every_change_shows(world: World, recorded: str, change: Callable[[Path], None]) -> None:
    name = f"changed-{change.__name__}"
    shutil.copytree(world.work / "proof", world.work / name)
    change(world.work / name)
    again = replay(world, name)
    assert again.stdout != recorded
    assert again.returncode in {1, 3}, again.stderr


def test_replay_changes_nothing(world: World, recorded: str) -> None:
    def state() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in (world.work / "proof").rglob("*") if p.is_file()}

    before = state()
    replay(world)
    assert state() == before


def test_a_folder_in_use_is_not_recorded_into(world: World, recorded: str) -> None:
    assert world.gate("--record", "proof").returncode == 2


def test_secrets_stay_where_they_are(world: World, tmp_path: Path) -> None:
    host = world.server.address
    (tmp_path / ".netrc").write_text(f"machine 127.0.0.1 login x password {CANARY}\n")
    (tmp_path / ".git-credentials").write_text(f"http://x:{CANARY}@{host}\n")
    (tmp_path / ".gitconfig").write_text(
        f"[credential]\n\thelper = store\n[http]\n\textraHeader = X: {CANARY}\n"
    )
    world.heard.clear()
    done = world.gate(
        "--record", "secret", "--output", "json", "--work", ".tic-secret",
        HOME=str(tmp_path), GITHUB_TOKEN=CANARY, GH_ENTERPRISE_TOKEN=CANARY, GH_HOST="ghe.invalid",
        GH_TOKEN=CANARY, COSIGN_PASSWORD=CANARY,
    )  # fmt: skip
    assert done.returncode == 1
    assert CANARY not in done.stdout + done.stderr
    assert world.heard
    assert not [line for line in world.heard if CANARY in line]
    files = [p for name in ("secret", ".tic-secret") for p in (world.work / name).rglob("*") if p.is_file()]
    assert files
    assert not [p for p in files if CANARY.encode() in p.read_bytes()]


def test_no_token_follows_a_redirect(tmp_path: Path) -> None:
    heard: list[str] = []

    def answer(request: Any) -> Reply:
        heard.append(f"{request.target} {dict(request.headers)}")
        return Reply(301, b"", {"Location": f"{other.url}/stolen"})

    server, other = Server(answer), Server(answer)
    recipe = (
        f"schema: tic/recipe/v1\nname: x\nforge: {{api: '{server.url}'}}\npull_requests:\n  vllm:\n"
        f"    url: {server.url}/o/r/pull/1\n    target: {{owner: o, branch: main}}\n"
        f"    base: '{'1' * 40}'\n    head: '{'2' * 40}'\n"
    )
    (tmp_path / "recipe.yaml").write_text(recipe)
    env = {**os.environ, "GITHUB_API_URL": server.url, "GITHUB_TOKEN": CANARY, "TIC_TIME_SCALE": "0"}
    argv = [sys.executable, "-m", "tic_manifest", "gate", "recipe.yaml", "--output", "json"]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    server.close()
    other.close()
    assert done.returncode == 3, done.stderr
    assert any(CANARY in line for line in heard)
    # git follows a server's first redirect, with nothing of ours in its hands
    assert not any("/stolen" in line and CANARY in line for line in heard)
    assert CANARY not in done.stdout + done.stderr
