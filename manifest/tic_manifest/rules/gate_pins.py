"""Are the pinned commits still what is proposed? (rules/pr-gate.md F18-F24, F28)"""

from __future__ import annotations

from tic_manifest.model.gate import (
    BaseFacts,
    ForgePull,
    GatePolicy,
    HeadFacts,
    MergeFacts,
    PullRequestFacts,
    RangeFacts,
)
from tic_manifest.model.verdict import Finding, Status, finding, note
from tic_manifest.rules.gate_trunk import is_trunk


def head(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """PIN_UNFETCHABLE, HEAD_RECORD_LAG, PIN_NOT_IN_PR, HEAD_MOVED, MERGE_REF_STALE."""
    seen = facts.head
    if not isinstance(seen, HeadFacts):
        return []
    if seen.pinned == "unfetchable":
        return [_unfetchable(facts)]
    records = [one for one in (seen.ref, seen.forge, seen.branch, seen.listed) if one is not None]
    found = []
    if len(set(records)) > 1:
        found.append(_lag(facts, seen))
    if facts.pinned_head not in records:
        found += _moved(facts, seen, records)
    return found + _merge_ref(facts, seen)


def _unfetchable(facts: PullRequestFacts) -> Finding:
    return finding(
        "PIN_UNFETCHABLE",
        Status.FAIL,
        facts.name,
        expected=f"{facts.pinned_base} and {facts.pinned_head} on the server",
        actual="the server has no such object",
        evidence={"oids": [facts.pinned_base, facts.pinned_head]},
        remedy=f"tic-manifest lock RECIPE --repin {facts.name}",
    )


def _lag(facts: PullRequestFacts, seen: HeadFacts) -> Finding:
    said = {"forge": seen.forge, "ref": seen.ref, "branch": seen.branch, "list": seen.listed}
    return finding(
        "HEAD_RECORD_LAG",
        Status.INCONCLUSIVE,
        facts.name,
        expected=f"one head in the forge's record, refs/pull/{facts.number}/head and the head branch",
        actual=", ".join(f"{name} {oid}" for name, oid in said.items() if oid),
        evidence={"oids": [oid for oid in said.values() if oid]},
        remedy="run the gate again in a minute",
    )


def _moved(facts: PullRequestFacts, seen: HeadFacts, records: list[str]) -> list[Finding]:
    live = records[0] if records else None
    if live is None or seen.pin_in_head is None:
        return [_not_in(facts, live)] if live is None else []
    if seen.pin_in_head:
        return [_head_moved(facts, seen, "fast_forward", live)]
    if seen.equal:
        return [_head_moved(facts, seen, "rebased_equal", live)]
    return [_head_moved(facts, seen, "rewritten", live)] if seen.former else [_not_in(facts, live)]


def _head_moved(facts: PullRequestFacts, seen: HeadFacts, kind: str, live: str) -> Finding:
    return finding(
        f"HEAD_MOVED/{kind}",
        Status.FAIL,
        facts.name,
        expected=f"head {facts.pinned_head}",
        actual=f"head {live}",
        evidence={
            "oids": [facts.pinned_head, live],
            "auto_repin": kind == "rebased_equal",
            "added": list(seen.added),
            "added_count": seen.added_count,
            "paths": list(seen.interdiff),
            "range_diff": list(seen.range_diff),
            "former_by": seen.former_by,
            "commands": [f"git range-diff {facts.pinned_base} {facts.pinned_head} {live}"],
        },
        remedy=f"pull_requests.{facts.name}.head: {live}",
    )


def _not_in(facts: PullRequestFacts, live: str | None) -> Finding:
    return finding(
        "PIN_NOT_IN_PR",
        Status.FAIL,
        facts.name,
        expected=f"{facts.pinned_head} reachable from refs/pull/{facts.number}/head",
        actual=f"the head is {live}" if live else f"there is no pull request #{facts.number}",
        evidence={
            "oids": [facts.pinned_head, *([live] if live else [])],
            "commands": [f"git merge-base --is-ancestor {facts.pinned_head} refs/pull/{facts.number}/head"],
        },
        remedy=f"pull_requests.{facts.name}.head: {live}" if live else "mend the pull request's URL",
    )


def _merge_ref(facts: PullRequestFacts, seen: HeadFacts) -> list[Finding]:
    tip = facts.base.tip if isinstance(facts.base, BaseFacts) else None
    if seen.merge_parents is None or tip is None or set(seen.merge_parents) == {tip, seen.ref}:
        return []
    ref = f"refs/pull/{facts.number}/merge"
    parents = list(seen.merge_parents)
    evidence = {"oids": parents}
    return [
        note("MERGE_REF_STALE", facts.name, expected=f"{ref} merges {tip} and {seen.ref}", evidence=evidence)
    ]


def base(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """BASE_GONE, BASE_REWRITTEN, BASE_PIN_BEHIND_HEAD, BASE_MOVED, TRUNK_COMMITS."""
    seen = facts.base
    if not isinstance(seen, BaseFacts):
        return []
    closed = isinstance(facts.pull, ForgePull) and facts.pull.state != "open"
    if seen.tip is None:
        return [] if closed else [_gone(facts, seen)]
    if seen.pinned_in_tip is False:
        return [_rewritten(facts, seen)]
    found = [_behind(facts, seen)] if seen.trunk_in_range_count and not _merged(facts) else []
    if seen.ahead and _aims_right(facts):
        found.append(_drift(facts, seen, policy))
    return found + [
        note("TRUNK_COMMITS", facts.name, actual=f"{name} n={count}", evidence={"trunk": name, "n": count})
        for name, count in seen.other_trunks
    ]


def _merged(facts: PullRequestFacts) -> bool:
    return isinstance(facts.pull, ForgePull) and facts.pull.merged


def _aims_right(facts: PullRequestFacts) -> bool:
    """Drift is judged where the recipe's target is the live one, or the live one is unknown."""
    return not isinstance(facts.pull, ForgePull) or facts.pull.base_ref == facts.target


def _gone(facts: PullRequestFacts, seen: BaseFacts) -> Finding:
    return finding(
        "BASE_GONE",
        Status.FAIL,
        facts.name,
        expected=f"branch {seen.branch}",
        actual="the server has no such branch",
        remedy=f"gh pr edit {facts.url} --base TRUNK",
    )


def _rewritten(facts: PullRequestFacts, seen: BaseFacts) -> Finding:
    return finding(
        "BASE_REWRITTEN",
        Status.FAIL,
        facts.name,
        expected=f"{facts.pinned_base} in the history of {seen.branch}",
        actual=f"{seen.branch} is {seen.tip}, without it",
        evidence={
            "oids": [facts.pinned_base, seen.tip],
            "commands": [f"git merge-base --is-ancestor {facts.pinned_base} {seen.tip}"],
        },
        remedy=f"pull_requests.{facts.name}.base: {seen.tip}",
    )


def _behind(facts: PullRequestFacts, seen: BaseFacts) -> Finding:
    return finding(
        "BASE_PIN_BEHIND_HEAD",
        Status.FAIL,
        facts.name,
        expected=f"no commit of {seen.branch} between pinned base and head",
        actual=f"{seen.trunk_in_range_count} commits of {seen.branch}",
        evidence={
            "oids": list(seen.trunk_in_range),
            "commands": [f"git rev-list {facts.pinned_head} --not {facts.pinned_base}"],
        },
        remedy=f"pull_requests.{facts.name}.base: {seen.tip}",
    )


def _drift(facts: PullRequestFacts, seen: BaseFacts, policy: GatePolicy) -> Finding:
    unlimited = policy.drift_action == "note" and policy.drift_commits == 0
    allowed = unlimited or seen.ahead <= policy.drift_commits
    return finding(
        "BASE_MOVED",
        Status.PASS if allowed else Status.FAIL,
        facts.name,
        note=allowed,
        expected=f"{seen.branch} at most {policy.drift_commits} commits ahead of {facts.pinned_base}",
        actual=f"{seen.ahead} commits ahead; {_effect(facts, seen)}",
        evidence={"oids": [facts.pinned_base, seen.tip], "paths": list(seen.touched), "ahead": seen.ahead},
        remedy=f"pull_requests.{facts.name}.base: {seen.tip}",
    )


def _effect(facts: PullRequestFacts, seen: BaseFacts) -> str:
    """Whether the merge comes out the same, as far as the pull request's own paths go."""
    pinned, live = facts.pinned_merge, facts.live_merge
    if isinstance(pinned, MergeFacts) and isinstance(live, MergeFacts) and pinned.tree == live.tree:
        return "the merge tree is unchanged"
    if seen.touched:
        return f"the merge tree changes in paths that the pull request touches: {', '.join(seen.touched)}"
    return "the merge tree changes, but in no path that the pull request touches"


def content(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """PR_EMPTY: nothing of our own is left; a merged pull request is PR_MERGED instead."""
    if not isinstance(facts.range, RangeFacts) or facts.range.own_count or _merged(facts):
        return []
    reverts = list(facts.range.reverts)
    trunk = facts.target if is_trunk(facts.target, facts.trunks) else "its trunk"
    return [
        finding(
            "PR_EMPTY",
            Status.FAIL,
            facts.name,
            expected=f"a commit that {trunk} does not hold",
            actual="the range is empty" + (f"; reverted by {', '.join(reverts)}" if reverts else ""),
            evidence={
                "oids": reverts,
                "commands": [f"git rev-list {facts.pinned_head} --not {facts.pinned_base} {trunk}"],
            },
            remedy="revert the revert in a new commit" if reverts else f"drop pull_requests.{facts.name}",
        )
    ]
