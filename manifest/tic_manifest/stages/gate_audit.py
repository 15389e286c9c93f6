"""What became of the pull requests of a delivered image: how they were merged, and what reverts that."""

from __future__ import annotations

from typing import Literal

from tic_manifest.model.base import GitCommit
from tic_manifest.model.gate import AuditFacts, ForgePull
from tic_manifest.ports_gate import GateGit
from tic_manifest.stages.gate_git import Refs
from tic_manifest.stages.gate_reads import Pinned, cut


def audit_facts(git: GateGit, pin: Pinned, refs: Refs, pull: ForgePull) -> AuditFacts:
    """Compare what was merged with what was delivered."""
    tip = refs.branch(pull.base_ref) or refs.branch(pin.target)
    if tip is None:
        return AuditFacts(merged_as=None)
    git.fetch([tip, *([pull.merge_commit] if pull.merge_commit and pull.merged else [])])
    merged_as = _merged_as(git, pin, pull, tip) if pull.merged else None
    landed = {pin.head, *([pull.merge_commit] if pull.merge_commit and pull.merged else [])}
    return AuditFacts(merged_as=merged_as, reverts=cut(_standing(git, tip, landed)))


def _merged_as(
    git: GateGit, pin: Pinned, pull: ForgePull, tip: GitCommit
) -> Literal["ancestor", "squash", "rebase", "different"] | None:
    if git.is_ancestor(pin.head, tip):
        return "ancestor"
    merge, fork = pull.merge_commit, git.merge_base(pin.base, pin.head)
    if merge is None or fork is None or not git.is_ancestor(merge, tip):
        return None
    parent = git.parents(merge)[:1]
    if parent and git.net_patch(parent[0], merge) == git.net_patch(fork, pin.head):
        return "squash"
    own = [one.patch for one in git.commits(git.reachable([pin.head], [fork])[:500], patches=True)]
    landed = [one.patch for one in git.commits(git.reachable([merge], [fork])[: len(own)], patches=True)]
    return "rebase" if own and all(own) and own == landed else "different"


def _standing(git: GateGit, tip: GitCommit, landed: set[GitCommit]) -> list[GitCommit]:
    """Reverts that were not reverted themselves."""
    found = {by for oid in landed for by in git.reverts(tip, oid)}
    return sorted(by for by in found if not git.reverts(tip, by))
