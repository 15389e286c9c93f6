"""Answers of a GitHub REST interface as values; wrong types are an answer that cannot be used.

Source: docs.github.com/rest/pulls and /rest/repos. `base.sha` is never read: it is neither the merge base
nor reliably the live tip (rules/pr-gate.md F25).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tic_manifest.errors import UnavailableError
from tic_manifest.formats.depends_on import Declared, declared, placeholders
from tic_manifest.model.gate import ForgePull, RepositoryFacts

_COMMIT = re.compile(r"^[0-9a-f]{40}$")
_ABSENT = object()


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A row of the list of open pull requests."""

    number: int
    open: bool
    head_sha: str
    head_ref: str
    head_repo_id: int | None
    base_ref: str
    base_repo_id: int | None
    author: str
    depends: tuple[Declared, ...]


def repository(data: Mapping[str, Any]) -> RepositoryFacts:
    """`GET /repos/{owner}/{repo}`. Raises UnavailableError BAD_RESPONSE."""
    return RepositoryFacts(
        id=_typed(data, "id", int),
        full_name=_typed(data, "full_name", str)[:300],
        default_branch=_typed(data, "default_branch", str, "")[:300],
    )


def forge_pull(data: Mapping[str, Any]) -> ForgePull:
    """`GET /repos/{owner}/{repo}/pulls/{number}`. Raises UnavailableError BAD_RESPONSE."""
    head, base = _typed(data, "head", dict), _typed(data, "base", dict)
    head_repo = _typed(head, "repo", dict, None)
    state = _typed(data, "state", str)
    if state not in {"open", "closed"}:
        raise bad(f"state {state[:40]!r}")
    return ForgePull(
        number=_typed(data, "number", int),
        state=state,
        # absent is allowed by the interface's description and means ready; null is not an answer
        draft=_typed(data, "draft", bool, False) if data.get("draft", False) is not None else None,
        merged=_merged(data),
        merge_commit=_oid(data.get("merge_commit_sha")),
        author=_login(data),
        base_ref=_typed(base, "ref", str)[:500],
        base_repo_id=_repo_id(base),
        head_ref=_typed(head, "ref", str, "")[:500],
        head_sha=_commit(head),
        head_repo_id=_repo_id(head),
        head_repo=_typed(head_repo, "full_name", str, "")[:300] if head_repo else _gone(head),
        mergeable=_typed(data, "mergeable", bool, None),
        mergeable_state=(_typed(data, "mergeable_state", str, None) or "")[:100] or None,
        stack_base=_stack(data),
        placeholders=placeholders(_typed(data, "body", str, None) or ""),
    )


def depends(data: Mapping[str, Any]) -> tuple[Declared, ...]:
    """What the pull request's text declares."""
    return declared(_typed(data, "body", str, None) or "")


def listed(data: Mapping[str, Any]) -> Listed:
    """One row of `GET /repos/{owner}/{repo}/pulls`. Raises UnavailableError BAD_RESPONSE."""
    head, base = _typed(data, "head", dict), _typed(data, "base", dict)
    return Listed(
        number=_typed(data, "number", int),
        open=_typed(data, "state", str, "open") == "open",
        head_sha=_commit(head),
        head_ref=_typed(head, "ref", str, "")[:500],
        head_repo_id=_repo_id(head),
        base_ref=_typed(base, "ref", str)[:500],
        base_repo_id=_repo_id(base),
        author=_login(data),
        depends=depends(data),
    )


def bad(actual: str) -> UnavailableError:
    """The error of an answer that has another shape than the interface's description says."""
    return UnavailableError(
        "BAD_RESPONSE",
        "the forge's answer cannot be used",
        actual=actual,
        remedy="run the same command again",
    )


def _typed(data: Any, key: str, kind: type, default: Any = _ABSENT) -> Any:
    value = data.get(key) if isinstance(data, Mapping) else None
    if value is None and default is not _ABSENT:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise bad(f"{key} is {type(value).__name__}, not {kind.__name__}")
    return value


def _commit(side: Mapping[str, Any]) -> str:
    oid = _oid(side.get("sha"))
    if oid is None:
        raise bad("a side without a commit")
    return oid


def _oid(value: Any) -> str | None:
    return value if isinstance(value, str) and _COMMIT.match(value) else None


def _repo_id(side: Mapping[str, Any]) -> int | None:
    repo = _typed(side, "repo", dict, None)
    return _typed(repo, "id", int, None) if repo else None


def _gone(side: Mapping[str, Any]) -> str | None:
    """A key that is null says that the repository was deleted; a key that is absent says nothing."""
    return None if "repo" in side else ""


def _login(data: Mapping[str, Any]) -> str:
    user = _typed(data, "user", dict, None)
    return str(_typed(user, "login", str, "") if user else "")[:100]


def _merged(data: Mapping[str, Any]) -> bool:
    return bool(_typed(data, "merged", bool, False)) or _typed(data, "merged_at", str, None) is not None


def _stack(data: Mapping[str, Any]) -> str | None:
    stack = _typed(data, "stack", dict, None)
    base = _typed(stack, "base", dict, None) if stack else None
    return _typed(base, "ref", str, None) if base else None
