"""A delivered image judged again: merged with equal content is fine, closed, rewritten or reverted is not.

Source of the rule: contract, section 3 (`gate IMAGE`).
"""

from __future__ import annotations

from tic_manifest.model.gate import AuditFacts, BaseFacts, ForgePull, GatePolicy, PullRequestFacts
from tic_manifest.model.verdict import Finding, Status, finding, note
from tic_manifest.rules import gate_pins, gate_state
from tic_manifest.rules.gate_trunk import is_trunk


def state(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """MERGED_SINCE as a note where the trunk holds the same content; else as the gate says."""
    pull, seen = facts.pull, facts.audit
    if not isinstance(pull, ForgePull) or not pull.merged:
        return gate_state.state(facts, policy)
    if not isinstance(seen, AuditFacts):
        return []
    if is_trunk(pull.base_ref, facts.trunks) and seen.merged_as not in {None, "different"}:
        words = f"into {pull.base_ref} by {seen.merged_as}"
        return [note("MERGED_SINCE", facts.name, actual=words, evidence={"oids": _merge(pull)})]
    return [
        finding(
            "PR_MERGED",
            Status.FAIL,
            facts.name,
            expected="the content of the image in an agreed trunk",
            actual=f"merged into {pull.base_ref} with other content",
            evidence={"oids": [facts.pinned_head, *_merge(pull)]},
            remedy=f"build again with pull_requests.{facts.name}.base at the merge or later",
        )
    ]


def _merge(pull: ForgePull) -> list[str]:
    return [pull.merge_commit] if pull.merge_commit else []


def head(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """As the gate; commits that were added since, and an equal rebase, are notes. A merged one is settled."""
    if isinstance(facts.pull, ForgePull) and facts.pull.merged:
        return []
    mild = {"HEAD_MOVED/fast_forward", "HEAD_MOVED/rebased_equal"}
    found = gate_pins.head(facts, policy)
    return [_lowered(one) if one.code in mild else one for one in found]


def base(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """BASE_REWRITTEN and BASE_GONE; that a trunk moves on is no news for an image."""
    if not isinstance(facts.base, BaseFacts):
        return []
    found = gate_pins.base(facts, policy)
    return [one for one in found if one.code in {"BASE_REWRITTEN", "BASE_GONE"}]


def reverted(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """PR_REVERTED: the trunk took it back."""
    seen = facts.audit
    if not isinstance(seen, AuditFacts) or not seen.reverts:
        return []
    return [
        finding(
            "PR_REVERTED",
            Status.FAIL,
            facts.name,
            expected="no commit of the trunk that reverts it",
            actual=f"reverted by {', '.join(seen.reverts)}",
            evidence={"oids": list(seen.reverts)},
            remedy="decide whether the image may stay in use, and build again",
        )
    ]


def _lowered(one: Finding) -> Finding:
    return one.model_copy(update={"status": Status.PASS, "note": True})
