"""Run the scenarios, score the policies, write or compare the page."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scenarios import runner
from scenarios.folder import Scenario, find
from scenarios.runner import Options
from tic_manifest.model.gate import GateFacts

from anchorlib.policies import ANCHORS
from anchorlib.score import EXPECTED, Scored, ours, score, whole
from anchorlib.table import document

ROOT = Path(__file__).resolve().parents[2]
GATE = ROOT / "tests" / "scenarios" / "gate"
PAGE = ROOT / "docs" / "gate-anchors.md"
TOOL = Path(__file__).with_name("tool.py")
LISTED = re.compile(r"^S[0-9]{2}(?:-|$)")


class NotScoredError(Exception):
    """A scenario did not run as it must, so nothing can be said of it."""


def main(argv: Sequence[str]) -> int:
    """The exit code of `scripts/anchors`."""
    parser = argparse.ArgumentParser(prog="anchors", description="score other rules on our scenarios")
    parser.add_argument("--check", action="store_true", help="compare docs/gate-anchors.md, write nothing")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="scenarios at once")
    asked = parser.parse_args(argv)
    os.environ.setdefault("TIC_TIME_SCALE", "0.01")
    try:
        rows = _scored(asked.jobs)
    except NotScoredError as error:
        print(f"anchors: {error}", file=sys.stderr)
        return 1
    return _ended(rows, check=asked.check)


def _scored(jobs: int) -> list[Scored]:
    chosen = sorted((one for one in find([GATE]) if LISTED.match(one.name)), key=lambda one: one.name)
    with tempfile.TemporaryDirectory(prefix="tic-anchors-") as name, ThreadPoolExecutor(max(jobs, 1)) as pool:
        return list(pool.map(lambda one: _row(one, Path(name)), chosen))


def _row(scenario: Scenario, room: Path) -> Scored:
    target = room / f"{scenario.name}.json"
    result = runner.run(scenario, Options(tool=(sys.executable, str(TOOL), str(target))))
    if result.problems or not target.is_file():
        raise NotScoredError(f"{scenario.name}: {'; '.join(result.problems) or 'no facts'}")
    facts = GateFacts.model_validate_json(target.read_bytes())
    verdicts = (ours(facts), *(whole(one.policy, facts) for one in ANCHORS))
    return Scored(scenario.name, EXPECTED[scenario.expected()["exit"]], verdicts)


def _ended(rows: Sequence[Scored], *, check: bool) -> int:
    page, mine = document(rows), score(rows, 0)
    current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page
    if not check:
        PAGE.write_text(page, encoding="utf-8")
    counts = f"{len(mine.false_passes)} false passes, {len(mine.false_blocks)} false blocks"
    print(f"{len(rows)} scenarios; ours: {counts}")
    if check and not current:
        print(f"anchors: {PAGE.relative_to(ROOT)} is not current; to do: scripts/anchors", file=sys.stderr)
    wrong = mine.false_passes or mine.false_blocks or mine.accusations
    return 1 if wrong or (check and not current) else 0
