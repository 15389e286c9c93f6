"""What a pull request shares with the other open ones: exact sets, then patches (rules/pr-gate.md 1.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tic_manifest.formats.depends_on import Declared
from tic_manifest.formats.forge_pull import Listed, forge_pull
from tic_manifest.model.base import GitCommit
from tic_manifest.model.gate import MAX_LISTED, Content, ForgePull, Pair, Relation, Residue, StackFacts
from tic_manifest.ports_gate import Commit, GateForge, GateGit
from tic_manifest.stages.gate_git import Refs, own_commits
from tic_manifest.stages.gate_reads import Pinned, cut

Side = Literal["ours", "theirs"]


@dataclass(frozen=True, kw_only=True)
class Around:
    """Everything around one pull request: its record, the other open ones, the heads that git names."""

    pin: Pinned
    pull: ForgePull
    depends: tuple[Declared, ...]
    others: Mapping[int, Listed]
    refs: Refs

    @property
    def heads(self) -> dict[int, GitCommit]:
        """Head of every other pull request: git's own ref, the list only where the server keeps no ref."""
        pulls = self.refs.pulls()
        return {number: pulls.get(number, row.head_sha) for number, row in self.others.items()}


def others_of(rows: Mapping[int, Listed], pin: Pinned, repo_id: int | None) -> dict[int, Listed]:
    """Open pull requests of the same repository, by its id, without our own."""
    same = {None, repo_id}
    return {n: row for n, row in sorted(rows.items()) if n != pin.number and row.base_repo_id in same}


def stack_facts(git: GateGit, forge: GateForge, around: Around) -> StackFacts:
    """Relations by commit id and by content, over every other open pull request."""
    heads = around.heads
    git.fetch(list(heads.values()))
    own = own_commits(git, around.pin, around.refs)
    trunks = list(around.refs.trunks(around.pin.trunks).values())
    sets = git.own_of(heads, trunks)
    mine = frozenset(own)
    relations = [
        _relation(git, forge, around, number, own, theirs)
        for number, theirs in sorted(sets.items())
        if mine & theirs
    ]
    return StackFacts(
        open_count=len(around.others) + 1,
        parents=_parents(around),
        relations=tuple(relations),
        contents=tuple(_contents(git, around, own, sets)),
    )


def _parents(around: Around) -> tuple[int, ...]:
    """Whose head branch our base is: by repository id and ref, never by name alone (F2)."""
    pull = around.pull
    return tuple(
        number
        for number, row in around.others.items()
        if row.head_ref == pull.base_ref and row.head_repo_id == pull.base_repo_id
    )[:MAX_LISTED]


def _relation(
    git: GateGit,
    forge: GateForge,
    around: Around,
    number: int,
    own: Sequence[GitCommit],
    theirs: frozenset[GitCommit],
) -> Relation:
    mine = frozenset(own)
    shared = [oid for oid in own if oid in theirs]
    overlap = bool(mine - theirs) and bool(theirs - mine)
    return Relation(
        number=number,
        shared=cut(shared),
        shared_count=len(shared),
        ours_only=len(mine - theirs),
        theirs_only=len(theirs - mine),
        linked=_linked(around, number) if overlap else None,
        author=_author(git, forge, around, number, shared) if overlap else None,
    )


def _linked(around: Around, number: int) -> Side | None:
    """Whose the shared commits are by base branch or `Depends-On` (1.2, rule 3a)."""
    pull, row, pin = around.pull, around.others[number], around.pin
    same_head = row.head_repo_id is not None and row.head_repo_id == pull.base_repo_id
    if (same_head and row.head_ref == pull.base_ref) or _names(around.depends, pin, number):
        return "theirs"
    ours_is_base = pull.head_repo_id == pull.base_repo_id and row.base_ref == pull.head_ref
    return "ours" if ours_is_base or _names(row.depends, pin, pin.number) else None


def _names(depends: Sequence[Declared], pin: Pinned, number: int) -> bool:
    here = {("", ""), (pin.owner.lower(), pin.repo.lower())}
    return any(one.number == number and (one.owner.lower(), one.repo.lower()) in here for one in depends)


def _author(
    git: GateGit, forge: GateForge, around: Around, number: int, shared: Sequence[GitCommit]
) -> Side | None:
    """Whose the shared commits are by their author, where that is one of the two alone (1.2, rule 3b)."""
    ours, theirs = around.pull.author.lower(), around.others[number].author.lower()
    if not ours or not theirs or ours == theirs:
        return None
    names = {_login(forge, around.pin, one) for one in git.commits(list(shared)[:5])}
    if names == {ours}:
        return "ours"
    return "theirs" if names == {theirs} else None


def _login(forge: GateForge, pin: Pinned, commit: Commit) -> str:
    address, _, host = commit.email.lower().partition("@")
    if host == "users.noreply.github.com":
        return address.rpartition("+")[2]
    return forge.commit_login(pin.owner, pin.repo, commit.oid).lower()


def _contents(
    git: GateGit, around: Around, own: Sequence[GitCommit], sets: Mapping[int, frozenset[GitCommit]]
) -> list[Content]:
    mine = frozenset(own)
    explained = frozenset().union(*(mine & theirs for theirs in sets.values())) if sets else frozenset()
    paths = git.path_sets(sorted(mine | frozenset().union(*sets.values())) if sets else [])
    ours = [oid for oid in own if oid not in explained and paths.get(oid)]
    if not ours:
        return []
    wanted = {paths[oid] for oid in ours}
    candidates = sorted({o for theirs in sets.values() for o in theirs - mine if paths.get(o) in wanted})
    details = {one.oid: one for one in git.commits([*ours, *candidates], patches=True)}
    found = []
    for number, theirs in sorted(sets.items()):
        squashed = _squashed(git, around, number, [details[oid] for oid in ours], theirs, paths)
        one = _content(around, number, mine, theirs, ours, details, squashed)
        if one is not None:
            found.append(one)
    return found


def _content(
    around: Around,
    number: int,
    mine: frozenset[GitCommit],
    theirs: frozenset[GitCommit],
    ours: Sequence[GitCommit],
    details: Mapping[GitCommit, Commit],
    squashed: GitCommit | None,
) -> Content | None:
    by_patch = {details[oid].patch: details[oid] for oid in sorted(theirs - mine) if oid in details}
    pairs = [(details[oid], by_patch[details[oid].patch]) for oid in ours if details[oid].patch in by_patch]
    pairs = [pair for pair in pairs if pair[0].patch]
    strong = [pair for pair in pairs if _copied(*pair)]
    if not pairs and squashed is None:
        return None
    left = mine - theirs - {one.oid for one, _ in strong}
    their_left = theirs - mine - {two.oid for _, two in strong}
    return Content(
        number=number,
        strong=_pairs(strong),
        coincident=_pairs([pair for pair in pairs if pair not in strong]),
        ours_left=len(left),
        theirs_left=len(their_left),
        squashed=squashed,
        linked=_linked(around, number) or _picked(strong),
    )


def _copied(ours: Commit, theirs: Commit) -> bool:
    """Equal patch and a sign of copying: same author and date, or a trailer that names the other."""
    same = (ours.email, ours.date) == (theirs.email, theirs.date)
    return same or _trailer(ours, theirs) or _trailer(theirs, ours)


def _trailer(copy: Commit, source: Commit) -> bool:
    return f"cherry picked from commit {source.oid}" in copy.message


def _picked(strong: Sequence[tuple[Commit, Commit]]) -> Side | None:
    if strong and all(_trailer(ours, theirs) for ours, theirs in strong):
        return "theirs"
    return "ours" if strong and all(_trailer(theirs, ours) for ours, theirs in strong) else None


def _pairs(pairs: Sequence[tuple[Commit, Commit]]) -> tuple[Pair, ...]:
    return tuple(Pair(ours=ours.oid, theirs=theirs.oid) for ours, theirs in pairs[:MAX_LISTED])


def _squashed(
    git: GateGit,
    around: Around,
    number: int,
    ours: Sequence[Commit],
    theirs: frozenset[GitCommit],
    paths: Mapping[GitCommit, frozenset[str]],
) -> GitCommit | None:
    """Our commit that is the other's net change, where that takes two commits or more (1.2, rule 4)."""
    parts = [paths[oid] for oid in theirs if paths.get(oid)]
    union = frozenset().union(*parts) if parts else frozenset()
    near = [one for one in ours if one.patch and paths[one.oid] <= union]
    if len(parts) < 2 or not near:
        return None
    row = around.others[number]
    base = around.refs.branch(row.base_ref) or around.refs.branch(around.pin.target)
    head = around.heads[number]
    fork = git.merge_base(base, head) if base else None
    net = git.net_patch(fork, head) if fork else ""
    return next((one.oid for one in near if net and one.patch == net), None)


def residues(git: GateGit, forge: GateForge, around: Around, merge_tree: str | None) -> tuple[Residue, ...]:
    """Commits of pull requests merged in another form: heads of closed ones within our range (F10)."""
    own = own_commits(git, around.pin, around.refs)
    mine = set(own)
    closed = {
        number: oid
        for number, oid in around.refs.pulls().items()
        if oid in mine
        and number != around.pin.number
        and number not in around.others
        and oid != around.pin.head
    }
    trunks = [around.pin.base, *around.refs.trunks(around.pin.trunks).values()]
    found: list[tuple[int | None, Sequence[GitCommit]]] = []
    for number, oid in sorted(closed.items())[:5]:
        pin = around.pin
        if forge_pull(forge.pull_request(pin.owner, pin.repo, number)).merged:
            found.append((number, git.reachable([oid], trunks)))
    if not found:
        found = [(None, oids)] if (oids := _merged_copies(git, around, own)) else []
    return tuple(_residue(git, around, own, number, oids, merge_tree) for number, oids in found)


def _merged_copies(git: GateGit, around: Around, own: Sequence[GitCommit]) -> list[GitCommit]:
    """Own commits, newest first, up to one whose change a trunk commit of the same author and date made."""
    tip = around.refs.branch(around.pin.target)
    fork = git.merge_base(tip, around.pin.head) if tip else None
    if tip is None or fork is None or not own:
        return []
    trunk = git.commits(git.reachable([tip], [fork])[:2000])
    known = {(one.email, one.date, one.message.split("\n")[0]) for one in trunk}
    mine = git.commits(own[:200])
    return [one.oid for one in mine if (one.email, one.date, one.message.split("\n")[0]) in known]


def _residue(
    git: GateGit,
    around: Around,
    own: Sequence[GitCommit],
    number: int | None,
    oids: Sequence[GitCommit],
    merge_tree: str | None,
) -> Residue:
    left = [oid for oid in reversed(own) if oid not in set(oids)]
    rows = git.commits(left[:200])
    if merge_tree is None or not rows or len(left) > 200 or any(len(one.parents) != 1 for one in rows):
        return Residue(number=number, commits=cut(oids), replay="not_run")
    replayed = git.replay(around.pin.base, left)
    if replayed.conflicts:
        return Residue(number=number, commits=cut(oids), replay="conflict", paths=cut(replayed.conflicts))
    if replayed.tree == merge_tree:
        return Residue(number=number, commits=cut(oids), replay="equal")
    paths = git.tree_changes(replayed.tree, merge_tree)
    return Residue(number=number, commits=cut(oids), replay="differs", paths=cut(paths))
