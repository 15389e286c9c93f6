"""Submodules of one pull request, those within submodules too (rules/pr-gate.md F31, S46-S49, S65).

A gitlink is held against that of the base, and against its own remote where it changed. A submodule whose new
commit its remote has merged is looked into in the same way: old commit against new one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from tic_manifest.errors import RefusedError
from tic_manifest.formats.urls import join_url, split_url
from tic_manifest.model.base import GitCommit
from tic_manifest.model.gate import SubmoduleFact, Unknown
from tic_manifest.model.lock import Submodule
from tic_manifest.ports_gate import GateGit
from tic_manifest.rules.gate_trunk import is_trunk
from tic_manifest.stages.gate_deps import InSet
from tic_manifest.stages.gate_reads import Pinned, blocked, known

AGREED = ("main", "master")
"""Branches of a submodule's repository that count as merged, besides its HEAD and the set's own trunks."""

MOST_REMOTES = 100
"""Repositories of submodules that are asked for one pull request."""

MAX_DEPTH = 5
"""Submodules within submodules beyond this are not looked into."""

_SCP = re.compile(r"^(?:ssh://)?git@(?P<host>[^:/]+)[:/](?P<path>.+)$")

Remote = Literal["reachable", "unmerged", "missing", "unchanged"]


@dataclass(frozen=True, kw_only=True)
class _Where:
    """A repository whose submodules are looked at: its URL, and the path that leads to it."""

    pin: Pinned
    inset: InSet
    mirror: Callable[[str, str], GateGit]
    url: str
    prefix: str = ""
    depth: int = 0
    asked: set[str] = field(default_factory=set)


def submodule_facts(
    git: GateGit, pin: Pinned, inset: InSet, mirror: Callable[[str, str], GateGit]
) -> tuple[SubmoduleFact, ...]:
    """Every gitlink of the head, and of changed submodules in turn."""
    fork = git.merge_base(pin.base, pin.head) or pin.base
    return tuple(_level(_Where(pin=pin, inset=inset, mirror=mirror, url=pin.git), git, fork, pin.head))


def _level(where: _Where, git: GateGit, old: GitCommit | None, new: GitCommit) -> Iterator[SubmoduleFact]:
    before = {one.path: one for one in git.submodules(old)} if old else {}
    for one in git.submodules(new):
        fact = _submodule(where, one, before.get(one.path))
        inner = known(partial(_within, where, fact))
        if isinstance(inner, Unknown):
            yield fact.model_copy(update={"remote": inner})
        else:
            yield fact
            yield from inner


def _within(where: _Where, fact: SubmoduleFact) -> list[SubmoduleFact]:
    """Submodules of a submodule whose new commit is merged at its remote."""
    if fact.remote != "reachable":
        return []
    url = resolved(fact.url, where.url)
    git = where.mirror(_name(where.pin, fact.path, url), url)
    old = _fetched(git, fact.base_commit) if fact.base_commit else None
    inner = replace(where, url=url, prefix=f"{fact.path}/", depth=where.depth + 1)
    return list(_level(inner, git, old, fact.commit))


def _fetched(git: GateGit, commit: GitCommit) -> GitCommit | None:
    """The commit, where its remote has it still."""
    try:
        git.fetch([commit])
    except RefusedError:
        return None
    return commit


def _submodule(where: _Where, one: Submodule, before: Submodule | None) -> SubmoduleFact:
    url = resolved(one.url, where.url) if one.url else ""
    path = f"{where.prefix}{one.path}"[:500]
    return SubmoduleFact(
        path=path,
        commit=one.commit,
        url=one.url[:500],
        base_url=before.url[:500] if before else None,
        base_commit=before.commit if before else None,
        remote=_remote(where, one, before, path, url),
        same_as=_same_as(url, where.inset),
    )


def _remote(where: _Where, one: Submodule, before: Submodule | None, path: str, url: str) -> Remote | Unknown:
    changed_url = before is not None and before.url != one.url
    if before is not None and before.commit == one.commit and not changed_url:
        return "unchanged"
    if changed_url:
        # a URL that the pull request brought is not contacted
        return blocked("the new URL is not asked")
    if not url:
        return "missing"
    parts = split_url(url)
    if parts is None or parts.scheme not in {"http", "https"}:
        return Unknown(code="NO_ACCESS", what="a submodule's URL cannot be asked", actual=url[:500])
    where.asked.add(url)
    if where.depth >= MAX_DEPTH or len(where.asked) > MOST_REMOTES:
        return Unknown(code="NO_ACCESS", what="too many submodules to ask for each", actual=path)
    name = _name(where.pin, path, url)
    return known(lambda: _looked(where.mirror(name, url), where, one.commit, url))


def _name(pin: Pinned, path: str, url: str) -> str:
    """A mirror's name: paths that look alike in small letters are still two."""
    slug = re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")[:40]
    return f"{pin.name}.{slug}-{hashlib.sha256(url.encode('utf-8', 'replace')).hexdigest()[:12]}"


def _looked(git: GateGit, where: _Where, commit: GitCommit, url: str) -> Remote:
    same = _same_as(url, where.inset)
    globs = (*AGREED, *(where.inset.pins[same].trunks if same else ()))
    named = git.remote_refs(["HEAD", "refs/heads/*"])
    tips = {oid for name, oid in named.items() if _agreed(name, globs)}
    try:
        git.fetch([commit, *sorted(tips)])
    except RefusedError:
        return "missing"
    return "reachable" if any(git.is_ancestor(commit, tip) for tip in tips) else "unmerged"


def _agreed(name: str, globs: Sequence[str]) -> bool:
    if name == "HEAD":
        return True
    return name.startswith("refs/heads/") and is_trunk(name.removeprefix("refs/heads/"), globs)


def _same_as(url: str, inset: InSet) -> str | None:
    wanted = _plain(url)
    pins: Mapping[str, Pinned] = inset.pins
    for name, pin in pins.items():
        if wanted and wanted in {_plain(pin.git), _plain(f"{pin.web}/{pin.owner}/{pin.repo}")}:
            return name
    return None


def _plain(url: str) -> str:
    parts = split_url(url)
    if parts is None:
        return ""
    return f"{parts.netloc}{parts.path}".lower().rstrip("/").removesuffix(".git")


def resolved(url: str, parent: str) -> str:
    """A URL of `.gitmodules` as git resolves it: relative to the repository, scp form as https."""
    if url.startswith(("./", "../")):
        return join_url(parent.rstrip("/") + "/", url) or url
    found = _SCP.match(url)
    return f"https://{found['host']}/{found['path']}" if found else url
