"""Servers that do not answer: never a pass, never an accusation, and an end in bounded time.

Scenarios cannot wait for real time limits, so the same adapters are given short ones here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tic_manifest.adapters.forge import RETRIES, GitHubForge
from tic_manifest.adapters.forge_http import HttpExchange
from tic_manifest.adapters.git_gate import GateMirror
from tic_manifest.adapters.git_remote import HttpRemote
from tic_manifest.adapters.git_run import GitRunner
from tic_manifest.formats.recipe import read_recipe
from tic_manifest.model.verdict import Report, Status
from tic_manifest.rules.gate import judge
from tic_manifest.stages.gate import gather, pinned, policy_of
from tic_manifest.stages.gate_look import World

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from scenarios.forge import Forge  # noqa: E402
from scenarios.httpd import Request, Server  # noqa: E402
from scenarios.reply import Reply  # noqa: E402

LIMIT = 0.4
"""Seconds that the interface is waited for here."""


@dataclass
class Hanging:
    """The local forge, silent for the paths in `silent` until it is closed."""

    work: Path
    silent: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.closed = Event()
        self.server = Server(self.answer)
        self.forge = Forge(self.work)

    def answer(self, request: Request) -> Any:
        """The forge's answer, or nothing."""
        self.asked.append(request.path)
        if request.path in self.silent:
            self.closed.wait(60)
            return Reply(503)
        return self.forge.answer(request)

    def judged(self) -> Report:
        """The gate's report over real adapters with short limits."""
        recipe = read_recipe((self.work / "recipe.yaml").read_bytes(), "recipe.yaml")
        runner = GitRunner(os.environ)

        def mirror(name: str, url: str) -> GateMirror:
            return GateMirror(runner, self.work / "store", HttpRemote(runner, url, url, timeout_seconds=2))

        exchange = HttpExchange(os.environ, timeout_seconds=LIMIT)
        forge = GitHubForge(recipe.forge.api, exchange, pause=lambda seconds: None)
        pins = pinned(recipe)
        return judge(gather(pins, pins, policy_of(recipe.policy), World(forge=forge, mirror=mirror)))


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[Hanging]:
    one = Hanging(tmp_path)
    env = {**os.environ, "FORGE": one.server.url, "GIT": one.server.url}
    subprocess.run([str(ROOT / "tests/scenarios/gate/S01/make")], cwd=tmp_path, env=env, check=True)
    yield one
    one.closed.set()
    one.server.close()


def test_the_same_world_passes_when_it_answers(hanging: Hanging) -> None:
    assert hanging.judged().exit_code == 0


@pytest.mark.parametrize(
    "silent",
    [
        ("/repos/o/r",),
        ("/repos/o/r/pulls/7",),
        ("/repos/o/r/pulls",),
        ("/repos/o/r", "/repos/o/r/pulls", "/repos/o/r/pulls/7"),
        ("/o/r.git/info/refs",),
        ("/o/r.git/git-upload-pack",),
    ],
    ids=["repository", "pull request", "list", "whole interface", "refs", "objects"],
)
def test_silence_is_inconclusive_and_ends(hanging: Hanging, silent: tuple[str, ...]) -> None:
    hanging.silent = silent
    start = time.monotonic()
    report = hanging.judged()
    assert time.monotonic() - start < 60
    assert report.exit_code == 3
    assert "TIMEOUT" in {one.code for one in report.findings}
    assert not [one.code for one in report.findings if one.status is Status.FAIL]
    assert all("Error" not in one.what and one.what for one in report.findings)


def test_a_dead_interface_is_not_asked_four_times_for_everything(hanging: Hanging) -> None:
    hanging.silent = ("/repos/o/r", "/repos/o/r/pulls", "/repos/o/r/pulls/7")
    hanging.judged()
    asked = [path for path in hanging.asked if path.startswith("/repos/")]
    assert len(asked) <= RETRIES + 1 + 4
