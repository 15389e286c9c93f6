"""Declared dependencies of one pull request, and what is in the set (rules/pr-gate.md F8, F9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tic_manifest.errors import RefusedError
from tic_manifest.formats.depends_on import Declared
from tic_manifest.formats.forge_pull import forge_pull, repository
from tic_manifest.model.gate import Dependency, ForgePull, Unknown
from tic_manifest.ports_gate import GateForge, GateGit
from tic_manifest.stages.gate_git import Refs
from tic_manifest.stages.gate_reads import Pinned, known


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
