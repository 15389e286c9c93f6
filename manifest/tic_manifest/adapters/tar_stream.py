"""Read a tar archive as it streams by, one object for each header and none for content.

Reads what Go's archive/tar reads, which unpacks layers in every container runtime: ustar, GNU and PAX with
their long names and sparse files, sizes in octal or base 256. Where readers are known to differ the member
says so in `odd`. A broken header ends the reading with an error: half an archive is never taken for a whole
one. Source: POSIX.1-2001 pax; tar(5) of libarchive.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tic_manifest.adapters.tar_extended import (
    MAX_HEADER,
    MAX_SIZE,
    Extended,
    Holes,
    TarFormatError,
    old_sparse,
    read_number,
)

BLOCK = 512
REGULAR, FOLDER, SYMLINK, HARD_LINK, SPARSE = b"0", b"5", b"2", b"1", b"S"
_HEADER_ONLY = frozenset((b"1", b"2", b"3", b"4", b"5", b"6"))
_REGULAR = frozenset((b"0", b"\0", b"7", SPARSE))
_EXTENDED = frozenset((b"x", b"X", b"g", b"L", b"K"))
_PLAIN_NUMBERS = b"01234567 \0"
_EMPTY = bytes(BLOCK)


class Member(NamedTuple):
    """One entry. `kind` is the type flag, "0" for every regular file; `size` what the unpacked file has."""

    name: str
    kind: bytes
    size: int
    mode: int
    target: str
    odd: str = ""
    """What tools read differently in this entry."""


class TarStream:
    """Members in order; the content of a regular file is asked for before the next member or skipped."""

    def __init__(self, more: Callable[[], bytes]) -> None:
        """`more` gives the next bytes of the archive, none at its end."""
        self._more = more
        self._piece = b""
        self._at = 0
        self._left = 0
        """Bytes of the current member's content that were not taken yet."""
        self._padding = 0
        self._holes: Holes | None = None

    def members(self) -> Iterator[Member]:
        """Every entry. Raises TarFormatError."""
        extended = Extended()
        while (header := self._header()) is not None:
            kind = header[156:157]
            plain = header.isascii() and not header[100:156].translate(None, _PLAIN_NUMBERS)
            _check_sum(header, plain)
            size = _octal(header[124:136]) if plain else read_number(header[124:136])
            if kind in _EXTENDED:
                extended.add(kind, self._small(size))
            elif extended.pending or kind == SPARSE or not plain:
                yield self._unusual(header, kind, size, extended)
                extended = Extended()
            else:
                yield self._usual(header, kind, size)
        if extended.pending:
            raise TarFormatError("an extended header without an entry")

    def content(self) -> Iterator[bytes | memoryview]:
        """The content of the current member as the unpacked file has it, in pieces."""
        return self._packed() if self._holes is None else self._holes.fill(self._packed())

    def whole(self) -> memoryview | None:
        """All of the content, where it is in memory already; taken."""
        at = self._at
        if self._holes is not None or at + self._left > len(self._piece):
            return None
        self._at = end = at + self._left
        self._left = 0
        return memoryview(self._piece)[at:end]

    def _usual(self, header: bytes, kind: bytes, size: int) -> Member:
        name = header[:100].partition(b"\0")[0].decode("ascii")
        if header[345] and header[257:263] == b"ustar\0":
            name = header[345:500].partition(b"\0")[0].decode("ascii") + "/" + name
        target = header[157:257].partition(b"\0")[0].decode("ascii") if header[157] else ""
        return self._member(name, kind, size, header, target)

    def _unusual(self, header: bytes, kind: bytes, size: int, extended: Extended) -> Member:
        name = _text(header[:100])
        if header[345] and header[257:263] == b"ustar\0":
            name = f"{_text(header[345:500])}/{name}"
        target = extended.target(_text(header[157:257]))
        member = self._member(extended.name(name), kind, extended.size(size), header, target)
        if member.kind == REGULAR:
            before = self._left
            found = old_sparse(header, self._take) if kind == SPARSE else extended.sparse_map(self._line)
            self._drop((self._left - before) % BLOCK)
            if found is not None:
                self._holes = Holes(*found, self._left)
                member = member._replace(size=self._holes.size)
        return member._replace(odd=extended.odd) if extended.odd else member

    def _member(self, name: str, kind: bytes, size: int, header: bytes, target: str) -> Member:
        if kind == b"\0" and name.endswith("/"):  # a folder of before 1988
            kind = FOLDER
        odd = ""
        if kind in _REGULAR:
            kind = REGULAR
        elif kind in _HEADER_ONLY and size:
            odd, size = "an entry that has no content says a size", 0
        if size > MAX_SIZE:
            raise TarFormatError(f"an entry of {size} bytes")
        self._left, self._padding, self._holes = size, -size % BLOCK, None
        return Member(name, kind, size, _mode(header[100:108]), target, odd)

    def _header(self) -> bytes | None:
        """The next header after what is left of the current member; None where the archive ends."""
        skip = self._left + self._padding
        self._left = self._padding = 0
        at = self._at + skip
        if at + BLOCK > len(self._piece):
            self._skip(skip)
            if not self._fill():
                return None
            header = self._take(BLOCK)
        else:
            header = self._piece[at : at + BLOCK]
            self._at = at + BLOCK
        return None if header == _EMPTY else header

    def _small(self, size: int) -> bytes:
        if size > MAX_HEADER:
            raise TarFormatError(f"an extended header of {size} bytes")
        data = self._take(size)
        self._skip(-size % BLOCK)
        return data

    def _fill(self) -> bool:
        """Whether there is another byte."""
        if self._at >= len(self._piece):
            self._piece, self._at = self._more(), 0
        return bool(self._piece)

    def _take(self, count: int) -> bytes:
        parts = []
        while count:
            if not self._fill():
                raise TarFormatError("the archive ends early")
            part = self._piece[self._at : self._at + count]
            self._at += len(part)
            count -= len(part)
            parts.append(part)
        return b"".join(parts)

    def _skip(self, count: int) -> None:
        while count:
            if not self._fill():
                raise TarFormatError("the archive ends early")
            step = min(count, len(self._piece) - self._at)
            self._at += step
            count -= step

    def _drop(self, count: int) -> None:
        """Pass over a part of the content."""
        if count > self._left:
            raise TarFormatError("a sparse map that cannot be read")
        self._skip(count)
        self._left -= count

    def _packed(self) -> Iterator[memoryview]:
        while self._left:
            if not self._fill():
                raise TarFormatError("the archive ends early")
            at = self._at
            step = min(self._left, len(self._piece) - at)
            self._at += step
            self._left -= step
            yield memoryview(self._piece)[at : at + step]

    def _line(self) -> bytes:
        """One line of a sparse map, which lies in blocks before the content and counts as part of it."""
        line = bytearray()
        while not line.endswith(b"\n"):
            if not self._left or len(line) > 32:
                raise TarFormatError("a sparse map that cannot be read")
            line += self._take(1)
            self._left -= 1
        return bytes(line[:-1])


def _check_sum(header: bytes, plain: bool) -> None:
    """The sum of all bytes with the field itself as blanks; old tools sum signed bytes.

    Adler-32 holds the plain sum plus one in its lower half as long as that is below 65521; of ASCII it is.
    """
    said = _octal(header[148:156]) if plain else read_number(header[148:156])
    if plain:
        total = (zlib.adler32(header[156:], zlib.adler32(header[:148])) & 0xFFFF) - 1
    else:
        bare = header[:148] + header[156:]
        total = sum(bare)
        if total + 256 != said:
            total -= 256 * sum(byte > 127 for byte in bare)
    if total + 256 != said:
        raise TarFormatError("a header whose checksum is wrong")


def _octal(field: bytes) -> int:
    """A field of which is known that it holds octal digits, blanks and NULs alone."""
    try:
        return int(field.strip(b" \0") or b"0", 8)
    except ValueError:
        raise TarFormatError("a field that is no octal number") from None


def _mode(field: bytes) -> int:
    """The permission bits; none where the field is no number, as in some archives of old tools."""
    try:
        return (read_number(field) if field[0] & 0x80 else int(field.strip(b" \0") or b"0", 8)) & 0o7777
    except (TarFormatError, ValueError):
        return 0


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")
