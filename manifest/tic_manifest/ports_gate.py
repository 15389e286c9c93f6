"""What the gate needs of git and forge beyond `ports`: set arithmetic, patches, merges, lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from tic_manifest.model.base import Digest, GitCommit, GitTree
from tic_manifest.model.gate import LocalFacts
from tic_manifest.ports import Forge, SourceGit


@dataclass(frozen=True)
class Commit:
    """A commit's header: the author's `date`, the whole `message`; `patch` is stable, "" for merges."""

    oid: GitCommit
    parents: tuple[GitCommit, ...]
    author: str
    email: str
    date: str
    message: str
    patch: str = ""


class Merged(Protocol):
    """A merge in memory: the tree, and the paths that conflict."""

    @property
    def tree(self) -> GitTree:
        """The tree that was written, conflict markers included."""

    @property
    def conflicts(self) -> tuple[str, ...]:
        """Empty: clean."""


class GateGit(SourceGit, Protocol):
    """One repository, as the gate reads it. A missing object raises UnavailableError OBJECTS_MISSING."""

    def has_commit(self, commit: GitCommit) -> bool:
        """Whether the commit is present in the mirror."""

    def merge_bases(self, left: GitCommit, right: GitCommit) -> tuple[GitCommit, ...]:
        """Every best common ancestor, sorted."""

    def merge(self, base: GitCommit, head: GitCommit) -> Merged:
        """Merge without drivers."""

    def merge_driven(self, base: GitCommit, head: GitCommit) -> tuple[str, ...] | None:
        """Paths that conflict with the merge attributes of the base's tree; None where it sets none."""

    def parents(self, commit: GitCommit) -> tuple[GitCommit, ...]:
        """Parents of a commit."""

    def reachable(self, tips: Sequence[GitCommit], exclude: Sequence[GitCommit]) -> tuple[GitCommit, ...]:
        """`rev-list TIPS --not EXCLUDE` over all parents, newest first."""

    def own_of(
        self, heads: Mapping[int, GitCommit], exclude: Sequence[GitCommit]
    ) -> Mapping[int, frozenset[GitCommit]]:
        """For each head, what is reachable from it and from nothing excluded: one walk for all heads."""

    def commits(self, oids: Sequence[GitCommit], *, patches: bool = False) -> tuple[Commit, ...]:
        """Headers of commits, in the order asked for; with stable patch ids where asked."""

    def path_sets(self, oids: Sequence[GitCommit]) -> Mapping[GitCommit, frozenset[str]]:
        """Paths that each commit without a second parent changes."""

    def net_patch(self, base: GitCommit, head: GitCommit) -> str:
        """The stable patch id of the whole difference, "" where there is none."""

    def range_diff(
        self, old: tuple[GitCommit, GitCommit], new: tuple[GitCommit, GitCommit]
    ) -> tuple[str, ...]:
        """`git range-diff` of two (base, tip) ranges without patches, a line for each commit, ids whole."""

    def replay(self, base: GitCommit, oids: Sequence[GitCommit]) -> Merged:
        """Cherry-pick commits, oldest first, onto base in memory; stops at the first conflict."""

    def rebased(self, onto: GitCommit, oids: Sequence[GitCommit]) -> GitCommit:
        """The commits, oldest first, written anew on `onto`, empty ones left out; they replay cleanly."""

    def reverts(self, tip: GitCommit, head: GitCommit) -> tuple[GitCommit, ...]:
        """Commits below `tip` whose message reverts `head` or a merge of it."""

    def tree_changes(self, left: GitTree, right: GitTree) -> tuple[str, ...]:
        """Paths that differ between two trees."""

    def lfs_malformed(self, commit: GitCommit) -> tuple[str, ...]:
        """Paths that attributes give to LFS and whose blob is no pointer."""

    def keep_pin(self, repo_id: int, number: int, commit: GitCommit, base: GitCommit) -> None:
        """Remember in the mirror that a commit was a pull request's head; keep what `base` lacks of it."""

    def was_pinned(self, repo_id: int, number: int, commit: GitCommit) -> bool:
        """Whether `keep_pin` was called for it before."""

    def answers(self) -> Digest:
        """Digest of everything the server said so far."""


class GateForge(Forge, Protocol):
    """A GitHub REST interface, as the gate reads it."""

    def repository(self, owner: str, repo: str) -> Mapping[str, Any]:
        """The repository's own answer, renames followed."""

    def open_pull_requests(self, owner: str, repo: str) -> Sequence[Mapping[str, Any]]:
        """One scan of every open pull request, all pages."""

    def commit_login(self, owner: str, repo: str, commit: GitCommit) -> str:
        """The account of a commit's author, "" where the forge knows none."""

    def force_pushed(self, owner: str, repo: str, number: int) -> Sequence[GitCommit]:
        """Commits that the timeline names as former heads; empty where it is not shown."""

    def enter(self, phase: Literal["open", "poll", "close"]) -> None:
        """Say what the next questions are: first reads, polling, or the closing re-read."""

    def pause(self, seconds: float) -> None:
        """Wait, scaled by the caller's setting; a replay does not wait."""

    def answers(self) -> Digest:
        """Digest of every answer so far."""


class Checkout(Protocol):
    """A local checkout, read without its configuration."""

    def facts(self, pinned: GitCommit, git: GateGit, known: Sequence[GitCommit]) -> LocalFacts:
        """What differs from the pinned tree; `known` are commits that the forge has."""


class GateGits(Protocol):
    """Mirrors by name and URL."""

    def mirror(self, name: str, url: str) -> GateGit:
        """The mirror called `name`."""


Checkouts = Mapping[str, Checkout]
