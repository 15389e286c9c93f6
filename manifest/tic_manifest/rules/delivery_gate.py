"""The gate's receipt judged again: one row per pull request, and what policy set out of scope."""

from __future__ import annotations

from tic_manifest.model.gate import GateFacts
from tic_manifest.model.lock import LockedPullRequest
from tic_manifest.model.verdict import Check, Finding, Report, State, Status, finding
from tic_manifest.rules import gate
from tic_manifest.rules.dossier import Dossier

WORST = (Status.FAIL, Status.INCONCLUSIVE, Status.NOT_RUN)


def judge_gate(dossier: Dossier) -> tuple[list[Check], list[Finding]]:
    """`gate.NAME` for each pull request of the lock; facts of other pins are stale."""
    pulls = dossier.lock.lock.pull_requests
    if dossier.gate is None:
        return [_not_run(pull.name, "gate was not run") for pull in pulls], []
    facts = dossier.gate.facts
    judged = gate.judge(facts)
    stale = [one for pull in pulls for one in _stale(pull, facts)]
    checks = [_row(pull.name, judged, stale) for pull in pulls]
    return [*checks, *_out_of_scope(judged)], [*stale, *judged.findings]


def _stale(pull: LockedPullRequest, facts: GateFacts) -> list[Finding]:
    """What the gate judged must be what the lock pins."""
    seen = next((one for one in facts.pulls if one.name == pull.name), None)
    if seen is None or (seen.pinned_base, seen.pinned_head) == (pull.base, pull.head):
        return []
    pins, judged = [pull.base, pull.head], [seen.pinned_base, seen.pinned_head]
    return [
        finding(
            "STALE", Status.FAIL, pull.name, what="the gate judged other pins", expected=pins, actual=judged
        )
    ]


def _row(name: str, judged: Report, stale: list[Finding]) -> Check:
    mine = [one for one in judged.checks if one.subject == name and one.state is State.REQUIRED]
    if not mine:
        return _not_run(name, "the gate did not judge it")
    seen = {one.status for one in mine} | {one.status for one in stale if one.subject == name}
    status = next((one for one in WORST if one in seen), Status.PASS)
    codes = [one.code for one in judged.findings if one.subject == name and not one.note]
    return Check(id=f"gate.{name}", status=status, subject=name, reason=", ".join(dict.fromkeys(codes)))


def _out_of_scope(judged: Report) -> list[Check]:
    return [
        one.model_copy(update={"id": f"gate.{one.subject}.{one.id}"})
        for one in judged.checks
        if one.state is State.OUT_OF_SCOPE
    ]


def _not_run(name: str, reason: str) -> Check:
    return Check(id=f"gate.{name}", status=Status.NOT_RUN, subject=name, reason=reason)
