"""`gate IMAGE@DIGEST`: what became of the pull requests of a delivered image (contract, section 3)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.adapters.attach import attach

ROOT = Path(__file__).resolve().parents[2]
for part in ("scripts", "tests/scenarios/lib", "tests/kit", "tests/unit"):
    sys.path.insert(0, str(ROOT / part))

from deliveries import lock  # noqa: E402
from layouts import Layout  # noqa: E402
from scenarios.forge import Forge  # noqa: E402
from scenarios.httpd import Server  # noqa: E402
from statements import delivery, descriptor  # noqa: E402
from topology import Repo, Topology  # noqa: E402


class Delivered:
    """A work folder with one repository, one pull request, and an image that was made of it."""

    def __init__(self, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.work = work
        work.mkdir()
        self.server = Server(Forge(work).answer)
        for name in ("FORGE", "GIT"):
            monkeypatch.setenv(name, self.server.url)
        monkeypatch.chdir(work)
        self.topology = Topology()
        self.repo: Repo = self.topology.repo("o/r")
        self.commits = [
            self.repo.commit("feat", {"x.txt": "1\n"}),
            self.repo.commit("feat", {"y.txt": "2\n"}),
        ]
        self.repo.pull(7, "feat")
        recipe = self.topology.recipe(vllm=self.repo.pin(7))
        self.reference = self._deliver(recipe.read_bytes())

    def _deliver(self, recipe: bytes) -> str:
        layout = Layout(self.work / "layout")
        image = descriptor(layout.image())
        layout.save(layout.index([layout.image()]))
        files = {"lock.json": lock(recipe).raw}
        attach(layout.root, image, None, delivery(image.digest, None, files), files)
        return f"oci:{layout.root}@{image.digest}"

    def settle(self, **facts: Any) -> None:
        """Let the forge's record say something else."""
        self.repo.facts["pulls"]["7"] |= facts
        (self.repo.path / "pulls.json").write_text(json.dumps(self.repo.facts))

    def gate(self, *argv: str) -> tuple[int, set[str], str]:
        """Exit code, codes, and the whole report."""
        done = subprocess.run(
            [sys.executable, "-m", "tic_manifest", "gate", self.reference, "--output", "json", *argv],
            cwd=self.work, env={**os.environ, "TIC_TIME_SCALE": "0"}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        said = json.loads(done.stdout)["findings"] if done.stdout else []
        assert done.stdout, done.stderr
        return done.returncode, {one["code"] for one in said} - {"JUDGED", "COUNTERFACTUAL"}, done.stdout


@pytest.fixture
def delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Delivered]:
    one = Delivered(tmp_path / "work", monkeypatch)
    yield one
    one.server.close()


def untouched(one: Delivered) -> None:
    pass


def trunk_moved(one: Delivered) -> None:
    one.repo.commit("main", {"m.txt": "m\n"})


def closed(one: Delivered) -> None:
    one.settle(state="closed")


def squashed(one: Delivered) -> None:
    one.settle(state="closed", merged=True, merge_commit_sha=one.repo.squash("main", one.commits))


def merged(one: Delivered) -> None:
    one.settle(state="closed", merged=True, merge_commit_sha=one.repo.merge("main", "feat"))


def merged_otherwise(one: Delivered) -> None:
    other = one.repo.commit("main", {"x.txt": "other\n"})
    one.settle(state="closed", merged=True, merge_commit_sha=other)


def reverted(one: Delivered) -> None:
    merge = one.repo.squash("main", one.commits)
    one.settle(state="closed", merged=True, merge_commit_sha=merge)
    one.repo.commit("main", {"x.txt": None, "y.txt": None}, message=f"Revert\n\nThis reverts commit {merge}.")


def revert_reverted(one: Delivered) -> None:
    merge = one.repo.squash("main", one.commits)
    one.settle(state="closed", merged=True, merge_commit_sha=merge)
    back = one.repo.commit(
        "main", {"x.txt": None, "y.txt": None}, message=f"Revert\n\nThis reverts commit {merge}."
    )
    one.repo.commit("main", {"x.txt": "1\n", "y.txt": "2\n"}, message=f"Again\n\nThis reverts commit {back}.")


def rewritten(one: Delivered) -> None:
    one.repo.point("feat", one.commits[0])
    one.repo.commit("feat", {"y.txt": "another\n"})
    one.repo.point("refs/pull/7/head", "feat")


@pytest.mark.parametrize(
    ("happens", "exit_code", "codes"),
    [
        (untouched, 0, set()),
        (trunk_moved, 0, set()),
        (squashed, 0, {"MERGED_SINCE"}),
        (merged, 0, {"MERGED_SINCE"}),
        (revert_reverted, 0, {"MERGED_SINCE"}),
        (closed, 1, {"PR_CLOSED"}),
        (merged_otherwise, 1, {"PR_MERGED"}),
        (reverted, 1, {"MERGED_SINCE", "PR_REVERTED"}),
        (rewritten, 1, {"HEAD_MOVED/rewritten"}),
    ],
)
def test_what_became_of_it(
    delivered: Delivered, happens: Callable[[Delivered], None], exit_code: int, codes: set[str]
) -> None:
    happens(delivered)
    seen = delivered.gate()
    assert seen[:2] == (exit_code, codes), seen[2]


def test_a_recorded_audit_replays(delivered: Delivered) -> None:
    squashed(delivered)
    first = delivered.gate("--record", "proof")
    delivered.server.close()
    assert delivered.gate("--replay", "proof") == first
