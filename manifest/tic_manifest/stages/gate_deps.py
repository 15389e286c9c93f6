"""Declared dependencies and submodules of one pull request (rules/pr-gate.md F8, F9, F31, S65)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tic_manifest.errors import RefusedError
from tic_manifest.formats.depends_on import Declared
from tic_manifest.formats.forge_pull import forge_pull, repository
from tic_manifest.formats.urls import join_url, split_url
from tic_manifest.model.base import GitCommit
from tic_manifest.model.gate import Dependency, ForgePull, SubmoduleFact, Unknown
from tic_manifest.model.lock import Submodule
from tic_manifest.ports_gate import GateForge, GateGit
from tic_manifest.rules.gate_trunk import is_trunk
from tic_manifest.stages.gate_git import Refs
from tic_manifest.stages.gate_reads import Pinned, blocked, known

AGREED = ("main", "master")
"""Branches of a submodule's repository that count as merged, besides its HEAD and the set's own trunks."""

_SCP = re.compile(r"^(?:ssh://)?git@(?P<host>[^:/]+)[:/](?P<path>.+)$")


@dataclass(frozen=True, kw_only=True)
class InSet:
    """The pull requests of this recipe, what each declares, and how their repositories are read."""

    pins: Mapping[str, Pinned]
    depends: Mapping[str, tuple[Declared, ...]]
    gits: Mapping[str, GateGit]
    refs: Mapping[str, Refs]

    def find(self, owner: str, repo: str, number: int) -> str:
        """The name of a pull request of the set, "" where it is not in it."""
        wanted = (owner.lower(), repo.lower(), number)
        names = (n for n, p in self.pins.items() if (p.owner.lower(), p.repo.lower(), p.number) == wanted)
        return next(names, "")

    def same_repository(self, owner: str, repo: str) -> str:
        """A pull request of the set in that repository, "" where there is none."""
        wanted = (owner.lower(), repo.lower())
        return next((n for n, p in self.pins.items() if (p.owner.lower(), p.repo.lower()) == wanted), "")


def dependencies(forge: GateForge, pin: Pinned, inset: InSet) -> tuple[Dependency, ...]:
    """Every declared target with its state now."""
    return tuple(_dependency(forge, pin, one, inset) for one in inset.depends.get(pin.name, ()))


def _dependency(forge: GateForge, pin: Pinned, one: Declared, inset: InSet) -> Dependency:
    owner, repo = one.owner or pin.owner, one.repo or pin.repo
    if not one.number or (one.web and one.web.lower() != pin.web.lower()):
        return Dependency(text=one.text, unknown=_elsewhere(one))
    name = inset.find(owner, repo, one.number)
    if name:
        back = any(_is_pin(inset.pins[name], target, pin) for target in inset.depends.get(name, ()))
        return Dependency(
            text=one.text, owner=owner, repo=repo, number=one.number, name=name, depends_on_us=back
        )
    fact = known(lambda: _asked(forge, owner, repo, one, inset))
    if isinstance(fact, Unknown):
        return Dependency(text=one.text, owner=owner, repo=repo, number=one.number, unknown=fact)
    return fact


def _is_pin(at: Pinned, target: Declared, pin: Pinned) -> bool:
    owner, repo = target.owner or at.owner, target.repo or at.repo
    wanted = (pin.owner.lower(), pin.repo.lower(), pin.number)
    return (owner.lower(), repo.lower(), target.number) == wanted


def _elsewhere(one: Declared) -> Unknown:
    return Unknown(
        code="NO_ACCESS", what="a dependency is on another host, which is not asked", actual=one.text
    )


def _asked(forge: GateForge, owner: str, repo: str, one: Declared, inset: InSet) -> Dependency:
    pull = forge_pull(forge.pull_request(owner, repo, one.number))
    reachable = _reachable(forge, owner, repo, pull, inset) if pull.merged else None
    return Dependency(
        text=one.text,
        owner=owner,
        repo=repo,
        number=one.number,
        state=pull.state,
        merged=pull.merged,
        base_ref=pull.base_ref,
        reachable=reachable,
    )


def _reachable(forge: GateForge, owner: str, repo: str, pull: ForgePull, inset: InSet) -> bool:
    """Whether the merge is in an agreed trunk: by git in our own repositories, by its base elsewhere."""
    name = inset.same_repository(owner, repo)
    if not name or name not in inset.refs:
        return pull.base_ref == repository(forge.repository(owner, repo)).default_branch
    git, trunks = inset.gits[name], inset.refs[name].trunks(inset.pins[name].trunks)
    merge = pull.merge_commit or pull.head_sha
    try:
        git.fetch([merge, *trunks.values()])
    except RefusedError:
        return False
    return any(git.is_ancestor(merge, tip) for tip in trunks.values())


def submodule_facts(
    git: GateGit, pin: Pinned, inset: InSet, mirror: Callable[[str, str], GateGit]
) -> tuple[SubmoduleFact, ...]:
    """Every gitlink of the head against that of the base, and against its own remote where it changed."""
    fork = git.merge_base(pin.base, pin.head) or pin.base
    before = {one.path: one for one in git.submodules(fork)}
    return tuple(
        _submodule(pin, one, before.get(one.path), inset, mirror) for one in git.submodules(pin.head)
    )


def _submodule(
    pin: Pinned,
    one: Submodule,
    before: Submodule | None,
    inset: InSet,
    mirror: Callable[[str, str], GateGit],
) -> SubmoduleFact:
    url = resolved(one.url, pin.git) if one.url else ""
    changed_url = before is not None and before.url != one.url
    return SubmoduleFact(
        path=one.path[:500],
        commit=one.commit,
        url=one.url[:500],
        base_url=before.url[:500] if before else None,
        base_commit=before.commit if before else None,
        remote=_remote(pin, one, before, url, changed_url, inset, mirror),
        same_as=_same_as(url, inset),
    )


def _remote(
    pin: Pinned,
    one: Submodule,
    before: Submodule | None,
    url: str,
    changed_url: bool,
    inset: InSet,
    mirror: Callable[[str, str], GateGit],
) -> Literal["reachable", "unmerged", "missing", "unchanged"] | Unknown:
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
    name = f"{pin.name}.{re.sub(r'[^a-z0-9]+', '-', one.path.lower())[:60]}"
    return known(lambda: _looked(mirror(name, url), pin, one.commit, inset, url))


def _looked(
    git: GateGit, pin: Pinned, commit: GitCommit, inset: InSet, url: str
) -> Literal["reachable", "unmerged", "missing"]:
    same = _same_as(url, inset)
    globs = (*AGREED, *(inset.pins[same].trunks if same else ()))
    named = git.remote_refs(["HEAD", "refs/heads/*"])
    tips = {oid for name, oid in named.items() if _agreed(name, named, globs)}
    try:
        git.fetch([commit, *sorted(tips)])
    except RefusedError:
        return "missing"
    return "reachable" if any(git.is_ancestor(commit, tip) for tip in tips) else "unmerged"


def _agreed(name: str, named: Mapping[str, str], globs: Sequence[str]) -> bool:
    if name == "HEAD":
        return True
    return name.startswith("refs/heads/") and is_trunk(name.removeprefix("refs/heads/"), globs)


def _same_as(url: str, inset: InSet) -> str | None:
    wanted = _plain(url)
    for name, pin in inset.pins.items():
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
