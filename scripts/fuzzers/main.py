"""The parent of `scripts/fuzz`: gives each target its share of the time and adds up what came of it."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fuzzers.targets import TARGETS

CHILD = Path(__file__).with_name("child.py")
_DONE = re.compile(r"stat::number_of_executed_units:\s*(\d+)|^Done (\d+) runs", re.MULTILINE)
_FINDING = re.compile(r"^FINDING (.*)$", re.MULTILINE)
_ENDED = re.compile(r"ERROR: libFuzzer: (\S+)")
SLACK = 60.0
"""Seconds beyond its share after which a process that does not end is itself a hang."""


@dataclass
class Outcome:
    """What came of one target."""

    target: str
    executions: int = 0
    seconds: float = 0.0
    findings: list[str] = field(default_factory=list)


def main(argv: Sequence[str]) -> int:
    """Run the command line; its exit code."""
    asked = _options(argv)
    if asked.list:
        print("\n".join(f"{name}  {one.says}" for name, one in TARGETS.items()))
        return 0
    if asked.replay:
        return _replay(asked)
    names = asked.target or list(TARGETS)
    share = asked.seconds / len(names)
    outcomes = [_fuzz(name, share, asked) for name in names]
    for one in outcomes:
        print(
            f"{one.target}: {one.executions} executions in {one.seconds:.0f} s, {len(one.findings)} findings"
        )
    total = sum(one.executions for one in outcomes)
    found = sum(len(one.findings) for one in outcomes)
    print(f"total: {total} executions, {found} findings, seed {asked.seed}")
    return 1 if found else 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description="fuzz the readers")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=20, help="seconds that one input may take")
    parser.add_argument("--keep", type=Path, default=Path(".tic/fuzz"))
    parser.add_argument("--replay", type=Path, help="run one kept input of the one --target")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args(argv)
    if asked.replay and len(asked.target or ()) != 1:
        parser.error("--replay needs one --target")
    return asked


def _replay(asked: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="tic-fuzz-") as folder:
        argv = [*_child(asked.target[0], asked), "--folder", folder, "--replay", asked.replay]
        return subprocess.run(argv, check=False).returncode


def _child(name: str, asked: argparse.Namespace) -> list[str]:
    kept = asked.keep / name
    kept.mkdir(parents=True, exist_ok=True)
    return [sys.executable, str(CHILD), name, "--keep", str(kept), "--limit", str(asked.limit)]


def _fuzz(name: str, seconds: float, asked: argparse.Namespace) -> Outcome:
    """Fuzz until the time is over; a process that an input killed is started again with another seed."""
    outcome, began, seed = Outcome(name), time.monotonic(), asked.seed
    while (left := seconds - (time.monotonic() - began)) >= 1 and len(outcome.findings) < 50:
        argv = [*_child(name, asked), "--seconds", str(int(left)), "--seed", str(seed)]
        with tempfile.TemporaryDirectory(
            prefix="tic-fuzz-"
        ) as folder:  # libFuzzer leaves without cleaning up
            text, code = _run([*argv, "--folder", folder], left + SLACK)
        outcome.executions += sum(int(one or other) for one, other in _DONE.findall(text)[:1])
        found = _FINDING.findall(text) + [f"process ended by {one}" for one in _ENDED.findall(text)]
        if code != 0 and not found:
            found = [f"process ended with {code}: {text[-600:]}"]
        outcome.findings += [one for one in found if one not in outcome.findings]
        for one in found:
            print(f"{name}: {one}", flush=True)
        seed += 1
        if code == 0:
            break
    outcome.seconds = time.monotonic() - began
    return outcome


def _run(argv: Sequence[str], limit: float) -> tuple[str, int]:
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=limit, check=False
        )
    except subprocess.TimeoutExpired as late:
        said = late.stderr or b""
        return (said.decode(errors="replace") if isinstance(said, bytes) else said) + "\nFINDING hang", 1
    return done.stdout + done.stderr, done.returncode
