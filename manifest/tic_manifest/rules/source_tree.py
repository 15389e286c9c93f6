"""Files of a wheel that a pull request built against the tree of its head (S30 to S34).

Every file is that of its path in the tree, or of a kind that a closed rule or the recipe names; what is left
is `TREE_MISMATCH`. Source: issue 4; contract, section 5; docs/adr/0010.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator

from tic_manifest.formats.git_ids import GITLINK, SYMLINK, blob_id
from tic_manifest.formats.tree_listing import FILE, Listed
from tic_manifest.model.files import EffectiveTree, FileEntry, FileKind
from tic_manifest.model.verdict import Finding, Status, finding, note
from tic_manifest.rules.delivery_build import check_native
from tic_manifest.rules.installed import Installed, layers
from tic_manifest.rules.records import read_record
from tic_manifest.rules.source_evidence import BuiltFrom

METADATA = frozenset(
    {"METADATA", "WHEEL", "entry_points.txt", "top_level.txt", "namespace_packages.txt", "zip-safe"}
)
"""What build backends write into a dist-info folder; texts of licences are files of the tree."""
NATIVE = re.compile(r"\.(so|pyd|dylib|dll|a)(\.[0-9]+)*$")
NATIVE_SOURCES = (
    b".c", b".cc", b".cpp", b".cxx", b".cu", b".hip", b".pyx", b".rs", b".f", b".f90", b".m", b".mm",
    b".s", b".S", b".asm", b".go",
)  # fmt: skip
FIRST_LINES = (
    b"#!/usr/bin/env python3", b"#!/usr/bin/env python", b"#!/usr/bin/python3", b"#!/usr/bin/python",
    b"#!python", b"#!/usr/bin/env python3 -u",
)  # fmt: skip
"""First lines of scripts that setuptools replaces by `#!python`."""
MAX_LISTED = 20
MAX_LINKED = 1000
"""Files of one content that are tried for what a link names."""


def check_pull(built: BuiltFrom) -> Iterator[Finding]:
    """The listing against the lock: one tree, the same submodules."""
    locked, listing = built.locked, built.listing
    if listing.tree != locked.head_tree:
        what = "the lock names another tree than the head has"
        yield finding(
            "TREE_MISMATCH",
            Status.FAIL,
            locked.name,
            what=what,
            expected=listing.tree,
            actual=locked.head_tree,
        )
    said = {one.path: one.commit for one in locked.submodules}
    there = listing.submodules()
    for path in sorted({*said, *there}):
        if said.get(path) != there.get(path):
            what = "the lock names another commit of a submodule"
            yield finding(
                "SUBMODULE_DRIFT", Status.FAIL, locked.name, what=what,
                expected=there.get(path), actual=said.get(path), evidence={"path": path},
            )  # fmt: skip


def check_against_tree(tree: EffectiveTree, one: Installed, built: BuiltFrom) -> list[Finding]:
    """Findings for every file of the wheel, and a note for each kind of file that the tree does not hold."""
    held = _Held(tree, one, built)
    return [*held.files(), *held.notes()]


class _Held:
    """One wheel against one tree."""

    def __init__(self, tree: EffectiveTree, one: Installed, built: BuiltFrom) -> None:
        self._tree, self._one, self._built = tree, one, built
        self._listed = built.listing.entries
        base = posixpath.normpath(built.asked.subdirectory or ".")
        self._roots = ["" if base == "." else f"{base}/"]
        self._roots.append(f"{self._roots[0]}src/")
        self._generated = set(built.asked.build.generated)
        self._kinds: dict[str, list[str]] = defaultdict(list)
        self._matched: set[bytes] = set()
        given = built.precompiled
        lacks = built.asked.precompiled is not None and given is None
        self._worst = Status.INCONCLUSIVE if lacks else Status.FAIL
        rows = read_record(given.record.encode(), "")[0] if given is not None else []
        self._precompiled = {(row.path, row.sha256) for row in rows}
        self._links = built.listing.submodules()
        self._native_sources = any(path.endswith(NATIVE_SOURCES) for path in self._listed)
        self._named: set[tuple[bytes, str]] = set()
        self._by_id: dict[str, list[bytes]] = defaultdict(list)
        for path, listed in self._listed.items():
            if listed.mode not in {GITLINK, SYMLINK}:
                self._named.add((posixpath.basename(path), listed.oid))
                self._by_id[listed.oid].append(path)

    def files(self) -> Iterator[Finding]:
        """Every file of the wheel that is in the effective tree."""
        for row in sorted(self._one.held):
            path = self._one.place.path_of(row)
            entry = self._one.at.entry(path)
            if entry is not None and entry.kind is FileKind.FILE:
                yield from self._file(row, path, entry)
        if self._kinds["prebuilt"]:
            yield from check_native(self._built.locked.name, self._built.asked, self._built.locked.merge_base)

    def _file(self, row: str, path: str, entry: FileEntry) -> Iterator[Finding]:
        mapped = self._mapped(row)
        if row in self._generated:
            self._kinds["generated"].append(row)
            self._matched.update(mapped)
        elif not entry.blob_id:
            what = "git's id of this file was not computed"
            yield self._wrong(path, entry, None, what, status=Status.INCONCLUSIVE)
        elif mapped:
            yield from self._compare(path, entry, mapped)
        else:
            yield from self._unmapped(row, path, entry)

    def _mapped(self, row: str) -> dict[bytes, Listed]:
        """Where the tree has a file of the wheel: below the subdirectory, or below its `src`."""
        inner = self._inner(row)
        paths = [f"{root}{inner}".encode() for root in self._roots if inner is not None]
        return {path: self._listed[path] for path in paths if self._is_file(path)}

    def _is_file(self, path: bytes) -> bool:
        return path in self._listed and self._listed[path].mode != GITLINK

    def _is_linked(self, at: bytes, oid: str) -> bool:
        """Whether the link at a path names a file with this content: a link's id is that of its text."""
        folder = posixpath.join(b"/", posixpath.dirname(at))
        paths = self._by_id.get(oid, [])[:MAX_LINKED]
        texts = (posixpath.relpath(posixpath.join(b"/", path), folder) for path in paths)
        return any(blob_id(len(text), [text]) == self._listed[at].oid for text in texts)

    def _inner(self, row: str) -> str | None:
        """The path below a root of sources; None for files whose place the wheel's format chooses."""
        info = self._one.place.info
        if row.startswith(f"{info}/"):
            return None
        data = f"{info.removesuffix('.dist-info')}.data/"
        if not row.startswith(data):
            return row
        kind, _, inner = row.removeprefix(data).partition("/")
        return inner if kind in {"purelib", "platlib", "data"} else None

    def _compare(self, path: str, entry: FileEntry, mapped: dict[bytes, Listed]) -> Iterator[Finding]:
        for at, listed in mapped.items():
            linked = listed.mode == SYMLINK and self._is_linked(at, entry.blob_id)
            if linked or (listed.mode != SYMLINK and listed.oid == entry.blob_id):
                self._matched.add(at)
                if entry.mode & 0o111 and listed.mode == FILE:
                    what = "the file is executable and in the tree it is not"
                    yield self._wrong(path, entry, at, what, mode=f"{entry.mode:04o}")
                return
        at = next(iter(mapped))
        self._matched.add(at)
        yield self._wrong(path, entry, at, "")

    def _unmapped(self, row: str, path: str, entry: FileEntry) -> Iterator[Finding]:
        link = self._submodule(row)
        if self._is_metadata(row):
            self._kinds["metadata"].append(row)
        elif link is not None:
            what = "a file of a submodule, which the build does not check out"
            yield finding(
                "SUBMODULE_DRIFT", Status.FAIL, self._built.locked.name, what=what, expected=link[1],
                actual=entry.blob_id, evidence={"path": link[0], **self._evidence(path)},
            )  # fmt: skip
        elif (row, self._one.held[row]) in self._precompiled:
            self._kinds["prebuilt"].append(row)
        elif NATIVE.search(row):
            yield from self._native(row, path, entry)
        elif self._elsewhere(row, entry):
            self._kinds["placed elsewhere"].append(row)
        else:
            what = "the head's tree does not hold this file, and the recipe does not call it generated"
            yield self._wrong(path, entry, None, what, status=self._worst)

    def _is_metadata(self, row: str) -> bool:
        return row.removeprefix(f"{self._one.place.info}/") in METADATA

    def _submodule(self, row: str) -> tuple[str, str] | None:
        for root in self._roots:
            above = posixpath.dirname(f"{root}{row}")
            while above and self._links:
                if above in self._links:
                    return above, self._links[above]
                above = posixpath.dirname(above)
        return None

    def _native(self, row: str, path: str, entry: FileEntry) -> Iterator[Finding]:
        """Compiled here from sources of the head; where a precompiled wheel is named, never."""
        given = self._built.asked.precompiled
        if given is None and self._native_sources:
            self._kinds["compiled"].append(row)
            return
        what = "native code that the wheel named as precompiled does not hold"
        yield finding(
            "NATIVE_NOT_FROM_SOURCE", self._worst, path,
            what=what if given else "native code, and the tree has no native source",
            expected=given.wheel if given else None, actual=entry.digest, evidence=self._evidence(path),
        )  # fmt: skip

    def _elsewhere(self, row: str, entry: FileEntry) -> bool:
        """Licences, scripts, headers, data: the wheel's format chose the place, the tree has the file."""
        if self._inner(row) == row:
            return False
        name = posixpath.basename(row).encode()
        text = self._one.said.scripts.get(row)
        ids = {entry.blob_id}
        if text is not None:
            rest = b"\n" + text.encode().partition(b"\n")[2]
            ids |= {blob_id(len(first + rest), [first + rest]) for first in FIRST_LINES}
        return any((name, one) in self._named for one in ids)

    def _wrong(
        self,
        path: str,
        entry: FileEntry,
        at: bytes | None,
        what: str,
        *,
        status: Status = Status.FAIL,
        **more: str,
    ) -> Finding:
        listed = self._listed[at].oid if at is not None else None
        evidence = self._evidence(path) | more
        if at is not None:
            evidence["treePath"] = at.decode("utf-8", "backslashreplace")
        said = {"what": what} if what else {}
        actual = entry.blob_id or None
        return finding(
            "TREE_MISMATCH", status, path, expected=listed, actual=actual, evidence=evidence, **said
        )

    def _evidence(self, path: str) -> dict[str, str | int]:
        locked = self._built.locked
        return {
            "pullRequest": locked.name, "head": locked.head, "wheel": self._one.wheel.file,
            **layers(self._tree, path),
        }  # fmt: skip

    def notes(self) -> Iterator[Finding]:
        """One for each kind; the first paths are named, all are counted."""
        self._kinds["left out"] = [path.decode("utf-8", "backslashreplace") for path in self._left_out()]
        for kind, rows in self._kinds.items():
            if rows:
                yield note(
                    "NOT_IN_TREE", self._built.locked.name, what=f"{len(rows)} files: {kind}",
                    actual=rows[:MAX_LISTED],
                    evidence={"kind": kind, "count": len(rows), "wheel": self._from(kind)},
                )  # fmt: skip

    def _from(self, kind: str) -> str:
        given = self._built.asked.precompiled
        return given.wheel if given is not None and kind == "prebuilt" else self._one.wheel.file

    def _left_out(self) -> list[bytes]:
        """Sources beside files of the wheel that the wheel does not hold."""
        folders = {path.rpartition(b"/")[0] for path in self._matched if b"/" in path}
        return [
            path
            for path, one in self._listed.items()
            if path.endswith(b".py")
            and one.mode not in {GITLINK, SYMLINK}
            and path.rpartition(b"/")[0] in folders
            and path not in self._matched
        ]
