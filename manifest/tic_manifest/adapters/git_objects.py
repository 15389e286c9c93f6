"""Trees and blobs of a bare repository, read through `ls-tree -z` and one `cat-file --batch` process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tic_manifest.adapters.git_run import GitRunner
from tic_manifest.errors import RefusedError, UnavailableError
from tic_manifest.formats.git_ids import GITLINK, SYMLINK, blob_id, tree_id

__all__ = [
    "CHUNK",
    "GITLINK",
    "SYMLINK",
    "BlobReader",
    "TreeEntry",
    "blob_id",
    "blob_reader",
    "tree_entries",
    "tree_id",
]
CHUNK = 1 << 20


@dataclass(frozen=True)
class TreeEntry:
    """One entry of a tree, whole path from its root. `mode` as in git, six digits."""

    mode: str
    kind: str
    oid: str
    path: bytes


def tree_entries(runner: GitRunner, repo: Path, treeish: str) -> list[TreeEntry]:
    """Every entry that is no tree, recursively. Raises UnavailableError OBJECTS_MISSING."""
    ran = runner.run(["ls-tree", "-r", "-z", "--full-tree", treeish], repo=repo)
    if ran.status != 0:
        raise objects_missing(f"the tree of {treeish} cannot be read", ran.err)
    return [_entry(row) for row in ran.out.split(b"\0") if row]


def _entry(row: bytes) -> TreeEntry:
    head, _, path = row.partition(b"\t")
    mode, kind, oid = head.decode("ascii").split(" ")
    return TreeEntry(mode, kind, oid, path)


class BlobReader:
    """Reads blobs by id from one `git cat-file --batch` process."""

    def __init__(self, process: Any) -> None:
        self._in: IO[bytes] = process.stdin
        self._out: IO[bytes] = process.stdout

    def chunks(self, oid: str) -> Iterator[bytes]:
        """The bytes of a blob in pieces. Raises UnavailableError OBJECTS_MISSING."""
        self._in.write(oid.encode("ascii") + b"\n")
        self._in.flush()
        parts = self._out.readline().split()
        if len(parts) != 3 or parts[1] != b"blob":
            raise objects_missing(f"blob {oid} is missing", b" ".join(parts).decode("ascii", "replace"))
        left = int(parts[2])
        while left:
            piece = self._out.read(min(CHUNK, left))
            if not piece:
                raise objects_missing(f"blob {oid} ends early", "git stopped")
            left -= len(piece)
            yield piece
        self._out.read(1)

    def bytes(self, oid: str, limit: int) -> bytes:
        """A whole blob of at most `limit` bytes. Raises RefusedError TREE_MISMATCH when larger."""
        data = bytearray()
        for piece in self.chunks(oid):
            data += piece
            if len(data) > limit:
                raise RefusedError(
                    "TREE_MISMATCH", f"blob {oid} is too large", expected=f"at most {limit} bytes"
                )
        return bytes(data)


@contextmanager
def blob_reader(runner: GitRunner, repo: Path) -> Iterator[BlobReader]:
    """A reader whose process ends with the block."""
    process = runner.start(["cat-file", "--batch"], repo=repo)
    try:
        yield BlobReader(process)
    finally:
        process.stdin.close()
        process.stdout.close()
        process.proc.wait()


def objects_missing(what: str, detail: str = "") -> UnavailableError:
    """An object that a rule needs is not there: never a conflict, never a pass (rules/pr-gate.md F33)."""
    return UnavailableError(
        "OBJECTS_MISSING",
        what,
        actual=detail.strip()[:500],
        remedy="run the command again with a network; remove the mirror of this repository if it stays",
    )
