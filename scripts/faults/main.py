"""Plant each fault, run the scenarios that know it, print what found it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from scenarios import runner
from scenarios.folder import Scenario
from scenarios.runner import Options

from faults.catalogue import FAULTS, Fault
from faults.plant import DoesNotApplyError, planted

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "manifest" / "tic_manifest"
GATE = ROOT / "tests" / "scenarios" / "gate"
BROKEN = ("was 70", "the scenario cannot be run", "the runner failed")
"""How the runner says that the tool ended with a bug of its own, or that nothing was run."""


@dataclass(frozen=True)
class Outcome:
    """What became of a fault: `killed_by` is "" where it survived, `why` the first difference seen."""

    name: str
    killed_by: str
    why: str
    ran: int
    seconds: float

    @property
    def found(self) -> bool:
        """Whether a scenario turned red because of another verdict, and not because the copy broke."""
        return bool(self.killed_by) and not any(text in self.why for text in BROKEN)


def main(argv: Sequence[str]) -> int:
    """The exit code of `scripts/mutants`."""
    asked = _parser().parse_args(argv)
    faults = [one for one in FAULTS if not asked.names or any(name in one.name for name in asked.names)]
    if asked.list or not faults:
        print("\n".join(one.name for one in FAULTS))
        return 0 if asked.list else 2
    os.environ.setdefault("TIC_TIME_SCALE", "0.01")
    start = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="tic-mutants-") as name:
            return _all(faults, Path(name), asked.jobs, start)
    except DoesNotApplyError as error:
        print(f"mutants: a fault does not apply: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mutants", description="planted faults must turn a scenario red")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only faults whose name has this text")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="runs at once")
    parser.add_argument("--list", action="store_true", help="print the names of all faults")
    return parser


def _all(faults: Sequence[Fault], room: Path, jobs: int, start: float) -> int:
    copies = [planted(PACKAGE, one, room / str(at)) for at, one in enumerate(faults)]
    clean = planted(PACKAGE, None, room / "clean")
    _check_copy(clean)
    names = list(dict.fromkeys(name for one in faults for name in one.scenarios))
    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        red = [text for text in pool.map(lambda name: _red(name, clean), names) if text]
        if red:
            print("\n".join(["mutants: these fail without any fault, so they show nothing:", *red]))
            return 1
        print(f"without a fault: {len(names)} scenarios pass", flush=True)
        outcomes = list(pool.map(_judged, faults, copies))
    _table(outcomes)
    survived = [one.name for one in outcomes if not one.found]
    seconds = time.monotonic() - start
    print(f"{len(outcomes) - len(survived)} found, {len(survived)} survived, {seconds:.0f} s")
    return 1 if survived else 0


def _check_copy(copy: Path) -> None:
    """The tool really runs from the copy, or nothing of this means anything."""
    shown = "import tic_manifest; print(tic_manifest.__file__)"
    argv = [*_python(copy), "-c", shown]
    where = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(where).is_relative_to(copy.resolve()):
        raise RuntimeError(f"the package was imported from {where}, not from the copy")


def _python(copy: Path) -> tuple[str, ...]:
    return ("env", f"PYTHONPATH={copy}", "PYTHONDONTWRITEBYTECODE=1", sys.executable)


def _red(name: str, copy: Path) -> str:
    result = runner.run(Scenario(name, GATE / name), Options(tool=(*_python(copy), "-m", "tic_manifest")))
    return f"{name}: {result.problems[0]}" if result.problems else ""


def _judged(fault: Fault, copy: Path) -> Outcome:
    start = time.monotonic()
    for ran, name in enumerate(fault.scenarios, 1):
        red = _red(name, copy)
        if red:
            return Outcome(fault.name, name, red.partition(": ")[2], ran, time.monotonic() - start)
    return Outcome(fault.name, "", "", len(fault.scenarios), time.monotonic() - start)


def _table(outcomes: Iterable[Outcome]) -> None:
    rows = [("fault", "killed by", "first difference")]
    rows += [(one.name, _words(one), one.why[:90]) for one in outcomes]
    widths = [max(len(row[at]) for row in rows) for at in (0, 1)]
    for row in rows:
        print(f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}".rstrip())


def _words(one: Outcome) -> str:
    if not one.killed_by:
        return "SURVIVED"
    return one.killed_by if one.found else f"BROKEN in {one.killed_by}"
