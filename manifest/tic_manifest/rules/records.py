"""Installed files against the RECORD of their distribution, on the effective tree (C9, S16 to S19).

Source: packaging.python.org, "Recording installed projects". pip writes RECORD and never checks it.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tic_manifest.model.files import EffectiveTree, FileKind
from tic_manifest.model.verdict import Finding, Status, finding
from tic_manifest.rules.tree import MAX_FINDINGS, resolve

_CODE = (".py", ".so", ".pth", ".pyd")


@dataclass(frozen=True, kw_only=True)
class RecordRow:
    """A row: the path from the root of the image, and the SHA-256 hex where the row has one."""

    path: str
    sha256: str | None


def check_records(tree: EffectiveTree, subject: str) -> list[Finding]:
    """Every hashed row of every RECORD, then files of code that no RECORD names.

    A RECORD that another distribution's RECORD names is part of a vendored copy, not of an installation
    (setuptools carries some): its own rows say where the copy once was installed.
    """
    found: list[Finding] = []
    owned: set[str] = set()
    read = {place: read_record(raw, _site(place)) for place, raw in sorted(tree.records.items())}
    vendored = {
        row.path for place, (rows, _) in read.items() for row in rows if _site(row.path) != _site(place)
    }
    installed = {place: rows for place, rows in read.items() if place not in vendored}
    for place, (rows, problem) in installed.items():
        if problem:
            found.append(_malformed(place, problem))
        for row in rows:
            path = resolve(tree, row.path) or row.path
            owned.add(path)
            found += _check_row(tree, row, path, posixpath.dirname(place))
    found += _unowned(tree, owned, {_site(place) for place in installed})
    return _bounded(found, subject)


def _site(place: str) -> str:
    return posixpath.dirname(posixpath.dirname(place))


def read_record(raw: bytes, site: str) -> tuple[list[RecordRow], str]:
    """The rows of a RECORD, paths from the root, and what is wrong with it."""
    rows: list[RecordRow] = []
    try:
        for row in csv.reader(io.StringIO(raw.decode("utf-8"), newline="")):
            if row and row[0]:
                path = row[0].lstrip("/") if row[0].startswith("/") else posixpath.join(site, row[0])
                rows.append(RecordRow(path=posixpath.normpath(path), sha256=_sha256(row)))
    except (UnicodeDecodeError, csv.Error, ValueError, binascii.Error) as error:
        return rows, str(error)
    return rows, ""


def _sha256(row: list[str]) -> str | None:
    kind, _, text = (row[1] if len(row) > 1 else "").partition("=")
    if kind != "sha256":
        return None
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).hex()


def _check_row(tree: EffectiveTree, row: RecordRow, path: str, owner: str) -> Iterator[Finding]:
    if row.sha256 is None:
        return
    entry = tree.entries.get(path)
    if entry is None or entry.kind is not FileKind.FILE:
        was = tree.removed.get(path)
        evidence = {"distribution": owner, **({"layer": was[0], "removedByLayer": was[1]} if was else {})}
        yield finding("RECORD_MISSING", Status.FAIL, row.path, expected=row.sha256, evidence=evidence)
    elif entry.digest != row.sha256:
        before = tree.earlier.get(path)
        evidence = {
            "distribution": owner,
            "layer": entry.layer,
            **({"earlierLayer": before} if before else {}),
        }
        yield finding(
            "RECORD_HASH", Status.FAIL, row.path, expected=row.sha256, actual=entry.digest, evidence=evidence
        )


def _unowned(tree: EffectiveTree, owned: set[str], sites: set[str]) -> Iterator[Finding]:
    for path, entry in sorted(tree.entries.items()):
        if (
            entry.kind is FileKind.FILE
            and path.endswith(_CODE)
            and path not in owned
            and _site_of(path, sites)
        ):
            yield finding(
                "UNOWNED_FILE", Status.FAIL, path, actual=entry.digest, evidence={"layer": entry.layer}
            )


def _site_of(path: str, sites: set[str]) -> bool:
    above = posixpath.dirname(path)
    while above:
        if above in sites:
            return True
        above = posixpath.dirname(above)
    return False


def _malformed(place: str, problem: str) -> Finding:
    what = "a RECORD cannot be read"
    return finding("RECORD_HASH", Status.FAIL, place, what=what, actual=problem[:200])


def _bounded(found: list[Finding], subject: str) -> list[Finding]:
    if len(found) <= MAX_FINDINGS:
        return found
    counts: Mapping[str, int] = {
        code: sum(one.code == code for one in found) for code in {one.code for one in found}
    }
    rest = [
        finding(code, Status.FAIL, subject, what=f"{count} files in all; the first are listed", actual=count)
        for code, count in sorted(counts.items())
    ]
    return [*found[:MAX_FINDINGS], *rest]
