"""`lock --repin NAME`: one head moved to where its pull request is now, said with what that changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tic_manifest.errors import PersonError
from tic_manifest.formats.recipe import pull_url
from tic_manifest.model.base import GitCommit
from tic_manifest.model.recipe import Recipe
from tic_manifest.stages.gate_repin import Certificate


class RepinGit(Protocol):
    """What moving a head asks of git."""

    def remote_refs(self, patterns: Sequence[str]) -> dict[str, GitCommit]:
        """What the server's refs name now."""

    def fetch(self, commits: Sequence[GitCommit], refs: Sequence[str] = ()) -> None:
        """Make commits present."""

    def range_diff(
        self, old: tuple[GitCommit, GitCommit], new: tuple[GitCommit, GitCommit]
    ) -> tuple[str, ...]:
        """Which commit became which."""


def repin(recipe: Recipe, name: str, git: RepinGit) -> Certificate:
    """Where the head of a pull request is now. Raises PersonError USAGE for a name the recipe has not."""
    pull = recipe.pull_requests.get(name)
    parts = pull_url(pull.url) if pull else None
    if pull is None or parts is None:
        known = ", ".join(recipe.pull_requests)
        raise PersonError("USAGE", "no such pull request", where=name, expected=known, actual=name)
    ref = f"refs/pull/{parts.number}/head"
    live = git.remote_refs([ref]).get(ref)
    if live is None:
        raise PersonError(
            "PIN_NOT_IN_PR",
            f"pull_requests.{name}: the pull request has no head",
            expected=ref,
            actual="none",
        )
    git.fetch((pull.base, pull.head, live))
    ranges = {pull.base, pull.head, live}
    # git compares no empty range: nothing moved, or one side has no commit of its own
    said = git.range_diff((pull.base, pull.head), (pull.base, live)) if len(ranges) == 3 else ()
    return Certificate(name, pull.head, live, pull.base, pull.base, said)
