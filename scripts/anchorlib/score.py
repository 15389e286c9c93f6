"""Verdicts against what a scenario expects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tic_manifest.model.gate import GateFacts
from tic_manifest.rules.gate import judge

from anchorlib.policies import Policy, Verdict

EXPECTED: dict[int, Verdict] = {0: "pass", 1: "fail", 3: "unknown"}
"""What an expected exit code of the gate says."""


@dataclass(frozen=True)
class Scored:
    """One scenario: what is expected, and each policy's verdict in the order of the columns."""

    name: str
    expected: Verdict
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True)
class Score:
    """Scenarios that a policy got wrong, by kind."""

    false_passes: tuple[str, ...]
    false_blocks: tuple[str, ...]
    accusations: tuple[str, ...]


def whole(policy: Policy, facts: GateFacts) -> Verdict:
    """One verdict for the set: a proven fail wins over unknown, unknown over pass."""
    said = {policy(one) for one in facts.pulls}
    return "fail" if "fail" in said else "unknown" if "unknown" in said or not said else "pass"


def ours(facts: GateFacts) -> Verdict:
    """Our own verdict over the same facts."""
    return EXPECTED[judge(facts).exit_code]


def score(rows: Sequence[Scored], column: int) -> Score:
    """The mistakes of one column. Where a pass is expected, waiting blocks as well."""
    pairs = [(row.name, row.expected, row.verdicts[column]) for row in rows]
    return Score(
        false_passes=tuple(n for n, wanted, said in pairs if wanted != "pass" and said == "pass"),
        false_blocks=tuple(n for n, wanted, said in pairs if wanted == "pass" and said != "pass"),
        accusations=tuple(n for n, wanted, said in pairs if wanted == "unknown" and said == "fail"),
    )
