"""Installed distributions against the wheels that the lock and the build name (S18, S19).

The RECORD of a wheel is a subset of the installed one; what stands there beside it comes from a closed set.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tic_manifest.model.files import EffectiveTree, FileEntry, FileKind
from tic_manifest.model.verdict import Finding, Status, finding
from tic_manifest.model.wheels import WheelRecord
from tic_manifest.rules.installers import ADDED, Place, entry_scripts, rewritten, source_of
from tic_manifest.rules.records import RecordRow, read_record
from tic_manifest.rules.source_evidence import InstalledWheel, Sources, normalized
from tic_manifest.rules.tree import Resolver, resolve

_SET_ID = 0o6000
_BYTECODE_LEFT = "bytecode that no wheel holds: what it was compiled from is not known"


@dataclass(frozen=True, kw_only=True)
class Installed:
    """A distribution in the effective tree with the wheel that it was installed from.

    `held` are the rows of the wheel by path in it, `rows` those of the installed RECORD; `at` looks up paths.
    """

    record: str
    place: Place
    rows: tuple[RecordRow, ...]
    wheel: InstalledWheel
    said: WheelRecord
    held: Mapping[str, str | None]
    at: Resolver


def find_installed(
    tree: EffectiveTree, at: Resolver, record: str, rows: list[RecordRow], sources: Sources
) -> tuple[Installed | None, Iterator[Finding]]:
    """The distribution of a RECORD where its wheel is known, else what is to be said of it."""
    place = Place.of(record)
    wheel = sources.wheels.get(normalized(place.name))
    if wheel is None:
        return None, _foreign(tree, record, sources)
    if wheel.record is None:
        return None, iter(())
    held, problem = read_record(wheel.record.record.encode(), "")
    own = next((row.path for row in held if _is_own_record(row.path)), "")
    if problem or own != f"{place.info}/RECORD":
        return None, iter([_other_version(tree, record, wheel, problem, posixpath.dirname(own))])
    hashes = {row.path: row.sha256 for row in held if row.path != own}
    made = Installed(
        record=record, place=place, rows=tuple(rows), wheel=wheel, said=wheel.record, held=hashes,
        at=at,
    )  # fmt: skip
    return made, iter(())


def check_installed(tree: EffectiveTree, one: Installed) -> Iterator[Finding]:
    """The rows of the wheel are installed rows; further rows come from installers; no link, no set-id bit."""
    by_path = {one.place.path_of(path): _allowed(one, path, sha256) for path, sha256 in one.held.items()}
    there, now = {(row.path, row.sha256) for row in one.rows}, {row.path: row.sha256 for row in one.rows}
    for path, hashes in by_path.items():
        if not any((path, sha256) in there for sha256 in hashes):
            yield _not_the_wheels(tree, one, path, hashes, now.get(path))
    for path in sorted({path for path, _ in there}):
        odd = _odd(one.at.entry(path))
        if odd is not None:
            yield finding(
                "WHEEL_HASH", Status.FAIL, path, what=odd[0], actual=odd[1],
                evidence={**_origin(one), **layers(tree, path)},
            )  # fmt: skip
    yield from _extra(tree, one, {pair for pair in there if pair[0] not in by_path})


def check_absent(sources: Sources, seen: set[str]) -> Iterator[Finding]:
    """Every wheel is installed; `seen` are normalized names of what is."""
    what = "a wheel of the lock or the build is not installed"
    for name, wheel in sources.wheels.items():
        if name not in seen:
            yield finding("RECORD_MISSING", Status.FAIL, wheel.file, what=what, expected=wheel.sha256)


def layers(tree: EffectiveTree, path: str) -> dict[str, int]:
    """Which layer a path is from, and which one it was in before."""
    real = resolve(tree, posixpath.dirname(path))
    whole = posixpath.join(real or "", posixpath.basename(path))
    entry, before = tree.entries.get(whole), tree.earlier.get(whole)
    return ({"layer": entry.layer} if entry else {}) | ({"earlierLayer": before} if before else {})


def _other_version(
    tree: EffectiveTree, record: str, wheel: InstalledWheel, problem: str, expected: str
) -> Finding:
    what = "the RECORD of the wheel cannot be read" if problem else "another version is installed"
    return finding(
        "WHEEL_HASH", Status.FAIL, record, what=what, expected=expected or None, actual=Place.of(record).info,
        evidence={"wheel": wheel.file, "sha256": wheel.sha256, **layers(tree, record)},
    )  # fmt: skip


def _is_own_record(path: str) -> bool:
    """A RECORD deeper down is part of a vendored copy."""
    return path.count("/") == 1 and path.endswith(".dist-info/RECORD")


def _allowed(one: Installed, path: str, sha256: str | None) -> set[str | None]:
    script = one.said.scripts.get(path)
    return {sha256} if script is None else {sha256, *rewritten(one.place, script)}


def _not_the_wheels(
    tree: EffectiveTree, one: Installed, path: str, hashes: set[str | None], now: str | None
) -> Finding:
    what = "the installed RECORD does not say what the wheel's RECORD says of this file"
    return finding(
        "WHEEL_HASH", Status.FAIL, path, what=what, expected=min(str(one) for one in hashes), actual=now,
        evidence={**_origin(one), **layers(tree, path), "recordLayer": tree.entries[one.record].layer},
    )  # fmt: skip


def _extra(tree: EffectiveTree, one: Installed, pairs: set[tuple[str, str | None]]) -> Iterator[Finding]:
    scripts = entry_scripts(one.place, one.said.entry_points)
    folder = f"{one.place.site}/{one.place.info}"
    for path, sha256 in sorted(pairs, key=str):
        if posixpath.dirname(path) == folder and posixpath.basename(path) in ADDED:
            continue
        evidence = {**_origin(one), **layers(tree, path)}
        if path in scripts:
            if sha256 not in scripts[path]:
                what = "a script of an entry point has a text that no known installer writes"
                yield finding(
                    "UNOWNED_FILE", Status.INCONCLUSIVE, path, what=what, actual=sha256, evidence=evidence
                )
        elif not path.endswith(".pyc"):
            what = "the installed RECORD names a file that the wheel does not hold"
            yield finding("UNOWNED_FILE", Status.FAIL, path, what=what, actual=sha256, evidence=evidence)


class Bytecode:
    """Bytecode below a site that no wheel holds: an interpreter may load it in place of the source."""

    def __init__(self, tree: EffectiveTree) -> None:
        self._tree = tree
        self._left = {path: source_of(path) for path in tree.entries if path.endswith(".pyc")}
        self._sources = set(self._left.values())
        self._known: set[str] = set()
        self._sites: set[str] = set()

    def saw(self, one: Installed) -> None:
        """A distribution with everything that its wheel holds."""
        self._sites.add(f"{one.place.site}/")
        if self._left:
            held = {one.place.path_of(path) for path in one.held}
            self._known |= held & self._sources
            for path in held & self._left.keys():
                del self._left[path]

    def findings(self, sources: Sources) -> Iterator[Finding]:
        """Beside a source of a wheel it is not known what it was compiled from; elsewhere nothing owns it."""
        for path, source in sorted(self._left.items()):
            if path.startswith(tuple(self._sites)):
                status = Status.INCONCLUSIVE if source in self._known else _worst(sources)
                entry = self._tree.entries[path]
                yield finding(
                    "UNOWNED_FILE", status, path, what=_BYTECODE_LEFT, actual=entry.digest,
                    evidence={"layer": entry.layer, **({"source": source} if source else {})},
                )  # fmt: skip


def _odd(entry: FileEntry | None) -> tuple[str, str] | None:
    """What no installer makes of a wheel's file."""
    if entry is not None and entry.kind is FileKind.LINK:
        return "a symbolic link stands where the wheel has a file", f"-> {entry.target}"[:400]
    if entry is not None and entry.mode & _SET_ID:
        return "a file of a wheel runs with the rights of its owner", f"mode {entry.mode:04o}"
    return None


def _worst(sources: Sources) -> Status:
    """What no wheel explains is disproved only where every wheel is known."""
    return Status.INCONCLUSIVE if sources.missing else Status.FAIL


def _foreign(tree: EffectiveTree, path: str, sources: Sources) -> Iterator[Finding]:
    layer = tree.entries[path].layer
    if layer > sources.base_layers:
        what = "an installed distribution is of no wheel that the lock or the build names"
        yield finding(
            "WHEEL_HASH", _worst(sources), path, what=what, actual=Place.of(path).info,
            evidence={"layer": layer},
        )  # fmt: skip


def _origin(one: Installed) -> dict[str, str]:
    kind = "built" if one.wheel.pull else "locked"
    return {
        "distribution": one.place.info,
        "wheel": one.wheel.file,
        "sha256": one.wheel.sha256,
        "wheelIs": kind,
    }
