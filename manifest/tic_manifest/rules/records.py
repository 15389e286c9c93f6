"""Installed files against the RECORD of their distribution, on the effective tree (C9, S16 to S19).

Source: packaging.python.org, "Recording installed projects". pip writes RECORD and never checks it.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import posixpath
from collections.abc import Iterator
from typing import NamedTuple

from tic_manifest.model.files import EffectiveTree, FileKind
from tic_manifest.model.verdict import Finding, Status, finding
from tic_manifest.rules.bounded import Bounded
from tic_manifest.rules.tree import Resolver

_CODE = (".py", ".so", ".pth", ".pyd")


class RecordRow(NamedTuple):
    """A row: the path from the root of the image, and the SHA-256 hex where the row has one."""

    path: str
    sha256: str | None


def check_records(tree: EffectiveTree, subject: str) -> list[Finding]:
    """Every hashed row of every RECORD, then files of code that no RECORD names."""
    found: list[Finding] = []
    owned: set[str] = set()
    resolver = Resolver(tree)
    installed = installed_records(tree)
    for place in installed:  # one after the other: the rows of all of them would take much memory
        rows, problem = read_record(tree.records[place], _site(place))
        if problem:
            found.append(_malformed(place, problem))
        for row in rows:
            path = resolver.path(row.path) or row.path
            if path.endswith(_CODE):
                owned.add(path)
            if (one := _check_row(tree, row, path, posixpath.dirname(place))) is not None:
                found.append(one)
    found += _unowned(tree, owned, {_site(place) for place in installed})
    return bounded(found, subject)


def installed_records(tree: EffectiveTree) -> list[str]:
    """The paths of the RECORDs of installations, sorted.

    A RECORD that another distribution's RECORD names is part of a vendored copy, not of an installation
    (setuptools carries some): its own rows say where the copy once was installed.
    """
    vendored = _vendored(tree)
    return [place for place in sorted(tree.records) if place not in vendored]


def _vendored(tree: EffectiveTree) -> set[str]:
    """The RECORDs that the RECORD of another distribution names."""
    found: set[str] = set()
    for place, raw in tree.records.items():
        own = posixpath.basename(posixpath.dirname(place)).encode("utf-8", "surrogateescape") + b"/RECORD"
        if raw.count(b"RECORD") > raw.count(own):
            rows, _ = read_record(raw, _site(place))
            found |= {
                row.path for row in rows if row.path in tree.records and _site(row.path) != _site(place)
            }
    return found


def _site(place: str) -> str:
    return posixpath.dirname(posixpath.dirname(place))


def read_record(raw: bytes, site: str) -> tuple[list[RecordRow], str]:
    """The rows of a RECORD, paths from the root, and what is wrong with it."""
    rows: list[RecordRow] = []
    try:
        for row in csv.reader(io.StringIO(raw.decode("utf-8"), newline="")):
            if row and row[0]:
                rows.append(RecordRow(_place(row[0], site), _sha256(row)))
    except (UnicodeDecodeError, csv.Error, ValueError, binascii.Error) as error:
        return rows, str(error)
    return rows, ""


def _place(name: str, site: str) -> str:
    """The path that a row names, from the root; most are plain and below the site."""
    if name[0] not in "./" and "/." not in name and "//" not in name and name[-1] != "/":
        return f"{site}/{name}" if site else name
    path = name.lstrip("/") if name[0] == "/" else posixpath.join(site, name)
    return posixpath.normpath(path)


def _sha256(row: list[str]) -> str | None:
    kind, _, text = (row[1] if len(row) > 1 else "").partition("=")
    if kind != "sha256":
        return None
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).hex()


def _check_row(tree: EffectiveTree, row: RecordRow, path: str, owner: str) -> Finding | None:
    if row.sha256 is None:
        return None
    entry = tree.entries.get(path)
    if entry is None or entry.kind is not FileKind.FILE:
        was = tree.removed.get(path)
        evidence = {"distribution": owner, **({"layer": was[0], "removedByLayer": was[1]} if was else {})}
        return finding("RECORD_MISSING", Status.FAIL, row.path, expected=row.sha256, evidence=evidence)
    if entry.digest == row.sha256:
        return None
    before = tree.earlier.get(path)
    evidence = {"distribution": owner, "layer": entry.layer, **({"earlierLayer": before} if before else {})}
    return finding(
        "RECORD_HASH", Status.FAIL, row.path, expected=row.sha256, actual=entry.digest, evidence=evidence
    )


def _unowned(tree: EffectiveTree, owned: set[str], sites: set[str]) -> Iterator[Finding]:
    found = [
        path
        for path, entry in tree.entries.items()
        if path.endswith(_CODE) and path not in owned and entry.kind is FileKind.FILE and _is_in(path, sites)
    ]
    for path in sorted(found):
        entry = tree.entries[path]
        yield finding("UNOWNED_FILE", Status.FAIL, path, actual=entry.digest, evidence={"layer": entry.layer})


def _is_in(path: str, sites: set[str]) -> bool:
    above = posixpath.dirname(path)
    while above:
        if above in sites:
            return True
        above = posixpath.dirname(above)
    return False


def _malformed(place: str, problem: str) -> Finding:
    what = "a RECORD cannot be read"
    return finding("RECORD_HASH", Status.FAIL, place, what=what, actual=problem[:200])


def bounded(found: list[Finding], subject: str) -> list[Finding]:
    """The first findings, and for the rest one per code that counts all."""
    kept = Bounded(subject)
    kept.add(found)
    return kept.all()
