"""The smallest change that would pass: changes of the facts, tried alone and together (issue 3).

A change of the forge's record is tried on the facts; a repin and a rebase were tried with real git in a
scratch repository, and their facts are part of the snapshot. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

from tic_manifest.model.gate import Alternative, Closing, ForgePull, PullRequestFacts, Rebased
from tic_manifest.model.verdict import Finding, note
from tic_manifest.rules.gate_trunk import is_trunk

Failing = Callable[[PullRequestFacts], list[str]]
"""Codes that fail for facts."""


@dataclass(frozen=True)
class Change:
    """One thing that a person can do, and the facts after it."""

    words: str
    apply: Callable[[PullRequestFacts], PullRequestFacts]


def counterfactual(facts: PullRequestFacts, failing: Failing) -> list[Finding]:
    """A note COUNTERFACTUAL for a pull request that fails: what would pass, or what would still fail."""
    before = failing(facts)
    if not before:
        return []
    best, left = _smallest(facts, changes(facts), failing, before)
    words = [one.words for one in best]
    if left and isinstance(facts.rebased, Rebased) and not isinstance(facts.rebased.after, Alternative):
        words.append(_rebase_words(facts.rebased))
    if not words:
        return []
    still = f"; still: {', '.join(left)}" if left else ""
    evidence: dict[str, object] = {"fails_now": before, "fails_then": left, "tried": [c.words for c in best]}
    if isinstance(facts.rebased, Rebased):
        evidence["rebase"] = facts.rebased.model_dump(mode="json", exclude={"after"})
    return [note("COUNTERFACTUAL", facts.name, actual="; then ".join(words) + still, evidence=evidence)]


def _smallest(
    facts: PullRequestFacts, offered: list[Change], failing: Failing, before: list[str]
) -> tuple[tuple[Change, ...], list[str]]:
    """The smallest set of changes after which least fails."""
    best: tuple[tuple[Change, ...], list[str]] = ((), before)
    for size in range(1, len(offered) + 1):
        for chosen in combinations(offered, size):
            after = facts
            for one in chosen:
                after = one.apply(after)
            left = failing(after)
            if len(left) < len(best[1]):
                best = (chosen, left)
        if not best[1]:
            break
    return best


def changes(facts: PullRequestFacts) -> list[Change]:
    """What a person can do here."""
    found = []
    pull, repin = facts.pull, facts.alternative
    if isinstance(repin, Alternative):
        words = f"pin base {repin.base} and head {repin.head}"
        found.append(Change(words, lambda one: _repinned(one, repin)))
    if isinstance(facts.rebased, Rebased) and isinstance(facts.rebased.after, Alternative):
        pushed = facts.rebased.after
        found.append(Change(_rebase_words(facts.rebased), lambda one: _repinned(one, pushed)))
    if not isinstance(pull, ForgePull):
        return found
    if pull.draft:
        found.append(Change(f"gh pr ready {facts.url}", lambda one: _with(one, draft=False)))
    if pull.state != "open" and not pull.merged:
        found.append(Change(f"gh pr reopen {facts.url}", lambda one: _with(one, state="open")))
    if pull.base_ref != facts.target and is_trunk(facts.target, facts.trunks):
        words = f"gh pr edit {facts.url} --base {facts.target}"
        found.append(Change(words, lambda one: _with(one, base_ref=facts.target)))
    return found


def _with(facts: PullRequestFacts, **fields: object) -> PullRequestFacts:
    """The facts as if the forge's record had always said so."""
    updated: dict[str, object] = {}
    if isinstance(facts.pull, ForgePull):
        updated["pull"] = facts.pull.model_copy(update=fields)
    if isinstance(facts.closing, Closing):
        updated["closing"] = facts.closing.model_copy(update=fields)
    return facts.model_copy(update=updated)


def _repinned(facts: PullRequestFacts, repin: Alternative) -> PullRequestFacts:
    return facts.model_copy(
        update={
            "pinned_base": repin.base,
            "pinned_head": repin.head,
            "base": repin.base_facts,
            "head": repin.head_facts,
            "range": repin.range,
            "stack": repin.stack,
            "pinned_merge": repin.merge,
            "live_merge": repin.merge,
            "residues": repin.residues,
        }
    )


def _rebase_words(seen: Rebased) -> str:
    what = f"rebase {seen.kept_count} commits onto {seen.onto}"
    if seen.dropped_count:
        what += f" without {seen.dropped_count} that are not its own"
    if seen.conflicts:
        return f"{what}: tried, conflicts in {', '.join(seen.conflicts)}"
    return f"{what}: tried, clean, tree {seen.tree}"
