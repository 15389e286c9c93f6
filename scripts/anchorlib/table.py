"""docs/gate-anchors.md."""

from __future__ import annotations

from collections.abc import Sequence

from anchorlib.policies import ANCHORS
from anchorlib.score import Score, Scored, score

SIGNS = {"pass": "pass", "fail": "fail", "unknown": "?"}
NAMES = ("tic-manifest", *(one.name for one in ANCHORS))

HEAD = """# The gate beside five other decision rules

Made by `scripts/anchors`; `scripts/anchors --check` tells whether it is current.

Each rule below is written as a small policy from the source that it cites (`scripts/anchorlib/policies.py`)
and is given the same recorded facts, the scenarios S01 to S66 of `tests/scenarios/gate` with their variants.
Where a source leaves a choice, the kinder one was taken: reviews, labels and required checks count as
satisfied, and a tool that names the head in its merge call is credited with it.

- A *false pass* lets through what must be blocked: a proven fault, or a question without an answer.
- A *false block* stops what must pass; waiting counts as stopping.
- An *accusation without proof* says that the pull request is at fault where nobody can know.

None of these tools was made for this question: they gate a merge into a living branch, or build a list of
pins, and none looks at a local checkout. The table says what happens where one of them is used as the gate of
a release that is built from pinned commits, not that it is bad at its own work.
"""


def document(rows: Sequence[Scored]) -> str:
    """The whole page."""
    scores = [score(rows, column) for column in range(len(NAMES))]
    parts = [HEAD, _counts(rows), _scores(scores), _rules(), _wrong(scores), _all(rows)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _counts(rows: Sequence[Scored]) -> str:
    wanted = [row.expected for row in rows]
    return (
        f"{len(rows)} scenarios: {wanted.count('pass')} must pass, {wanted.count('fail')} must fail, "
        f"{wanted.count('unknown')} cannot be known and must say so.\n"
    )


def _scores(scores: Sequence[Score]) -> str:
    lines = ["## Scores", "", "| rule | false passes | false blocks | accusations without proof |"]
    lines.append("|---|---:|---:|---:|")
    for name, one in zip(NAMES, scores, strict=True):
        counts = (len(one.false_passes), len(one.false_blocks), len(one.accusations))
        lines.append(f"| {name} | {counts[0]} | {counts[1]} | {counts[2]} |")
    return "\n".join([*lines, ""])


def _rules() -> str:
    lines = ["## The rules and their sources", ""]
    for one in ANCHORS:
        lines += [f"- **{one.name}**: {one.words}."]
        lines += [f"  - {source}" for source in one.sources]
    return "\n".join([*lines, ""])


def _wrong(scores: Sequence[Score]) -> str:
    lines = ["## Which scenarios", ""]
    for name, one in zip(NAMES, scores, strict=True):
        lines += [
            f"- **{name}**",
            f"  - false passes: {_list(one.false_passes)}",
            f"  - false blocks: {_list(one.false_blocks)}",
            f"  - accusations without proof: {_list(one.accusations)}",
        ]
    return "\n".join([*lines, ""])


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


def _all(rows: Sequence[Scored]) -> str:
    lines = ["## Every verdict", "", "`?` is a question left open: waiting, a retry, or an error.", ""]
    lines.append(f"| scenario | expected | {' | '.join(NAMES)} |")
    lines.append("|---|---|" + "---|" * len(NAMES))
    for row in rows:
        cells = " | ".join(SIGNS[one] for one in row.verdicts)
        lines.append(f"| {row.name} | {SIGNS[row.expected]} | {cells} |")
    return "\n".join([*lines, ""])
