"""Reading Debian packages: an ar archive of a control and a data tar (deb(5)), never unpacked by path."""

from __future__ import annotations

import gzip
import lzma
import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import zstandard

from tic_manifest.errors import RefusedError

_MAGIC = b"!<arch>\n"
_HEADER = 60
_MAX_CONTROL = 1 << 20
_FIELD = re.compile(r"^([A-Za-z0-9-]+):[ \t]*(.*)$")


@contextmanager
def member(path: Path, prefix: str) -> Iterator[tarfile.TarFile]:
    """The tar called `control.tar*` or `data.tar*` of a package, as a stream. Raises RefusedError SCHEMA."""
    with path.open("rb") as stream:
        name, size = _find(stream, prefix, path)
        with tarfile.open(fileobj=_plain(name, _Part(stream, size), path), mode="r|") as tar:
            yield tar


def control(path: Path) -> dict[str, str]:
    """The fields of a package's control file; of a field that goes on over lines, the first line."""
    with member(path, "control.tar") as tar:
        for one in tar:
            if one.name.removeprefix("./") == "control" and one.isreg() and one.size <= _MAX_CONTROL:
                text = cast("IO[bytes]", tar.extractfile(one)).read().decode("utf-8")
                return {m[1]: m[2] for m in map(_FIELD.match, text.splitlines()) if m}
    raise _refused(path, "no control file")


class _Part:
    """At most `size` bytes of a stream."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self._left = stream, size

    def read(self, amount: int = -1) -> bytes:
        """The next bytes of the part."""
        amount = self._left if amount < 0 else min(amount, self._left)
        data = self._stream.read(amount)
        self._left -= len(data)
        return data


def _find(stream: IO[bytes], prefix: str, path: Path) -> tuple[str, int]:
    if stream.read(len(_MAGIC)) != _MAGIC:
        raise _refused(path, "not an ar archive")
    while len(header := stream.read(_HEADER)) == _HEADER:
        name = header[:16].decode("ascii", "replace").strip().rstrip("/")
        try:
            size = int(header[48:58])
        except ValueError as error:
            raise _refused(path, "broken ar header") from error
        if name.startswith(prefix):
            return name, size
        stream.seek(size + size % 2, 1)
    raise _refused(path, f"no {prefix}")


def _plain(name: str, part: _Part, path: Path) -> IO[bytes]:
    source = cast("IO[bytes]", part)
    if name.endswith(".zst"):
        return cast("IO[bytes]", zstandard.ZstdDecompressor().stream_reader(source))
    if name.endswith(".xz"):
        return cast("IO[bytes]", lzma.LZMAFile(source))
    if name.endswith(".gz"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=source))
    if name.endswith(".tar"):
        return source
    raise _refused(path, f"unknown compression of {name}")


def _refused(path: Path, why: str) -> RefusedError:
    return RefusedError("SCHEMA", "not a Debian package", where=path.name, actual=why)
