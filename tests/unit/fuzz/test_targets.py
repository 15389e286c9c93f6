"""The fuzzer's oracles: every seed passes them, and an outcome that must not be does not."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from fuzzers.archive import run_archive
from fuzzers.command import Command
from fuzzers.documents import seed
from fuzzers.targets import TARGETS
from tic_manifest.model.files import FileEntry, FileKind, LayerTree

SCRIPT = Path(__file__).parents[3] / "scripts" / "fuzz"


@pytest.mark.parametrize("name", [name for name in TARGETS if name != "cli"])
def test_every_seed_is_judged_without_a_finding(name: str) -> None:
    inputs = list(TARGETS[name].seeds())
    assert len(inputs) >= 5
    for data in inputs:
        TARGETS[name].run(data)
        TARGETS[name].run(data[: len(data) // 2])


def test_the_command_reaches_pass_and_refusal_and_nothing_outside(tmp_path: Path) -> None:
    command = Command()
    command.prepare(tmp_path)
    codes: list[int] = []
    look = command.look
    for data in command.seeds():
        command.run(data)
        codes.append(command.code)
        command.run(data[:2] + b"[" * 100)
        codes.append(command.code)
    assert {0, 3, 4} <= set(codes) <= {0, 1, 2, 3, 4}
    for code, said in ((70, ""), (-11, ""), (3, "Traceback (most recent call last):")):
        with pytest.raises(AssertionError):
            look(code, said)


def test_a_path_outside_the_root_and_an_undeclared_error_are_findings(tmp_path: Path) -> None:
    from fuzzers.archive import judge

    tree = LayerTree(number=1)
    tree.entries["a/../../x"] = FileEntry(FileKind.FOLDER, 1)
    with pytest.raises(AssertionError, match="outside the root"):
        judge([tree])
    run_archive(b"\x80" + b"\0" * 1024)
    TARGETS["documents"].run(seed("lock", b"{}"))


@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris has no wheel for this Python"
)
def test_the_fuzzer_counts_and_a_kept_input_can_be_run_again(tmp_path: Path) -> None:
    argv = [sys.executable, str(SCRIPT), "--target", "reference", "--keep", str(tmp_path)]
    done = subprocess.run([*argv, "--seconds", "2"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    counted = int(done.stdout.partition("reference: ")[2].partition(" executions")[0])
    assert counted > 100
    kept = tmp_path / "input"
    kept.write_bytes(b"[:21]:5000/a/b@sha256:" + b"a" * 64)
    assert subprocess.run([*argv, "--replay", str(kept)], capture_output=True, check=False).returncode == 0
