"""The gate's verdict from its facts alone: every check for every pull request, in a stable order.

Pure: the same facts give the same checks and findings, whoever holds them. Source: rules/pr-gate.md.
"""

from __future__ import annotations

from collections.abc import Callable

from tic_manifest.model.gate import (
    BaseFacts,
    ForgePull,
    GateFacts,
    GatePolicy,
    HeadFacts,
    MergeFacts,
    PullRequestFacts,
    RangeFacts,
    StackFacts,
    Unknown,
)
from tic_manifest.model.verdict import Check, Finding, Report, State, Status, check_of, note, report
from tic_manifest.rules import (
    gate_audit,
    gate_deps,
    gate_local,
    gate_merge,
    gate_pins,
    gate_stack,
    gate_state,
)
from tic_manifest.rules.gate_counter import counterfactual

Rule = Callable[[PullRequestFacts, GatePolicy], list[Finding]]

CHECKS: tuple[tuple[str, tuple[str, ...], Rule], ...] = (
    ("repository", ("repository",), gate_state.identity),
    ("state", ("pull",), gate_state.state),
    ("draft", ("pull",), gate_state.draft),
    ("target", ("pull",), gate_state.target),
    ("forge_stack", ("pull",), gate_state.forge_stack),
    ("head", ("pull", "head"), gate_pins.head),
    ("base", ("base",), gate_pins.base),
    ("content", ("range",), gate_pins.content),
    ("stacked_commits", ("stack",), gate_stack.commits),
    ("stacked_content", ("stack",), gate_stack.patches),
    ("dependencies", ("dependencies",), gate_deps.declared),
    ("local_merge", ("pinned_merge", "live_merge"), gate_merge.local),
    ("forge_mergeable", ("pull", "forge_merge"), gate_merge.forge),
    ("residue", ("residues",), gate_stack.residue),
    ("submodules", ("submodules",), gate_deps.submodules),
    ("lfs", ("head",), gate_local.lfs),
)
"""Name of a check (what a policy can set out of scope), the facts it needs, the rule."""

LAST: tuple[tuple[str, tuple[str, ...], Rule], ...] = (
    ("local", ("local",), gate_local.checkout),
    ("snapshot", ("closing",), gate_local.snapshot),
)
DELIVERED: tuple[tuple[str, tuple[str, ...], Rule], ...] = (
    ("repository", ("repository",), gate_state.identity),
    ("state", ("pull", "audit"), gate_audit.state),
    ("head", ("pull", "head"), gate_audit.head),
    ("base", ("base",), gate_audit.base),
    ("reverted", ("audit",), gate_audit.reverted),
    ("snapshot", ("closing",), gate_local.snapshot),
)
"""What can become untrue of an image after it was delivered."""

SET_CHECK = "set_coherent"
Judged = Callable[[PullRequestFacts, GateFacts], list[tuple[Check, list[Finding]]]]


def judge(facts: GateFacts) -> Report:
    """The report of a snapshot."""
    return _rolled(facts, _judged)


def judge_delivered(facts: GateFacts) -> Report:
    """The report of a delivered image: what became of its pull requests since (contract, section 3)."""
    return _rolled(facts, lambda pull, all_facts: [_check(*row, pull, all_facts.policy) for row in DELIVERED])


def _rolled(facts: GateFacts, judged: Judged) -> Report:
    checks: list[Check] = []
    found: list[Finding] = []
    for pull in facts.pulls:
        for check, said in judged(pull, facts):
            checks.append(check)
            found += said
        found += counterfactual(pull, lambda one: _failing(one, facts, judged))
        found.append(_judged_note(pull))
    names = [one.name for one in facts.pulls]
    return report("gate", checks, found, subjects=names, partial=facts.partial)


def _failing(pull: PullRequestFacts, facts: GateFacts, judged: Judged) -> list[str]:
    said = (one for _, found in judged(pull, facts) for one in found)
    return list(dict.fromkeys(one.code for one in said if one.status is Status.FAIL))


def _judged(pull: PullRequestFacts, facts: GateFacts) -> list[tuple[Check, list[Finding]]]:
    last = [row for row in LAST if row[0] != "local" or pull.local is not None]
    rows = [_check(name, needs, rule, pull, facts.policy) for name, needs, rule in CHECKS]
    rows.append(_coherent(pull, facts))
    return rows + [_check(name, needs, rule, pull, facts.policy) for name, needs, rule in last]


def _check(
    name: str, needs: tuple[str, ...], rule: Rule, pull: PullRequestFacts, policy: GatePolicy
) -> tuple[Check, list[Finding]]:
    if name in policy.out_of_scope:
        return _out_of_scope(name, pull), []
    missing = [one for one in (getattr(pull, need) for need in needs) if isinstance(one, Unknown)]
    said = rule(pull, policy) + [gate_deps.unknown(one, pull.name) for one in missing if one.code]
    row = _with_reason(check_of(name, said, subject=pull.name), said)
    if name == "forge_mergeable" and policy.forge_mergeable == "advisory":
        row = row.model_copy(update={"state": State.OUT_OF_SCOPE, "reason": "policy: advisory"})
    return _lowered(row, missing, pull), said


def _with_reason(row: Check, said: list[Finding]) -> Check:
    """A row that does not pass names its own findings."""
    codes = dict.fromkeys(one.code for one in said if not one.note)
    return row.model_copy(update={"reason": ", ".join(codes)}) if codes else row


def _lowered(row: Check, missing: list[Unknown], pull: PullRequestFacts) -> Check:
    """A check that could not see everything it needs does not pass."""
    if row.status is not Status.PASS:
        return row
    if missing:
        status = Status.INCONCLUSIVE if any(one.code for one in missing) else Status.NOT_RUN
        return row.model_copy(update={"status": status, "reason": missing[0].what})
    if row.id == "forge_mergeable" and isinstance(pull.pull, ForgePull) and pull.pull.state != "open":
        return row.model_copy(update={"status": Status.NOT_RUN, "reason": f"it is {pull.pull.state}"})
    return row


def _coherent(pull: PullRequestFacts, facts: GateFacts) -> tuple[Check, list[Finding]]:
    if SET_CHECK in facts.policy.out_of_scope:
        return _out_of_scope(SET_CHECK, pull), []
    said = gate_deps.coherent(pull, facts.pulls)
    missing = [pull.submodules] if isinstance(pull.submodules, Unknown) else []
    row = _with_reason(check_of(SET_CHECK, said, subject=pull.name), said)
    return _lowered(row, missing, pull), said


def _out_of_scope(name: str, pull: PullRequestFacts) -> Check:
    reason = "policy.out_of_scope"
    return Check(id=name, state=State.OUT_OF_SCOPE, status=Status.NOT_RUN, subject=pull.name, reason=reason)


def _judged_note(pull: PullRequestFacts) -> Finding:
    """What was looked at, for whoever builds from it or checks it (F44)."""
    evidence: dict[str, object] = {"base": pull.pinned_base, "head": pull.pinned_head}
    if isinstance(pull.head, HeadFacts):
        evidence["live_head"] = pull.head.ref or pull.head.forge
    if isinstance(pull.base, BaseFacts):
        evidence["live_base"] = pull.base.tip
    if isinstance(pull.pinned_merge, MergeFacts):
        evidence["merge_tree"] = pull.pinned_merge.tree
        evidence["merge_bases"] = list(pull.pinned_merge.merge_bases)
    if isinstance(pull.range, RangeFacts):
        evidence["own_commits"] = pull.range.own_count
    if isinstance(pull.stack, StackFacts):
        evidence["open_pull_requests"] = pull.stack.open_count
    evidence["answers"] = pull.answers
    return note("JUDGED", pull.name, actual=f"{pull.pinned_base} and {pull.pinned_head}", evidence=evidence)
