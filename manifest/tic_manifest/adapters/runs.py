"""Output folders of worker runs. Everything below them is a worker's own doing: no link is followed."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tic_manifest.errors import UnavailableError
from tic_manifest.model.receipt import Artifact

MAX_FILES = 10_000
MAX_READ = 256 << 20
CHUNK = 1 << 20


class RunFolders:
    """Runs of one delivery below `root`, one folder per worker."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, name: str) -> Path:
        """The output folder of a run."""
        return self._root / name

    def fresh(self, name: str) -> Path:
        """An empty output folder for a run; what an earlier try left is gone."""
        target = self.path(name)
        try:
            if target.is_symlink() or target.exists():
                shutil.rmtree(target)
            target.mkdir(parents=True)
        except OSError as error:
            raise UnavailableError(
                "RIGHTS", "cannot empty an output folder", where=str(target), actual=str(error)
            ) from error
        return target

    def outputs(self, name: str) -> tuple[Artifact, ...]:
        """Every regular file, sorted by name, hashed while it is read. Raises UnavailableError at 10,000."""
        root = self.path(name)
        files = sorted(_regular(root)) if root.is_dir() else []
        if len(files) > MAX_FILES:
            raise UnavailableError(
                "WORKER_EXIT", "a worker left too many files", where=name, expected=f"at most {MAX_FILES}",
                actual=str(len(files)),
            )  # fmt: skip
        return tuple(_artifact(root, relative) for relative in files)

    def read(self, name: str, artifact: Artifact) -> bytes | None:
        """The bytes of an output that still has its digest; None when it is gone, changed or too large."""
        try:
            with _open(self.path(name) / artifact.name) as stream:
                data = stream.read(min(artifact.size, MAX_READ) + 1)
        except OSError:
            return None
        return data if "sha256:" + hashlib.sha256(data).hexdigest() == artifact.digest else None


def _regular(root: Path) -> Iterator[str]:
    for folder, _, names in os.walk(root, followlinks=False, onerror=_unreadable):
        for name in names:
            path = Path(folder) / name
            if stat.S_ISREG(path.lstat().st_mode):
                yield _utf8(path.relative_to(root).as_posix())


def _utf8(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise UnavailableError(
            "WORKER_EXIT", "a worker left a file whose name is not UTF-8", actual=ascii(name)
        ) from error
    return name


def _unreadable(error: OSError) -> None:
    raise UnavailableError(
        "RIGHTS", "cannot read what a worker left", where=str(error.filename), actual=str(error)
    )


def _artifact(root: Path, relative: str) -> Artifact:
    digest, size = hashlib.sha256(), 0
    try:
        with _open(root / relative) as stream:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        _unreadable(error)
    return Artifact(name=relative, digest="sha256:" + digest.hexdigest(), size=size)


def _open(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")
