"""The id that git gives a folder: blobs, and trees sorted as if folders ended in a slash."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path


def tree_id(root: Path, submodules: Mapping[str, str]) -> str:
    """40 hex digits. `submodules` maps the path of a gitlink to its commit; git knows no empty folder."""
    return _tree(root, submodules, "") or _object(b"tree", b"")


def _tree(root: Path, submodules: Mapping[str, str], prefix: str) -> str | None:
    rows = []
    for entry in os.scandir(root):
        path = f"{prefix}{entry.name}"
        mode, oid = _entry(Path(entry.path), path, submodules)
        if oid is not None:
            name = os.fsencode(entry.name)
            rows.append((name + b"/" if mode == b"40000" else name, mode, name, oid))
    body = b"".join(mode + b" " + name + b"\0" + bytes.fromhex(oid) for _, mode, name, oid in sorted(rows))
    return _object(b"tree", body) if rows else None


def _entry(path: Path, name: str, submodules: Mapping[str, str]) -> tuple[bytes, str | None]:
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        return b"120000", _object(b"blob", os.fsencode(os.readlink(path)))
    if stat.S_ISREG(found.st_mode):
        mode = b"100755" if found.st_mode & 0o100 else b"100644"
        return mode, _object(b"blob", path.read_bytes())
    if name in submodules:
        return b"160000", submodules[name]
    return b"40000", _tree(path, submodules, f"{name}/")


def _object(kind: bytes, body: bytes) -> str:
    return hashlib.sha1(kind + b" " + str(len(body)).encode() + b"\0" + body).hexdigest()  # noqa: S324 - git's own
