"""Pull requests of a recipe resolved to commits, trees and the merge tree: the first part of a lock.

A pin that cannot be what the recipe says it is is a mistake in a file that a person wrote: exit 2, with the
code that the gate would give. Source of the rules: rules/pr-gate.md F19, F20, F23, contract section 2.
"""

from __future__ import annotations

from collections.abc import Callable

from tic_manifest.errors import PersonError, RefusedError
from tic_manifest.formats.recipe import PullUrl, git_url, pull_url, row_of
from tic_manifest.model.base import GitCommit
from tic_manifest.model.lock import LockedPullRequest
from tic_manifest.model.recipe import PullRequest, Recipe
from tic_manifest.ports import Forge, SourceGit

GitFor = Callable[[str, str], SourceGit]
"""Name and URL of a repository, as the recipe gives them, to its mirror."""


def lock_pull_requests(recipe: Recipe, git_for: GitFor, forge: Forge) -> tuple[LockedPullRequest, ...]:
    """Every pull request of the recipe, in the recipe's order.

    Raises PersonError PIN_NOT_IN_PR, PIN_UNFETCHABLE, BASE_GONE, BASE_REWRITTEN, NO_COMMON_HISTORY for pins
    that are wrong, UnavailableError where a server gives no answer.
    """
    return tuple(
        _locked(name, pull, git_for(name, git_url(pull)), forge)
        for name, pull in recipe.pull_requests.items()
    )


def _locked(name: str, pull: PullRequest, git: SourceGit, forge: Forge) -> LockedPullRequest:
    parts = pull_url(pull.url)
    if parts is None:
        raise PersonError("RECIPE", f"pull_requests.{name}.url is not a pull request", actual=pull.url)
    _fetch(name, git, (pull.base, pull.head))
    _check_head(name, pull, git, _live_head(name, parts, git, forge))
    _check_base(name, pull, git)
    merge_base = git.merge_base(pull.base, pull.head)
    if merge_base is None:
        raise _wrong("NO_COMMON_HISTORY", name, "base and head share no history", pull.base, pull.head)
    git.keep_files(pull.head)  # a build has no network
    return LockedPullRequest(
        name=name,
        row=row_of(name, pull),
        url=pull.url,
        number=parts.number,
        git=git_url(pull),
        owner=pull.target.owner,
        repo=pull.target.repo or parts.repo,
        branch=pull.target.branch,
        base=pull.base,
        base_tree=git.tree_of(pull.base),
        head=pull.head,
        head_tree=git.tree_of(pull.head),
        merge_base=merge_base,
        merge_tree=git.merge_tree(pull.base, pull.head),
        submodules=git.submodules(pull.head),
    )


def _live_head(name: str, parts: PullUrl, git: SourceGit, forge: Forge) -> GitCommit:
    """The head by git; by the forge only where its server keeps no `refs/pull`."""
    ref = f"refs/pull/{parts.number}/head"
    live = git.remote_refs([ref]).get(ref)
    if live is None:
        head = forge.pull_request(parts.owner, parts.repo, parts.number).get("head")
        live = head.get("sha") if isinstance(head, dict) else None
    if not isinstance(live, str):
        raise _wrong("PIN_NOT_IN_PR", name, "the pull request has no head", f"{ref} on the server", "none")
    return live


def _check_head(name: str, pull: PullRequest, git: SourceGit, live: GitCommit) -> None:
    _fetch(name, git, (live,))
    if not git.is_ancestor(pull.head, live):
        raise _wrong(
            "PIN_NOT_IN_PR",
            name,
            "the pinned head is not in the pull request",
            f"{pull.head} reachable from the pull request's head",
            f"the pull request's head is {live}",
        )


def _check_base(name: str, pull: PullRequest, git: SourceGit) -> None:
    ref = f"refs/heads/{pull.target.branch}"
    live = git.remote_refs([ref]).get(ref)
    if live is None:
        raise _wrong("BASE_GONE", name, "the target branch does not exist", ref, "no such branch")
    _fetch(name, git, (live,))
    if not git.is_ancestor(pull.base, live):
        raise _wrong(
            "BASE_REWRITTEN",
            name,
            "the pinned base is not in the history of the target branch",
            f"{pull.base} reachable from {ref}",
            f"{ref} is {live}",
        )


def _fetch(name: str, git: SourceGit, commits: tuple[GitCommit, ...]) -> None:
    try:
        git.fetch(commits)
    except RefusedError as error:
        if error.code != "PIN_UNFETCHABLE":
            raise
        raise PersonError(
            error.code,
            f"pull_requests.{name}: {error.what}",
            where=error.where,
            expected=f"{' and '.join(commits)} on the server",
            actual=error.actual,
            remedy=f"pin commits of pull_requests.{name} that the server has",
        ) from error


def _wrong(code: str, name: str, what: str, expected: str, actual: str) -> PersonError:
    remedy = f"mend pull_requests.{name} in the recipe, or run: tic-manifest lock RECIPE --repin {name}"
    return PersonError(code, f"pull_requests.{name}: {what}", expected=expected, actual=actual, remedy=remedy)
