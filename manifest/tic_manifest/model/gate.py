"""What forge and git said of a pull request: facts of the gate, no verdict (rules/pr-gate.md).

Every group is either known or an `Unknown` with the reason's code; null is unknown, never false. Lists are
bounded: where a list may be cut, a count stands beside it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tic_manifest.model.base import Digest, GitCommit, GitTree, Name, Value
from tic_manifest.model.recipe import Policy

MAX_LISTED = 100
"""Most commits or paths that one list of facts holds."""

Text = Annotated[str, StringConstraints(max_length=4096)]
Word = Annotated[str, StringConstraints(max_length=512)]
Commits = Annotated[tuple[GitCommit, ...], Field(max_length=MAX_LISTED)]
Paths = Annotated[tuple[Word, ...], Field(max_length=MAX_LISTED)]
Count = Annotated[int, Field(ge=0)]


class Unknown(Value):
    """A question without an answer: the code of the reason, and the words for people."""

    code: Word
    what: Text
    actual: Text = ""
    remedy: Text = ""


class RepositoryFacts(Value):
    """The repository that the pull request's URL names."""

    id: int
    full_name: Word
    default_branch: Word


class Dependency(Value):
    """A `Depends-On` of the text. `owner` is empty for another host, `name` is a pull request of this set."""

    text: Word
    owner: Word = ""
    repo: Word = ""
    number: int = 0
    name: Word = ""
    state: Word | None = None
    merged: bool | None = None
    base_ref: Word | None = None
    reachable: bool | None = None
    """Whether its merge is in an agreed trunk."""
    depends_on_us: bool = False
    unknown: Unknown | None = None


class ForgePull(Value):
    """One pull request as the forge records it, at one moment."""

    number: int
    state: Word
    draft: bool | None
    merged: bool
    merge_commit: GitCommit | None
    author: Word
    base_ref: Word
    base_repo_id: int | None
    head_ref: Word
    head_sha: GitCommit
    head_repo_id: int | None
    head_repo: Word | None
    mergeable: bool | None
    mergeable_state: Word | None
    stack_base: Word | None = None
    placeholders: Annotated[tuple[Word, ...], Field(max_length=10)] = ()


class Relation(Value):
    """What we share with another open pull request, by commit id, newest first. Counts are of sets."""

    number: int
    shared: Commits
    shared_count: Count
    ours_only: Count
    theirs_only: Count
    linked: Literal["ours", "theirs"] | None = None
    """Whose the shared commits are by a declaration that links the two; null where none does."""
    author: Literal["ours", "theirs"] | None = None
    """Whose they are by their author; null where both or neither match."""


class Pair(Value):
    """A commit of ours and one of another pull request with the same patch."""

    ours: GitCommit
    theirs: GitCommit


class Content(Value):
    """Patches that we share with another open pull request, beyond shared commits."""

    number: int
    strong: Annotated[tuple[Pair, ...], Field(max_length=MAX_LISTED)] = ()
    coincident: Annotated[tuple[Pair, ...], Field(max_length=MAX_LISTED)] = ()
    ours_left: Count = 0
    theirs_left: Count = 0
    squashed: GitCommit | None = None
    linked: Literal["ours", "theirs"] | None = None
    author: Literal["ours", "theirs"] | None = None


class RangeFacts(Value):
    """OWN of rules/pr-gate.md 1.2: what the pinned head has, and neither the pinned base nor any trunk."""

    own: Commits
    own_count: Count
    reverts: Commits = ()
    """Where the range is empty: commits of the trunk that revert the pull request or its merge."""


class StackFacts(Value):
    """The exact set rule of rules/pr-gate.md 1.2, over every open pull request."""

    open_count: Count
    parents: Annotated[tuple[int, ...], Field(max_length=MAX_LISTED)] = ()
    """Open pull requests of the same repository whose head branch is our base branch."""
    relations: tuple[Relation, ...] = ()
    contents: tuple[Content, ...] = ()


class MergeFacts(Value):
    """One merge: its tree, what conflicts without drivers, and what conflicts with the repository's own."""

    base: GitCommit
    head: GitCommit
    merge_bases: Commits
    tree: GitTree | None
    conflicts: Paths = ()
    driven_conflicts: Paths | None = None
    """With the merge attributes of the base's tree; null where none are set."""


class BaseFacts(Value):
    """The pinned base against its trunk as it is now."""

    branch: Word
    tip: GitCommit | None
    """Null where the server answers and the branch is gone."""
    pinned_in_tip: bool | None = None
    ahead: Count = 0
    touched: Paths = ()
    """Paths that both the trunk's new commits and the pull request change."""
    trunk_in_range: Commits = ()
    trunk_in_range_count: Count = 0
    """Commits of the trunk itself that stand between pinned base and head."""
    other_trunks: Annotated[tuple[tuple[Word, int], ...], Field(max_length=MAX_LISTED)] = ()


class HeadFacts(Value):
    """The pinned head against the three records of the live head."""

    pinned: Literal["present", "unfetchable"]
    forge: GitCommit | None
    ref: GitCommit | None
    """`refs/pull/N/head` by git; null where the server keeps none."""
    branch: GitCommit | None
    """The head branch's tip; null where it cannot be read."""
    listed: GitCommit | None = None
    """The head in the list of open pull requests; null where it is not listed."""
    merge_parents: Annotated[tuple[GitCommit, ...], Field(max_length=8)] | None = None
    pin_in_head: bool | None = None
    former: bool | None = None
    """Whether the pin was a head of this pull request once, by the evidence in `former_by`."""
    former_by: Word = ""
    equal: bool = False
    """Whether every own commit has its equal in the live head: patch, author and message, in order."""
    newer_fork: GitCommit | None = None
    """Where the live head forks from the trunk, if that is newer than the pinned base."""
    range_diff: Annotated[tuple[Word, ...], Field(max_length=MAX_LISTED)] = ()
    """`git range-diff` of the pinned and the live range, a line for each commit, ids whole."""
    added: Commits = ()
    added_count: Count = 0
    interdiff: Paths = ()


class Residue(Value):
    """Commits of a pull request that was merged in another form, and the replay without them."""

    number: int | None
    commits: Commits
    replay: Literal["equal", "differs", "conflict", "not_run"]
    paths: Paths = ()


class SubmoduleFact(Value):
    """A gitlink of the head. `reachable` is from an agreed branch of its remote; null where not looked at."""

    path: Word
    commit: GitCommit
    url: Word
    base_url: Word | None
    base_commit: GitCommit | None
    remote: Literal["reachable", "unmerged", "missing", "unchanged"] | Unknown
    same_as: Name | None = None
    """The pull request of this set whose repository this is."""


class LocalFacts(Value):
    """A local checkout against the pinned tree: what differs, by kind of `LOCAL_DIRTY`."""

    head: GitCommit | None
    dirty: tuple[tuple[Word, Paths, Count], ...] = ()
    unpushed: Commits = ()
    unpushed_count: Count = 0
    submodules: tuple[tuple[Word, Word], ...] = ()
    """(code, path) of submodules that are dirty, drifted or missing."""


class Closing(Value):
    """The same reads again after the last check."""

    state: Word
    draft: bool | None
    base_ref: Word
    head_sha: GitCommit
    ref: GitCommit | None
    tip: GitCommit | None


class Alternative(Value):
    """The same pull request with the live base and head as pins: what a repin would give."""

    base: GitCommit
    head: GitCommit
    base_facts: BaseFacts | Unknown
    head_facts: HeadFacts | Unknown
    range: RangeFacts | Unknown
    stack: StackFacts | Unknown
    merge: MergeFacts | Unknown
    residues: tuple[Residue, ...] | Unknown = ()


class Rebased(Value):
    """Own commits without those that are not ours, replayed onto the trunk's tip in a scratch repository."""

    onto: GitCommit
    dropped: Commits
    dropped_count: Count
    kept_count: Count
    tree: GitTree
    conflicts: Paths = ()
    after: Alternative | Unknown | None = None
    """The pull request as it would be with those commits pushed and pinned; null where they conflict."""


class AuditFacts(Value):
    """What became of a delivered pull request: how it was merged, and what reverts that."""

    merged_as: Literal["ancestor", "squash", "rebase", "different"] | None
    reverts: Commits = ()


class PullRequestFacts(Value):
    """Everything the gate's rules need of one pull request."""

    name: Name
    url: Word
    owner: Word
    repo: Word
    number: int
    target: Word
    trunks: Annotated[tuple[Word, ...], Field(min_length=1)]
    pinned_base: GitCommit
    pinned_head: GitCommit
    pinned_repo_id: int | None = None
    repository: RepositoryFacts | Unknown
    pull: ForgePull | Unknown
    polls: Count = 0
    head: HeadFacts | Unknown
    base: BaseFacts | Unknown
    range: RangeFacts | Unknown
    stack: StackFacts | Unknown
    pinned_merge: MergeFacts | Unknown
    live_merge: MergeFacts | Unknown
    forge_merge: MergeFacts | Unknown
    """Live base and live head: what the forge's verdict is about."""
    residues: tuple[Residue, ...] | Unknown = ()
    dependencies: tuple[Dependency, ...] | Unknown = ()
    submodules: tuple[SubmoduleFact, ...] | Unknown = ()
    lfs_malformed: Paths = ()
    local: LocalFacts | Unknown | None = None
    closing: Closing | Unknown | None = None
    alternative: Alternative | Unknown | None = None
    rebased: Rebased | Unknown | None = None
    """Tried where a pin has moved, and where commits of others or a conflict are in the way."""
    audit: AuditFacts | Unknown | None = None
    """Only where a delivered image is judged again."""
    answers: Digest | None = None
    """Digest of every answer of forge and git server that was read for this pull request."""


class GatePolicy(Value):
    """The part of the recipe's policy that the gate obeys."""

    drift_commits: Count = 0
    drift_action: Literal["fail", "note"] = "fail"
    forge_mergeable: Literal["required", "advisory"] = "required"
    out_of_scope: tuple[Name, ...] = ()


class GateFacts(Value):
    """The whole snapshot: what `rules.gate.judge` takes."""

    policy: GatePolicy
    pulls: tuple[PullRequestFacts, ...]
    partial: bool = False


def gate_policy(policy: Policy) -> GatePolicy:
    """The gate's part of a recipe's policy."""
    return GatePolicy(
        drift_commits=policy.base_drift.max_commits,
        drift_action=policy.base_drift.action,
        forge_mergeable=policy.forge_mergeable,
        out_of_scope=policy.out_of_scope,
    )
