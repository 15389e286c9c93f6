"""Stands in for tic-manifest in a scenario: runs it, and writes the facts that its recording holds.

usage: tool.py FACTS gate ARGUMENT...
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tic_manifest.adapters.forge import GitHubForge
from tic_manifest.adapters.forge_map import read_forge_map
from tic_manifest.adapters.git_run import GitRunner
from tic_manifest.adapters.recording import Recording
from tic_manifest.adapters.worktree import RecordedCheckout
from tic_manifest.cli.gate import read_target
from tic_manifest.model.gate import GateFacts
from tic_manifest.ports_gate import GateGit
from tic_manifest.stages.gate import gather, pinned, policy_of
from tic_manifest.stages.gate_look import World


def main() -> int:
    """The exit status of tic-manifest."""
    target, argv = Path(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="tic-anchors-") as name:
        recording = Path(name) / "record"
        command = [sys.executable, "-m", "tic_manifest", *argv, "--record", str(recording)]
        status = subprocess.run(command, check=False).returncode
        target.write_text(facts_of(recording, argv).model_dump_json())
    return status


def facts_of(folder: Path, argv: list[str]) -> GateFacts:
    """The facts of a recorded run, gathered again without network."""
    recipe = read_target(Path(argv[1]))
    only = tuple(argv[at + 1] for at, word in enumerate(argv) if word == "--only")
    trees = [argv[at + 1].partition("=")[0] for at, word in enumerate(argv) if word == "--worktree"]
    recording, forge_map = Recording(folder, GitRunner(os.environ)), read_forge_map(os.environ)
    mirrors: dict[str, GateGit] = {}

    def mirror(name: str, url: str) -> GateGit:
        if name not in mirrors:
            mirrors[name] = recording.mirror(name)
        return mirrors[name]

    base = forge_map.there(recipe.forge.api.rstrip("/"))
    exchange = recording.exchange(base)
    world = World(
        forge=GitHubForge(recipe.forge.api, exchange, forge_map, lambda seconds: None),
        mirror=mirror,
        checkouts={name: RecordedCheckout(name, recording.local) for name in trees},
    )
    try:
        return gather(pinned(recipe, only), pinned(recipe), policy_of(recipe.policy), world)
    finally:
        recording.close()


if __name__ == "__main__":
    sys.exit(main())
