"""Looking into one pull request: each question is asked where its refs and pins allow it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from tic_manifest.formats.forge_pull import Listed, repository
from tic_manifest.model.gate import (
    AuditFacts,
    ForgePull,
    HeadFacts,
    LocalFacts,
    MergeFacts,
    RepositoryFacts,
    Unknown,
)
from tic_manifest.ports import Progress
from tic_manifest.ports_gate import Checkout, GateForge, GateGit
from tic_manifest.stages import gate_audit, gate_git, gate_stack
from tic_manifest.stages.gate_git import Refs
from tic_manifest.stages.gate_reads import AGAIN, Listings, Pinned, PullRead, blocked, known, read_again

Mirror = Callable[[str, str], GateGit]
Known = TypeVar("Known")


@dataclass(frozen=True, kw_only=True)
class World:
    """What the gate looks through. `mirror` takes a name and a URL as the recipe writes it."""

    forge: GateForge
    mirror: Mirror
    checkouts: Mapping[str, Checkout] = field(default_factory=dict)
    progress: Progress | None = None

    def say(self, text: str) -> None:
        """Tell what is being read."""
        if self.progress is not None:
            self.progress.say(text)


@dataclass(frozen=True, kw_only=True)
class First:
    """The opening reads of one pull request."""

    pin: Pinned
    git: GateGit
    repository: RepositoryFacts | Unknown
    read: PullRead | Unknown
    refs: Refs | Unknown
    pins: bool | Unknown

    @property
    def pull(self) -> ForgePull | None:
        """The record, None where it is unknown."""
        return self.read.pull if isinstance(self.read, PullRead) else None


class Look:
    """Questions about one pull request that need its refs and pins."""

    def __init__(self, first: First, world: World, listings: Listings | None = None) -> None:
        self.first = first
        self.world = world
        self.listings = listings or Listings(world.forge)
        self._live = self._fetched()

    def _fetched(self) -> Refs | Unknown:
        first = self.first
        if isinstance(first.pins, Unknown):
            return first.pins
        if not first.pins:
            return blocked("a pinned commit cannot be fetched")
        refs = first.refs
        if isinstance(refs, Unknown):
            return refs
        failed = known(lambda: gate_git.fetch_live(first.git, first.pin, refs))
        return failed if isinstance(failed, Unknown) else refs

    def ask(self, question: Callable[[Refs], Known | Unknown]) -> Known | Unknown:
        """The answer, or why the question could not be asked or answered."""
        refs = self._live
        return refs if isinstance(refs, Unknown) else known(lambda: question(refs))

    def listing(self) -> Mapping[int, Listed] | Unknown:
        """Every open pull request of the repository, ours among them."""
        first = self.first
        rows = self.listings.of(first.pin)
        if isinstance(rows, Unknown) or first.pull is None or first.pull.state != "open":
            return rows
        if first.pin.number not in rows:
            # two answers disagree; who knows what else the list lacks (1.2, rule 6)
            return Unknown(
                code="LISTING_UNSTABLE",
                what="the list of open pull requests lacks this one, which is open",
                actual=f"{len(rows)} listed, #{first.pin.number} not among them",
                remedy="run the gate again",
            )
        return rows

    def around(
        self,
        rows: Mapping[int, Listed] | Unknown,
        question: Callable[[gate_stack.Around], Known],
        *,
        needs_rows: bool = False,
    ) -> Known | Unknown:
        """A question that needs the record and, where `needs_rows`, the whole list."""
        read = self.first.read
        if isinstance(read, Unknown):
            return blocked("the pull request's record is not known")
        if isinstance(rows, Unknown) and needs_rows:
            return rows
        listed = {} if isinstance(rows, Unknown) else rows
        others = gate_stack.others_of(listed, self.first.pin, read.pull.base_repo_id)
        return self.ask(
            lambda refs: question(
                gate_stack.Around(
                    pin=self.first.pin, pull=read.pull, depends=read.depends, others=others, refs=refs
                )
            )
        )

    def merged(self, base: str | None, head: str | None) -> MergeFacts | Unknown:
        """A merge of two live commits."""
        if base is None or head is None:
            return blocked("the branch is gone")
        return gate_git.merge_facts(self.first.git, base, head)

    def forge_merge(self, refs: Refs) -> MergeFacts | Unknown:
        """The merge that the forge's verdict is about: live base and live head."""
        pull, pin = self.first.pull, self.first.pin
        base = refs.branch(pull.base_ref if pull else pin.target)
        return self.merged(base, refs.head(pin.number) or (pull.head_sha if pull else None))

    def reread(self, merge: MergeFacts | Unknown) -> PullRead | Unknown:
        """Ask the forge again where it says conflict and the local merge is clean (1.3)."""
        read, world = self.first.read, self.world
        if isinstance(read, Unknown) or isinstance(merge, Unknown):
            return read
        says = read.pull.mergeable is False or read.pull.mergeable_state == "dirty"
        if read.pull.state != "open" or not says or merge.conflicts or merge.driven_conflicts:
            return read
        again = known(lambda: read_again(world.forge, self.first.pin, read, AGAIN))
        return read if isinstance(again, Unknown) else again

    def head(self, rows: Mapping[int, Listed] | Unknown) -> HeadFacts | Unknown:
        """The pinned head against the records of the live one."""
        first = self.first
        if isinstance(first.pins, Unknown):
            return first.pins
        pull, refs = first.pull, first.refs
        if not first.pins:
            return HeadFacts(pinned="unfetchable", forge=None, ref=None, branch=None)
        if isinstance(refs, Unknown):
            return refs
        ref = refs.head(first.pin.number)
        if ref is None and pull is None and not self._truly_absent():
            return blocked("the pull request cannot be seen")
        records = HeadFacts(
            pinned="present",
            forge=pull.head_sha if pull else None,
            ref=ref,
            branch=head_branch(first, self.world) if pull and pull.state == "open" else None,
            listed=_listed_head(rows, first.pin),
        )
        return self.ask(lambda live: self._compared(records, live))

    def _truly_absent(self) -> bool:
        """The repository answers, and neither forge nor git has the pull request (F38)."""
        read = self.first.read
        gone = isinstance(read, Unknown) and read.code == "NO_ACCESS" and "404" in read.actual
        return gone and isinstance(self.first.repository, RepositoryFacts)

    def _compared(self, records: HeadFacts, refs: Refs) -> HeadFacts:
        first, pin = self.first, self.first.pin
        repo_id = first.repository.id if isinstance(first.repository, RepositoryFacts) else None
        live = records.ref or records.forge
        moved = live is not None and not _holds(first.git, pin, live)
        pushed = self.world.forge.force_pushed(pin.owner, pin.repo, pin.number) if moved else ()
        facts = gate_git.head_facts(first.git, pin, refs, records, repo_id, pushed)
        if facts.pin_in_head and repo_id is not None:
            self._keep(repo_id)
        return facts

    def _keep(self, repo_id: int) -> None:
        """Keep the pin; what cannot be fetched for it is said by the questions that read it."""
        git, pin = self.first.git, self.first.pin
        known(lambda: git.keep_pin(repo_id, pin.number, pin.head, pin.base))

    def lfs(self) -> tuple[str, ...]:
        """Paths that should have been pointers; none where the tree cannot be read."""
        found = self.ask(lambda refs: self.first.git.lfs_malformed(self.first.pin.head))
        return () if isinstance(found, Unknown) else found[:100]

    def audit(self) -> AuditFacts | Unknown:
        """What became of it, where it is in an image already."""
        first, read = self.first, self.first.read
        if isinstance(read, Unknown):
            return blocked("the pull request's record is not known")
        return self.ask(lambda refs: gate_audit.audit_facts(first.git, first.pin, refs, read.pull))

    def local(self) -> LocalFacts | Unknown | None:
        """The local checkout, where one is judged."""
        checkout = self.world.checkouts.get(self.first.pin.name)
        if checkout is None:
            return None
        pin, git = self.first.pin, self.first.git
        return self.ask(lambda refs: checkout.facts(pin.head, git, sorted({*refs.named.values()})))


def _listed_head(rows: Mapping[int, Listed] | Unknown, pin: Pinned) -> str | None:
    row = None if isinstance(rows, Unknown) else rows.get(pin.number)
    return row.head_sha if row else None


def _holds(git: GateGit, pin: Pinned, live: str) -> bool:
    git.fetch([live])
    return git.is_ancestor(pin.head, live)


def head_branch(first: First, world: World) -> str | None:
    """The tip of the head branch: by git in the same repository, by the forge in a fork that is the fork."""
    pull, refs = first.pull, first.refs
    if pull is None or not isinstance(refs, Refs) or not pull.head_ref:
        return None
    if pull.head_repo_id is not None and pull.head_repo_id == pull.base_repo_id:
        return refs.branch(pull.head_ref)
    tip = known(lambda: _fork_tip(pull, world.forge))
    return tip if isinstance(tip, str) else None


def _fork_tip(pull: ForgePull, forge: GateForge) -> str | None:
    owner, slash, repo = (pull.head_repo or "").partition("/")
    if not slash or pull.head_repo_id is None:
        return None
    if repository(forge.repository(owner, repo)).id != pull.head_repo_id:
        return None
    return forge.branch_head(owner, repo, pull.head_ref)
