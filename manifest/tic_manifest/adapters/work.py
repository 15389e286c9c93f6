"""The work folder: one writer at a time, files written whole, receipts by lock digest."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tic_manifest.errors import UnavailableError
from tic_manifest.model.base import Digest

MAX_FILE = 256 << 20


class WorkFolder:
    """`--work DIR`: `lock.json`, `receipts/<lock digest>/<stage>.json`, layout, logs, store, runs."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, name: str) -> bytes | None:
        """A file of the folder, or None where it is absent; at most 256 MiB."""
        try:
            with (self.root / name).open("rb") as stream:
                return stream.read(MAX_FILE)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnavailableError(
                "RIGHTS", "cannot read", where=str(self.root / name), actual=str(error)
            ) from error

    def write(self, name: str, data: bytes) -> Path:
        """Write a file whole or not at all: a temporary beside it, flushed to disk, renamed."""
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".tmp-")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, target)
        except OSError as error:
            raise UnavailableError(
                "DISK_FULL", "cannot write", where=str(target), actual=str(error)
            ) from error
        finally:
            Path(temporary).unlink(missing_ok=True)
        return target

    def receipts(self, lock: Digest) -> Iterator[tuple[str, bytes]]:
        """Stage and bytes of the receipts that belong to a lock, in the order of their names."""
        folder = self.root / f"receipts/{lock}"
        for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
            yield path.stem, path.read_bytes()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the folder for writing. Raises UnavailableError WORK_BUSY that names the holder."""
        import fcntl  # not on every platform that verifies

        try:
            self.root.mkdir(parents=True, exist_ok=True)
            stream = (self.root / "writer").open("a+")
        except OSError as error:
            raise UnavailableError(
                "RIGHTS", "cannot use this folder", where=str(self.root), actual=str(error)
            ) from error
        with stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                stream.seek(0)
                holder = stream.read(64).strip() or "unknown"
                raise UnavailableError(
                    "WORK_BUSY", "another tic-manifest writes here", where=str(self.root),
                    actual=f"process {holder}", remedy="wait for it, or use another --work",
                ) from error  # fmt: skip
            stream.truncate(0)
            stream.write(str(os.getpid()))
            stream.flush()
            yield
