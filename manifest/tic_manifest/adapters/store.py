"""Content-addressed files below one folder: written while they are hashed, renamed into place when whole."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

from tic_manifest.errors import RefusedError, UnavailableError
from tic_manifest.model.base import Digest
from tic_manifest.ports import Store

CHUNK = 1 << 20
_READ_ONLY = 0o444
_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP}


class FileStore:
    """`<root>/sha256/<hex>`; a file is there whole and hashed, or it is not there."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, digest: Digest) -> Path | None:
        """Where the file lies, its content hashed when it was put; None when absent."""
        path = self._place(digest)
        return path if path.is_file() and not path.is_symlink() else None

    def put(self, source: IO[bytes], *, expected: Digest | None = None) -> Digest:
        """Store a stream atomically, in memory of one chunk.

        Raises RefusedError WHEEL_HASH when `expected` differs, UnavailableError DISK_FULL, RIGHTS.
        """
        folder = self.root / "sha256"
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".tmp-")
        try:
            with os.fdopen(handle, "wb") as target:
                digest = _copy(source, target)
            _check(digest, expected)
            os.chmod(temporary, _READ_ONLY)
            os.replace(temporary, self._place(digest))
        except OSError as error:
            raise _disk_error(error, folder) from error
        finally:
            Path(temporary).unlink(missing_ok=True)
        return digest

    def put_file(self, path: Path, *, expected: Digest | None = None) -> Digest:
        """Store a file's content; see `put`."""
        with path.open("rb") as stream:
            return self.put(stream, expected=expected)

    def place(self, digest: Digest, target: Path, name: str) -> None:
        """Make a stored file appear at `target`, read-only: a hard link, or a copy across file systems.

        Raises UnavailableError BLOB_MISSING that names the file when it is absent.
        """
        source = required(self, digest, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise _disk_error(error, target.parent) from error
            shutil.copyfile(source, target)
            os.chmod(target, _READ_ONLY)

    def _place(self, digest: Digest) -> Path:
        return self.root / "sha256" / digest.removeprefix("sha256:")


def required(store: Store, digest: Digest, name: str) -> Path:
    """Where a file lies. Raises UnavailableError BLOB_MISSING that names the file when it is absent."""
    path = store.path(digest)
    if path is None:
        raise UnavailableError(
            "BLOB_MISSING",
            f"{name} is not in the store",
            expected=digest,
            actual="absent",
            remedy="run tic-manifest lock again: it fetches what is missing",
        )
    return path


def hash_file(path: Path) -> Digest:
    """`sha256:<hex>` of a file's content, in memory of one chunk."""
    with path.open("rb") as stream:
        return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()


def _copy(source: IO[bytes], target: IO[bytes]) -> Digest:
    seen = hashlib.sha256()
    while chunk := source.read(CHUNK):
        seen.update(chunk)
        target.write(chunk)
    target.flush()
    return "sha256:" + seen.hexdigest()


def _check(digest: Digest, expected: Digest | None) -> None:
    if expected is not None and digest != expected:
        raise RefusedError(
            "WHEEL_HASH",
            "a file is not the one that was locked",
            expected=expected,
            actual=digest,
            remedy="find out who changed the file; lock again only when the new file is the one you want",
        )


def _disk_error(error: OSError, folder: Path) -> UnavailableError:
    full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    code = "DISK_FULL" if full else "RIGHTS"
    return UnavailableError(code, "cannot write to the store", where=str(folder), actual=str(error))
