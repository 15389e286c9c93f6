"""The listing of a commit's tree as evidence: raw commit object and every path, hashed up to the commit.

Unpacked: `commit SIZE`, a NUL and SIZE bytes, exactly as git hashes a commit; then for each path, in the
order of the paths' bytes, `MODE ID<tab>PATH` and a NUL, as `git ls-tree -r -z` gives them without the kind.
Source: gitformat-pack(5), git-ls-tree(1), docs/adr/0010.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tic_manifest.errors import RefusedError
from tic_manifest.formats.git_ids import GITLINK, SYMLINK, Entry, object_id, tree_id
from tic_manifest.formats.packed import pack, unpack
from tic_manifest.model.base import GitCommit, GitTree

MAX_BYTES = 32 << 20
MAX_ENTRIES = 200_000
MAX_COMMIT = 1 << 20
MAX_PATH = 4096
MAX_DEPTH = 128
FILE, PROGRAM = "100644", "100755"
MODES = frozenset({FILE, PROGRAM, "100664", SYMLINK, GITLINK})
"""100664 stands in some old trees; git takes it for a file."""

_COMMIT = re.compile(rb"commit (0|[1-9][0-9]{0,7})\0")
_TREE = re.compile(rb"tree ([0-9a-f]{40})\n")
_ROW = re.compile(rb"([0-9]{6}) ([0-9a-f]{40})\t(.+)", re.DOTALL)
_ODD_PARTS = frozenset({b"", b".", b".."})


class Listed(NamedTuple):
    """What a tree holds at a path: mode as git writes it, and id."""

    mode: str
    oid: str


@dataclass(frozen=True, kw_only=True)
class TreeListing:
    """A commit with every path of its tree, paths as git has them: bytes from the root of the tree."""

    commit: GitCommit
    tree: GitTree
    entries: Mapping[bytes, Listed]

    def submodules(self) -> dict[str, GitCommit]:
        """Path to commit of every gitlink."""
        links = ((path, one) for path, one in self.entries.items() if one.mode == GITLINK)
        return {path.decode("utf-8", "backslashreplace"): one.oid for path, one in links}


def listing_bytes(commit: bytes, entries: Iterable[Entry]) -> bytes:
    """The packed listing of a commit (the object's content, without its header) and all that is no tree."""
    rows = sorted((path, mode, oid) for mode, oid, path in entries)
    head = b"commit %d\0" % len(commit) + commit
    said = (f"{mode} {oid}\t".encode("ascii") + path + b"\0" for path, mode, oid in rows)
    return pack(head + b"".join(said))


def read_listing(packed: bytes, commit: GitCommit, where: str) -> TreeListing:
    """The listing of `commit`, hashed up to its id.

    Raises RefusedError: SCHEMA for bytes that are no listing, TREE_MISMATCH for one of another commit or with
    other paths than the commit's tree has.
    """
    data = unpack(packed, MAX_BYTES, where)
    body, rows = _commit(data, where)
    found = object_id(b"commit", body)
    if found != commit:
        raise RefusedError(
            "TREE_MISMATCH", "a listing is of another commit", where=where, expected=commit, actual=found
        )
    said = _TREE.match(body)
    if said is None:
        raise _malformed(where, "a commit that names its tree first", body[:60])
    entries = dict(_entries(rows, where))
    _refuse_files_as_folders(entries, where)
    tree, made = said[1].decode(), tree_id((one.mode, one.oid, path) for path, one in entries.items())
    if made != tree:
        raise RefusedError(
            "TREE_MISMATCH",
            "a listing does not hash up to its commit",
            where=where,
            expected=tree,
            actual=made,
        )
    return TreeListing(commit=commit, tree=tree, entries=entries)


def _commit(data: bytes, where: str) -> tuple[bytes, bytes]:
    head = _COMMIT.match(data)
    size = int(head[1]) if head else -1
    if head is None or size > MAX_COMMIT or len(data) < head.end() + size:
        raise _malformed(where, f"a commit of at most {MAX_COMMIT} bytes", data[:60])
    return data[head.end() : head.end() + size], data[head.end() + size :]


def _entries(rows: bytes, where: str) -> Iterator[tuple[bytes, Listed]]:
    if rows and not rows.endswith(b"\0"):
        raise _malformed(where, "rows that end in a NUL", rows[-60:])
    if rows.count(b"\0") > MAX_ENTRIES:
        raise _malformed(where, f"at most {MAX_ENTRIES} paths", str(rows.count(b"\0")).encode())
    before = b""
    for row in rows.split(b"\0")[:-1]:
        found = _ROW.fullmatch(row)
        mode = found[1].decode() if found else ""
        if found is None or mode not in MODES or not _is_path(found[3]):
            raise _malformed(where, "mode, id and path inside the tree", row)
        if found[3] <= before:
            raise _malformed(where, "each path once, in order", found[3])
        before = found[3]
        yield before, Listed(mode, found[2].decode())


def _is_path(path: bytes) -> bool:
    parts = path.split(b"/")
    return len(path) <= MAX_PATH and len(parts) <= MAX_DEPTH and not _ODD_PARTS & set(parts)


def _refuse_files_as_folders(entries: Mapping[bytes, Listed], where: str) -> None:
    """A path is a file or a folder: two entries of one name in a tree are what git itself refuses."""
    for path in entries:
        at = path.find(b"/")
        while at > 0:
            if path[:at] in entries:
                raise _malformed(where, "no path below a file", path)
            at = path.find(b"/", at + 1)


def _malformed(where: str, expected: str, actual: bytes) -> RefusedError:
    return RefusedError(
        "SCHEMA",
        "not the listing of a tree",
        where=where,
        expected=expected,
        actual=ascii(actual[:200])[2:-1],
    )
