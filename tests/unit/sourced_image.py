"""An image as its lock and heads say, changed layer by layer, and what is said of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import deliveries as d
from sourced import SITE, Head, Wheel, built_wheel, evidence, git_id, lock_of
from tic_manifest.formats.lock import LoadedLock
from tic_manifest.model.files import EffectiveTree, FileEntry, FileKind, LayerTree
from tic_manifest.model.verdict import Finding
from tic_manifest.rules.dossier import read_dossier
from tic_manifest.rules.source_evidence import Sources, read_sources
from tic_manifest.rules.sources import check_sources
from tic_manifest.rules.tree import lay_over

PLAIN = {"alpha/__init__.py": b"x = 1\n", "alpha/core.py": b"y = 2\n"}
HEAD = Head(files=PLAIN)
BUILT = Wheel(files=PLAIN)
LOCKED = Wheel(name="other_thing", files={"other/__init__.py": b"z = 3\n"})


def layer(number: int, files: Mapping[str, bytes], mode: int = 0o644) -> LayerTree:
    entries = {
        path: FileEntry(
            FileKind.FILE,
            number,
            hashlib.sha256(data).hexdigest(),
            len(data),
            mode=mode,
            blob_id=git_id(data),
        )
        for path, data in files.items()
    }
    kept = {path: data for path, data in files.items() if path.endswith("/RECORD")}
    return LayerTree(number=number, entries=entries, kept=kept)


def sources_of(
    head: Head = HEAD, built: Wheel = BUILT, more: str = "", lock: LoadedLock | None = None, **changed: bytes
) -> Sources:
    return read_sources(read_dossier(files_of(head, built, more, lock) | changed))


def files_of(
    head: Head = HEAD, built: Wheel = BUILT, more: str = "", lock: LoadedLock | None = None, *rest: Wheel
) -> dict[str, bytes]:
    made = lock or lock_of(head, [LOCKED], more)
    body = d.build_body(wheels=(built_wheel(built, head),))
    return {"lock.json": made.raw, "receipts/build.json": d.receipt(made, body)} | evidence(
        head, [built, LOCKED, *rest]
    )


def tree_of(*layers: Mapping[str, bytes], built: Wheel = BUILT) -> EffectiveTree:
    installed = {**built.installed(), **LOCKED.installed()}
    return lay_over([layer(number, files) for number, files in enumerate((installed, *layers), start=1)])


def said(tree: EffectiveTree, sources: Sources) -> list[Finding]:
    return [one for one in check_sources(tree, sources, "image") if not one.note]


def pairs(found: list[Finding]) -> set[tuple[str, str, str]]:
    return {(one.code, str(one.status), one.subject.removeprefix(f"{SITE}/")) for one in found}


def edited(path: str, data: bytes, wheel: Wheel = BUILT) -> dict[str, bytes]:
    """A later layer that writes a file and the row of its RECORD."""
    whole = replace(wheel, files={**wheel.files, path: data}).installed()
    return {one: whole[one] for one in (f"{SITE}/{path}", f"{SITE}/{wheel.info}/RECORD")}
