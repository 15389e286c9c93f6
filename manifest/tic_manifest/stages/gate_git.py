"""Head, base and merge of one pull request, by git (rules/pr-gate.md F17-F24)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tic_manifest.errors import RefusedError
from tic_manifest.model.base import GitCommit
from tic_manifest.model.gate import BaseFacts, ForgePull, HeadFacts, MergeFacts, RangeFacts
from tic_manifest.ports_gate import Commit, GateGit
from tic_manifest.rules.gate_trunk import is_trunk
from tic_manifest.stages.gate_reads import Pinned, cut

MOST_COMPARED = 200
"""Commits of a range that range-diff compares."""


@dataclass(frozen=True)
class Refs:
    """Refs of the server at one moment, full names."""

    named: Mapping[str, GitCommit]

    def branch(self, name: str) -> GitCommit | None:
        """The tip of a branch."""
        return self.named.get(f"refs/heads/{name}")

    def head(self, number: int) -> GitCommit | None:
        """The head of a pull request."""
        return self.named.get(f"refs/pull/{number}/head")

    def merge(self, number: int) -> GitCommit | None:
        """The forge's own test merge."""
        return self.named.get(f"refs/pull/{number}/merge")

    def trunks(self, globs: Sequence[str]) -> dict[str, GitCommit]:
        """Branches that are agreed trunks, with their tips."""
        prefix = "refs/heads/"
        heads = {name[len(prefix) :]: oid for name, oid in self.named.items() if name.startswith(prefix)}
        return {name: heads[name] for name in sorted(heads) if is_trunk(name, globs)}

    def pulls(self) -> dict[int, GitCommit]:
        """Heads of all pull requests, open and closed."""
        found = {}
        for name, oid in self.named.items():
            parts = name.split("/")
            if len(parts) == 4 and parts[1] == "pull" and parts[3] == "head" and parts[2].isdigit():
                found[int(parts[2])] = oid
        return found


def read_refs(git: GateGit, pin: Pinned) -> Refs:
    """Branches, and heads of pull requests. Raises UnavailableError."""
    patterns = ["refs/heads/*", "refs/pull/*/head", f"refs/pull/{pin.number}/merge"]
    return Refs(git.remote_refs(patterns))


def fetch_pins(git: GateGit, pin: Pinned) -> bool:
    """Make both pins present; False where the server has not even one of them."""
    try:
        git.fetch([pin.base, pin.head])
    except RefusedError as error:
        if error.code != "PIN_UNFETCHABLE":
            raise
        return False
    return True


def fetch_live(git: GateGit, pin: Pinned, refs: Refs) -> None:
    """Make trunks, live base, live head and the forge's merge present."""
    wanted = [*refs.trunks(pin.trunks).values(), refs.branch(pin.target)]
    wanted += [refs.head(pin.number), refs.merge(pin.number)]
    git.fetch([oid for oid in wanted if oid is not None])


def range_facts(git: GateGit, pin: Pinned, refs: Refs) -> RangeFacts:
    """OWN, and what reverted it where it is empty."""
    own = own_commits(git, pin, refs)
    tip = refs.branch(pin.target)
    reverts = git.reverts(tip, pin.head) if tip and not own else ()
    return RangeFacts(own=cut(own), own_count=len(own), reverts=cut(reverts))


def own_commits(git: GateGit, pin: Pinned, refs: Refs) -> tuple[GitCommit, ...]:
    """`rev-list PIN --not PINNED_BASE trunks`, newest first."""
    return git.reachable([pin.head], [pin.base, *refs.trunks(pin.trunks).values()])


def base_facts(git: GateGit, pin: Pinned, refs: Refs, pull: ForgePull | None) -> BaseFacts:
    """The pinned base against the trunk that it belongs to."""
    if refs.branch(pin.target) is None:
        return BaseFacts(branch=pin.target, tip=None)
    branch = _branch_of_base(git, pin, refs, pull)
    tip = refs.branch(branch)
    if tip is None or not git.is_ancestor(pin.base, tip):
        return BaseFacts(branch=branch, tip=tip, pinned_in_tip=None if tip is None else False)
    inside = _trunk_in_range(git, pin, tip)
    ahead = git.reachable([tip], [pin.base])
    return BaseFacts(
        branch=branch,
        tip=tip,
        pinned_in_tip=True,
        ahead=len(ahead),
        touched=cut(_touched(git, pin, tip)) if ahead else (),
        trunk_in_range=cut(inside),
        trunk_in_range_count=len(inside),
        other_trunks=_other_trunks(git, pin, refs, branch, tip),
    )


def _branch_of_base(git: GateGit, pin: Pinned, refs: Refs, pull: ForgePull | None) -> str:
    """The recipe's target; the live base branch only where the pinned base is on that one alone."""
    live = pull.base_ref if pull else pin.target
    tips = {name: refs.branch(name) for name in dict.fromkeys((pin.target, live))}
    git.fetch([oid for oid in tips.values() if oid])
    holding = [name for name, oid in tips.items() if oid and git.is_ancestor(pin.base, oid)]
    return holding[0] if holding else pin.target


def _trunk_in_range(git: GateGit, pin: Pinned, tip: GitCommit) -> list[GitCommit]:
    without = set(git.reachable([pin.head], [pin.base, tip]))
    return [oid for oid in git.reachable([pin.head], [pin.base]) if oid not in without]


def _touched(git: GateGit, pin: Pinned, tip: GitCommit) -> list[str]:
    fork = git.merge_base(pin.base, pin.head)
    ours = set(git.changed_paths(fork, pin.head)) if fork else set()
    return sorted(ours & set(git.changed_paths(pin.base, tip)))


def _other_trunks(
    git: GateGit, pin: Pinned, refs: Refs, branch: str, tip: GitCommit
) -> tuple[tuple[str, int], ...]:
    alone = len(git.reachable([pin.head], [pin.base, tip]))
    others = {name: oid for name, oid in refs.trunks(pin.trunks).items() if name != branch and oid != tip}
    if not others or alone == len(git.reachable([pin.head], [pin.base, tip, *others.values()])):
        return ()
    counts = ((n, alone - len(git.reachable([pin.head], [pin.base, tip, oid]))) for n, oid in others.items())
    return tuple((name[:500], count) for name, count in counts if count)[:100]


def merge_facts(git: GateGit, base: GitCommit, head: GitCommit) -> MergeFacts:
    """One merge, without and with the repository's own merge attributes."""
    git.fetch([base, head])
    bases = git.merge_bases(base, head)
    if not bases:
        return MergeFacts(base=base, head=head, merge_bases=(), tree=None)
    merged = git.merge(base, head)
    driven = git.merge_driven(base, head)
    return MergeFacts(
        base=base,
        head=head,
        merge_bases=cut(bases),
        tree=merged.tree,
        conflicts=cut(merged.conflicts),
        driven_conflicts=None if driven is None else cut(driven),
    )


def head_facts(
    git: GateGit,
    pin: Pinned,
    refs: Refs,
    records: HeadFacts,
    repo_id: int | None,
    pushed: Sequence[GitCommit],
) -> HeadFacts:
    """Where the pinned head stands to the live one. `records` holds the three records of the live head."""
    live = records.ref or records.forge or records.branch
    merge = refs.merge(pin.number)
    parents = git.parents(merge)[:8] if merge else None
    facts = records.model_copy(update={"merge_parents": parents})
    if live is None:
        return facts
    git.fetch([live])
    if git.is_ancestor(pin.head, live):
        added = git.reachable([live], [pin.head])
        return facts.model_copy(update={"pin_in_head": True, "added": cut(added), "added_count": len(added)})
    trunks = [pin.base, *refs.trunks(pin.trunks).values()]
    ours = git.commits(git.reachable([pin.head], trunks)[:1000], patches=True)
    theirs = git.commits(git.reachable([live], trunks)[:1000], patches=True)
    why = _former(git, pin, ours, theirs, repo_id, pushed, refs)
    return facts.model_copy(
        update={
            "pin_in_head": False,
            "equal": _equal(ours, theirs),
            "former": bool(why),
            "former_by": why,
            "interdiff": cut(git.changed_paths(pin.head, live)),
            "newer_fork": _newer_fork(git, pin, refs, live),
            "range_diff": _range_diff(git, pin, refs, live),
        }
    )


def _newer_fork(git: GateGit, pin: Pinned, refs: Refs, live: GitCommit) -> GitCommit | None:
    trunk = refs.branch(pin.target)
    fork = git.merge_base(trunk, live) if trunk else None
    newer = fork is not None and fork != pin.base and git.is_ancestor(pin.base, fork)
    return fork if newer else None


def _range_diff(git: GateGit, pin: Pinned, refs: Refs, live: GitCommit) -> tuple[str, ...]:
    """The certificate of a repin. Ranges beyond 200 commits are not compared: the cost is quadratic."""
    trunk = refs.branch(pin.target) or pin.base
    ranges = [(git.merge_base(trunk, tip), tip) for tip in (pin.head, live)]
    if any(base is None or len(git.reachable([tip], [base])) > MOST_COMPARED for base, tip in ranges):
        return ()
    (old, _), (new, _) = ranges
    return cut(git.range_diff((old or "", pin.head), (new or "", live)))


def _equal(ours: Sequence[Commit], theirs: Sequence[Commit]) -> bool:
    """What range-diff shows as `=` throughout: patch, author and message of each, in order."""
    rows = [
        [(c.patch, c.author, c.email, c.message) for c in side if len(c.parents) < 2]
        for side in (ours, theirs)
    ]
    return bool(rows[0]) and rows[0] == rows[1] and all(row[0] for row in rows[0])


def _former(
    git: GateGit,
    pin: Pinned,
    ours: Sequence[Commit],
    theirs: Sequence[Commit],
    repo_id: int | None,
    pushed: Sequence[GitCommit],
    refs: Refs,
) -> str:
    """By what evidence the pin was once a head of this pull request; "" where there is none (F19)."""
    if repo_id is not None and git.was_pinned(repo_id, pin.number, pin.head):
        return "our own record of the pin"
    if pin.head in pushed:
        return "the forge's timeline"
    if {one.oid for one in ours} & {one.oid for one in theirs}:
        return "shared commits"
    if {one.patch for one in ours if one.patch} & {one.patch for one in theirs if one.patch}:
        return "an equal patch"
    if pin.head in refs.named.values():
        return ""
    return _look_alike(git, ours, theirs)


def _look_alike(git: GateGit, ours: Sequence[Commit], theirs: Sequence[Commit]) -> str:
    """A commit by the same author on a path that the pull request changes, where no ref holds the pin."""
    paths = git.path_sets([one.oid for one in (*ours, *theirs)])
    for left in ours:
        for right in theirs:
            same = left.email == right.email and paths.get(left.oid, frozenset()) & paths.get(
                right.oid, frozenset()
            )
            if same:
                return "same author and path"
    return ""
