"""The gate's receipt judged again: one row per pull request, and what policy set out of scope."""

from __future__ import annotations

from tic_manifest.model.gate import GateFacts, gate_policy
from tic_manifest.model.lock import LockedPullRequest
from tic_manifest.model.verdict import Check, Finding, Report, State, Status, check_of, finding
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
    looser = _looser(dossier, facts)
    checks = [_row(pull.name, judged, stale) for pull in pulls]
    checks.append(check_of("gate.policy", looser, subject="gate policy"))
    return [*checks, *_out_of_scope(judged)], [*stale, *looser, *judged.findings]


def _stale(pull: LockedPullRequest, facts: GateFacts) -> list[Finding]:
    """What the gate judged must be what the lock pins: the same pull request, target, base and head."""
    seen = next((one for one in facts.pulls if one.name == pull.name), None)
    if seen is None:
        return []
    pins = [pull.url, pull.branch, pull.base, pull.head]
    judged = [seen.url, seen.target, seen.pinned_base, seen.pinned_head]
    if judged == pins:
        return []
    return [
        finding(
            "STALE", Status.FAIL, pull.name, what="the gate judged other pins", expected=pins, actual=judged
        )
    ]


def _looser(dossier: Dossier, facts: GateFacts) -> list[Finding]:
    """The gate obeyed the policy of this recipe and no other."""
    asked = gate_policy(dossier.lock.recipe.policy)
    if facts.policy == asked:
        return []
    said = finding(
        "STALE", Status.FAIL, "gate policy", what="the gate obeyed another policy than the recipe's",
        expected=asked.model_dump(mode="json"), actual=facts.policy.model_dump(mode="json"),
    )  # fmt: skip
    return [said]


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
