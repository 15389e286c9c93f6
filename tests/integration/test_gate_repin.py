"""`gate --repin-equal`: a head that a bot moved with equal content is written into the recipe, nothing else is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
for part in ("scripts", "tests/scenarios/lib"):
    sys.path.insert(0, str(ROOT / part))

from scenarios.forge import Forge  # noqa: E402
from scenarios.httpd import Server  # noqa: E402
from topology import Topology  # noqa: E402


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Topology]:
    work = tmp_path / "work"
    work.mkdir()
    server = Server(Forge(work).answer)
    for name in ("FORGE", "GIT"):
        monkeypatch.setenv(name, server.url)
    monkeypatch.chdir(work)
    yield Topology()
    server.close()


def gate(*argv: str) -> tuple[int, dict[str, dict[str, object]]]:
    """Exit code, and findings by code."""
    done = subprocess.run(
        [sys.executable, "-m", "tic_manifest", "gate", *argv, "--output", "json"],
        env={**os.environ, "TIC_TIME_SCALE": "0"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return done.returncode, {one["code"]: one for one in json.loads(done.stdout)["findings"]}


def test_equal_content_is_repinned(world: Topology) -> None:
    repo = world.repo("o/r")
    old = repo.commit("feat", {"x.txt": "1\n"})
    repo.pull(7, "feat")
    pin = repo.pin(7)
    fork = repo.commit("main", {"m.txt": "m\n"})
    new = repo.pick("rebased", old, on="main")
    repo.point("feat", "rebased")
    repo.point("refs/pull/7/head", "feat")
    recipe = world.recipe({"base_drift": {"max_commits": 5, "action": "note"}}, vllm=pin)
    text = recipe.read_text()
    code, said = gate("recipe.yaml")
    assert code == 1
    moved = said["HEAD_MOVED/rebased_equal"]["evidence"]
    assert isinstance(moved, dict)
    assert moved["auto_repin"] is True
    code, said = gate("recipe.yaml", "--repin-equal")
    assert code == 0, said
    assert recipe.read_text() == text.replace(old, new).replace(pin["base"], fork)
    certificate = said["REPINNED"]["evidence"]
    assert isinstance(certificate, dict)
    (line,) = certificate["range_diff"]
    assert line.startswith(f"1:  {old} = 1:  {new}")


def test_other_content_is_not(world: Topology) -> None:
    repo = world.repo("o/r")
    old = repo.commit("feat", {"x.txt": "1\n"})
    repo.pull(7, "feat")
    pin = repo.pin(7)
    repo.point("feat", "main")
    repo.commit("feat", {"x.txt": "2\n"})
    repo.point("refs/pull/7/head", "feat")
    recipe = world.recipe(vllm=pin)
    code, said = gate("recipe.yaml", "--repin-equal")
    assert code == 1
    assert "HEAD_MOVED/rewritten" in said
    assert old in recipe.read_text()
