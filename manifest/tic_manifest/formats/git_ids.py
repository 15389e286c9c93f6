"""Git's own ids: SHA-1 over `KIND SIZE`, a NUL and the content (gitformat-pack(5), "git hash-object")."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Protocol

GITLINK = "160000"
SYMLINK = "120000"

Entry = tuple[str, str, bytes]
"""Mode, id in 40 hex digits, whole path: what stands at a path of a tree."""


class Hasher(Protocol):
    """A running hash."""

    def update(self, data: bytes | memoryview, /) -> None:
        """More content."""

    def hexdigest(self) -> str:
        """The hash so far."""


def object_id(kind: bytes, body: bytes) -> str:
    """The id of a whole object: `commit`, `tree`, `blob` or `tag`."""
    return hashlib.sha1(b"%s %d\0" % (kind, len(body)) + body, usedforsecurity=False).hexdigest()


def blob_hasher(size: int) -> Hasher:
    """The id of a blob of `size` bytes, once exactly these were given to `update`."""
    return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)


def blob_id(size: int, pieces: Iterable[bytes]) -> str:
    """The id that git gives to a blob of `size` bytes."""
    digest = blob_hasher(size)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def tree_id(entries: Iterable[Entry]) -> str:
    """The id of the tree that holds entries, subtrees computed and sorted as if they ended in a slash."""
    files: list[tuple[bytes, str, str]] = []
    folders: dict[bytes, list[Entry]] = {}
    for mode, oid, path in entries:
        name, slash, rest = path.partition(b"/")
        if slash:
            folders.setdefault(name, []).append((mode, oid, rest))
        else:
            files.append((name, mode, oid))
    rows = [(name, name, mode, oid) for name, mode, oid in files]
    rows += [(name + b"/", name, "40000", tree_id(inner)) for name, inner in folders.items()]
    body = b"".join(
        mode.encode("ascii") + b" " + name + b"\0" + bytes.fromhex(oid) for _, name, mode, oid in sorted(rows)
    )
    return object_id(b"tree", body)
