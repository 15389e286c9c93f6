"""What a repin or a rebase would give, tried with real git and kept as facts (issue 3, counterfactual)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tic_manifest.formats.forge_pull import Listed
from tic_manifest.model.gate import (
    Alternative,
    BaseFacts,
    HeadFacts,
    MergeFacts,
    PullRequestFacts,
    Rebased,
    StackFacts,
    Unknown,
)
from tic_manifest.stages import gate_git, gate_stack
from tic_manifest.stages.gate_git import Refs
from tic_manifest.stages.gate_look import Look
from tic_manifest.stages.gate_reads import cut, known

MOST_COMMITS = 200
"""A longer range is not replayed."""


def with_tries(facts: PullRequestFacts, look: Look, rows: Mapping[int, Listed] | Unknown) -> PullRequestFacts:
    """The facts, with a repin where a pin has moved and a rebase where it would mend something."""
    updated: dict[str, object] = {}
    base, head = _live(facts)
    if base and head and (base, head) != (facts.pinned_base, facts.pinned_head):
        updated["alternative"] = known(lambda: _alternative(look, rows, base, head))
    foreign = _foreign(facts)
    conflict = isinstance(facts.pinned_merge, MergeFacts) and bool(facts.pinned_merge.conflicts)
    if base and (foreign or conflict):
        tip = base
        updated["rebased"] = look.ask(lambda refs: _rebased(look, rows, refs, tip, foreign))
    return facts.model_copy(update=updated) if updated else facts


def _live(facts: PullRequestFacts) -> tuple[str | None, str | None]:
    base = facts.base.tip if isinstance(facts.base, BaseFacts) else None
    head = facts.head.ref or facts.head.forge if isinstance(facts.head, HeadFacts) else None
    return base, head


def _alternative(
    look: Look, rows: Mapping[int, Listed] | Unknown, base: str, head: str, seen: HeadFacts | None = None
) -> Alternative | Unknown:
    """The facts with other pins; `seen` stands for the records of a head that nobody has pushed."""
    first = replace(look.first, pin=replace(look.first.pin, base=base, head=head))
    other, git, pin = Look(first, look.world, look.listings), first.git, first.pin
    merge = other.ask(lambda refs: gate_git.merge_facts(git, base, head))
    tree = merge.tree if isinstance(merge, MergeFacts) and not merge.conflicts else None
    forge = look.world.forge
    return Alternative(
        base=base,
        head=head,
        base_facts=other.ask(lambda refs: gate_git.base_facts(git, pin, refs, first.pull)),
        head_facts=seen or other.head(rows),
        range=other.ask(lambda refs: gate_git.range_facts(git, pin, refs)),
        stack=other.around(rows, lambda around: gate_stack.stack_facts(git, forge, around), needs_rows=True),
        merge=merge,
        residues=other.around(rows, lambda around: gate_stack.residues(git, forge, around, tree)),
    )


def _foreign(facts: PullRequestFacts) -> set[str]:
    """Own commits that another pull request owns, or that were merged in another form."""
    found: set[str] = set()
    if isinstance(facts.stack, StackFacts):
        for relation in facts.stack.relations:
            found |= set(relation.shared) if relation.ours_only else set()
        for content in facts.stack.contents:
            found |= {pair.ours for pair in content.strong} if content.ours_left else set()
            found |= {content.squashed} if content.squashed else set()
    if isinstance(facts.residues, tuple):
        found |= {oid for residue in facts.residues for oid in residue.commits}
    return found


def _rebased(
    look: Look, rows: Mapping[int, Listed] | Unknown, refs: Refs, tip: str, foreign: set[str]
) -> Rebased | Unknown:
    git, pin = look.first.git, look.first.pin
    own = [oid for oid in reversed(gate_git.own_commits(git, pin, refs)) if oid not in foreign]
    kept = [one.oid for one in git.commits(own[:MOST_COMMITS]) if len(one.parents) == 1]
    if not kept or len(own) > MOST_COMMITS:
        return Unknown(code="", what="there is nothing to replay, or too much")
    replayed = git.replay(tip, kept)
    return Rebased(
        onto=tip,
        dropped=cut(sorted(foreign)),
        dropped_count=len(foreign),
        kept_count=len(kept),
        tree=replayed.tree,
        conflicts=cut(replayed.conflicts),
        after=None if replayed.conflicts else known(lambda: _pushed(look, rows, tip, kept)),
    )


def _pushed(
    look: Look, rows: Mapping[int, Listed] | Unknown, tip: str, kept: Sequence[str]
) -> Alternative | Unknown:
    """The facts as if the rebased commits were the live head and pinned."""
    head = look.first.git.rebased(tip, kept)
    seen = HeadFacts(pinned="present", forge=head, ref=head, branch=head, listed=head, pin_in_head=True)
    return _alternative(look, rows, tip, head, seen)
