"""Trainer beside rollout: only what differs between what the two ran on, numerics first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from pydantic import JsonValue

from tic_manifest.model.probe import ProbeReport
from tic_manifest.model.recipe import RolePolicy
from tic_manifest.model.verdict import Check, Finding, Status, check_of, finding, note
from tic_manifest.rules.probe_environment import NUMERICS, numerics
from tic_manifest.rules.probe_view import MAX_FINDINGS, View
from tic_manifest.rules.role_side import Library, Side, side_of

CHECK = "probe.roles"
ANY_ROLE = "any"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing that two roles have in other ways. `rank`: 0 computes numbers by itself, higher matters less.

    `blocks`: other code in the two processes, a fail unless the recipe declares it; the rest are notes.
    """

    rank: int
    kind: str
    name: str
    sides: Mapping[str, JsonValue]
    blocks: bool = False


def differences(left: Side, right: Side) -> list[Difference]:
    """Everything that differs, ranked; equal things are not named."""
    parts: tuple[Callable[[Side, Side], Iterable[Difference]], ...] = (
        _python, _families, _symbols, _distributions, _libraries, _compilers, _environment, _kernels, _cpu,
    )  # fmt: skip
    found = [one for part in parts for one in part(left, right)]
    return sorted(found, key=lambda one: (one.rank, not one.blocks, one.kind, one.name))


def _both(left: Side, right: Side, mine: JsonValue, other: JsonValue) -> dict[str, JsonValue]:
    return {left.role: mine, right.role: other}


def _python(left: Side, right: Side) -> Iterator[Difference]:
    if left.python and right.python and left.python != right.python:
        sides = _both(left, right, left.python, right.python)
        yield Difference(rank=1, kind="interpreter", name="python", sides=sides, blocks=True)


def _families(left: Side, right: Side) -> Iterator[Difference]:
    """Numeric families by their own copies; one that a wheel bundles under its own name stays with it."""
    ours, theirs = _by_family(left), _by_family(right)
    for family in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(family, {}), theirs.get(family, {})
        if mine.keys() != other.keys():
            sides = _both(left, right, _named(mine.values()), _named(other.values()))
            blocks = bool(mine and other)
            yield Difference(rank=0, kind="library family", name=family, sides=sides, blocks=blocks)


def _by_family(side: Side) -> dict[str, dict[str, Library]]:
    found: dict[str, dict[str, Library]] = {}
    for one in side.libraries:
        if one.family and not one.bundled:
            found.setdefault(one.family, {})[one.sha256] = one
    return found


def _named(libraries: Iterable[Library]) -> JsonValue:
    return [
        f"{one.path} sha256:{one.sha256} ({one.owner})" for one in sorted(libraries, key=lambda x: x.path)
    ]


def _symbols(left: Side, right: Side) -> Iterator[Difference]:
    """Key functions that both roles bind, to files of other bytes."""
    for name in sorted(left.symbols.keys() & right.symbols.keys()):
        mine, other = left.symbols[name], right.symbols[name]
        if (mine[1] or mine[0]) != (other[1] or other[0]):
            sides = _both(left, right, *(f"{path} sha256:{sha256}" for path, sha256 in (mine, other)))
            yield Difference(rank=0, kind="symbol", name=name, sides=sides)


def _distributions(left: Side, right: Side) -> Iterator[Difference]:
    """Distributions that both use: another version, or files of one name with other bytes."""
    for name in sorted(left.versions.keys() & right.versions.keys()):
        mine, other = left.files[name], right.files[name]
        differing = sorted(path for path in mine.keys() & other.keys() if mine[path] != other[path])
        if differing or left.versions[name] != right.versions[name]:
            shown = differing[:5]
            sides = _both(left, right, _release(left, name, shown), _release(right, name, shown))
            yield Difference(rank=1, kind="distribution", name=name, sides=sides, blocks=True)


def _release(side: Side, name: str, paths: list[str]) -> JsonValue:
    files = side.files[name]
    return {"version": side.versions[name], "files": {path: files[path] for path in paths}}


def _libraries(left: Side, right: Side) -> Iterator[Difference]:
    """Libraries of no numeric family: one place with other bytes, or one name and no copy in common."""
    ours, theirs = _by_name(left), _by_name(right)
    for name in sorted(ours.keys() & theirs.keys()):
        mine, other = ours[name], theirs[name]
        hashes = {one.sha256 for one in mine} & {one.sha256 for one in other}
        places = {one.place: one.sha256 for one in mine}
        moved = any(places.get(one.place, one.sha256) != one.sha256 for one in other)
        if moved or not hashes:
            sides = _both(left, right, _named(mine), _named(other))
            yield Difference(rank=2, kind="library", name=name, sides=sides, blocks=True)


def _by_name(side: Side) -> dict[str, list[Library]]:
    """Files of wheels are compared with their distribution."""
    found: dict[str, list[Library]] = {}
    for one in side.libraries:
        if not one.family and not one.place[0].startswith("wheel "):
            found.setdefault(one.name, []).append(one)
    return found


def _compilers(left: Side, right: Side) -> Iterator[Difference]:
    for name in sorted(left.compilers.keys() & right.compilers.keys()):
        mine, other = left.compilers[name], right.compilers[name]
        if not set(mine) & set(other):
            sides = _both(left, right, list(mine), list(other))
            yield Difference(rank=1, kind="compiler", name=name, sides=sides, blocks=True)


def _environment(left: Side, right: Side) -> Iterator[Difference]:
    """Variables of the closed list whose effective value is another; every view of both sides is shown."""
    names = {n for side in (left, right) for views in side.environments for n in views.names()}
    for name in numerics(sorted(names), left.versions.keys() & right.versions.keys()):
        mine, other = ({views.effective(name) for views in side.environments} for side in (left, right))
        if mine != other:
            sides = _both(left, right, _views(left, name), _views(right, name))
            rank = 0 if NUMERICS.match(name) else 3
            yield Difference(rank=rank, kind="environment", name=name, sides=sides)


def _views(side: Side, name: str) -> JsonValue:
    return [views.of(name) for views in side.environments]


def _kernels(left: Side, right: Side) -> Iterator[Difference]:
    """Compiled kernels of one name and specialization with no code in common."""
    for name in sorted(left.kernels.keys() & right.kernels.keys()):
        mine, other = left.kernels[name], right.kernels[name]
        specs = [
            spec for spec in sorted(mine.keys() & other.keys()) if not set(mine[spec]) & set(other[spec])
        ]
        if specs:
            sides = _both(left, right, _codes(mine, specs), _codes(other, specs))
            yield Difference(rank=1, kind="JIT specialization", name=name, sides=sides)


def _codes(kernel: Mapping[str, tuple[str, ...]], specs: list[str]) -> JsonValue:
    return {spec: list(kernel[spec]) for spec in specs}


def _cpu(left: Side, right: Side) -> Iterator[Difference]:
    for key in sorted(left.cpu.keys() & right.cpu.keys()):
        if left.cpu[key] != right.cpu[key]:
            sides = _both(left, right, left.cpu[key], right.cpu[key])
            yield Difference(rank=1, kind="processor", name=key, sides=sides)


def judge_roles(
    reports: Mapping[str, ProbeReport], policy: RolePolicy, wanted: Iterable[str]
) -> tuple[list[Check], list[Finding]]:
    """PROCESS_DIVERGENCE over every two roles, `wanted` being those that the recipe probes.

    Nothing for a recipe that probes one role. A role without an observation leaves the check not run.
    """
    roles = sorted(set(wanted))
    if len(roles) < 2:
        return [], []
    sides = [side_of(report.role or "", View(report)) for report in reports.values()]
    lacking = [role for role in roles if role not in {side.role for side in sides if side.libraries}]
    if lacking:
        return [_row(Status.NOT_RUN, f"no process of {', '.join(lacking)} was looked at")], []
    found: list[Finding] = []
    for left, right in combinations(sorted(sides, key=lambda side: side.role), 2):
        if left.role != right.role:
            found += [_said(one, policy, (left.role, right.role)) for one in differences(left, right)]
    found = found[:MAX_FINDINGS]
    row = check_of(CHECK, found, subject="roles")
    return [row.model_copy(update={"reason": _summary(roles, found)})], found


def _row(status: Status, reason: str) -> Check:
    return Check(id=CHECK, status=status, subject="roles", reason=reason)


def _said(one: Difference, policy: RolePolicy, roles: tuple[str, str]) -> Finding:
    """A fail for other code, unless a role declares it; a note for the rest, unless the policy forbids it."""
    declared = [role for role in roles if one.name in policy.declared.get(role, ())]
    blocks = one.blocks or (one.kind == "environment" and policy.environment == "fail")
    evidence: dict[str, object] = {"kind": one.kind, "rank": one.rank, "roles": list(roles)}
    if blocks and not declared:
        return finding(
            "PROCESS_DIVERGENCE", Status.FAIL, one.name, expected="the same in both roles",
            actual=dict(one.sides), evidence=evidence,
        )  # fmt: skip
    if declared:
        evidence["declared_by"] = declared
    return note("PROCESS_DIVERGENCE", one.name, actual=dict(one.sides), evidence=evidence)


def _summary(roles: list[str], found: list[Finding]) -> str:
    blocking = [one.subject for one in found if not one.note]
    said = f"{' beside '.join(roles)}: {len(found)} differences"
    return said + (f", not declared: {', '.join(blocking)}" if blocking else ", none undeclared in code")
