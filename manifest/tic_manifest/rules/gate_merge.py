"""Does it merge? The local merge decides, the forge is heard (rules/pr-gate.md 1.3, F14-F17)."""

from __future__ import annotations

from tic_manifest.model.gate import ForgePull, GatePolicy, MergeFacts, PullRequestFacts
from tic_manifest.model.verdict import Finding, Status, finding, note

CALM = {"clean", "draft"}
BLOCKED = {"blocked", "behind", "unstable", "has_hooks"}
UNSURE = {"unknown", "checking"}


def local(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """NO_COMMON_HISTORY, MERGE_CONFLICT, /driver and /live_base."""
    pinned = _conflict(facts, facts.pinned_merge, "")
    if pinned or not isinstance(facts.pinned_merge, MergeFacts):
        return pinned
    return _conflict(facts, facts.live_merge, "/live_base")


def _conflict(facts: PullRequestFacts, seen: object, variant: str) -> list[Finding]:
    if not isinstance(seen, MergeFacts):
        return []
    if not seen.merge_bases:
        return [_unrelated(facts, seen)]
    driven = seen.driven_conflicts
    if seen.conflicts and driven is not None and not driven:
        return [
            _said(facts, seen, "MERGE_CONFLICT/driver", seen.conflicts, "clean only because a driver ran")
        ]
    if seen.conflicts:
        return [_said(facts, seen, f"MERGE_CONFLICT{variant}", seen.conflicts, "conflicts")]
    if driven:
        words = "the repository's attributes ask for no text merge"
        return [_said(facts, seen, "MERGE_CONFLICT/driver", driven, words)]
    return []


def _said(
    facts: PullRequestFacts, seen: MergeFacts, code: str, paths: tuple[str, ...], words: str
) -> Finding:
    return finding(
        code,
        Status.FAIL,
        facts.name,
        expected="a clean merge",
        actual=f"{words}: {', '.join(paths)}",
        evidence={
            "oids": [seen.base, seen.head, *seen.merge_bases],
            "paths": list(paths),
            "commands": [f"git merge-tree --write-tree --name-only {seen.base} {seen.head}"],
        },
        remedy=f"git merge {seen.base}  # in the pull request's branch, then pin the new head",
    )


def _unrelated(facts: PullRequestFacts, seen: MergeFacts) -> Finding:
    return finding(
        "NO_COMMON_HISTORY",
        Status.FAIL,
        facts.name,
        expected="a common ancestor of base and head",
        actual="none in the whole history",
        evidence={
            "oids": [seen.base, seen.head],
            "commands": [f"git merge-base --all {seen.base} {seen.head}"],
        },
        remedy=f"recreate the pull request on top of {facts.target}",
    )


def forge(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """FORGE_UNKNOWN, FORGE_DISAGREES, and a note for what blocks without being a conflict."""
    pull = facts.pull
    if not isinstance(pull, ForgePull) or pull.state != "open":
        return []
    word = pull.mergeable_state
    if pull.mergeable is False or word == "dirty":
        return _dirty(facts, pull, policy)
    found = [note("FORGE_STATE", facts.name, actual=word)] if word in BLOCKED else []
    if pull.mergeable is None or (word is not None and word not in CALM | BLOCKED):
        found.append(_unknown(facts, pull, policy))
    return found


def _dirty(facts: PullRequestFacts, pull: ForgePull, policy: GatePolicy) -> list[Finding]:
    seen = facts.forge_merge
    if not isinstance(seen, MergeFacts) or not seen.merge_bases or seen.conflicts or seen.driven_conflicts:
        return []
    return [
        _weighed(
            policy,
            "FORGE_DISAGREES",
            facts.name,
            expected="forge and local merge agree",
            actual=f"forge: mergeable {_json(pull.mergeable)}, {pull.mergeable_state}; local merge is clean",
            evidence={"oids": [seen.base, seen.head, seen.tree], "polls": facts.polls},
            remedy="run the gate again; if it stays, close and reopen the pull request",
        )
    ]


def _unknown(facts: PullRequestFacts, pull: ForgePull, policy: GatePolicy) -> Finding:
    return _weighed(
        policy,
        "FORGE_UNKNOWN",
        facts.name,
        expected="mergeable: true",
        actual=f"mergeable: {_json(pull.mergeable)}, mergeable_state: {pull.mergeable_state}",
        evidence={"polls": facts.polls},
        remedy="run the gate again, or set policy.forge_mergeable: advisory beforehand",
    )


def _weighed(policy: GatePolicy, code: str, subject: str, **fields: object) -> Finding:
    """Inconclusive, or a note where the policy said beforehand that the forge's word is advice."""
    if policy.forge_mergeable == "advisory":
        return note(code, subject, **fields)
    return finding(code, Status.INCONCLUSIVE, subject, **fields)


def _json(value: bool | None) -> str:
    return {True: "true", False: "false", None: "null"}[value]
