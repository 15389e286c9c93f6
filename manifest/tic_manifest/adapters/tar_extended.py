"""Extended headers of tar archives (PAX, GNU long names) and the holes of sparse files, each in small bounds.

Source: POSIX.1-2001 pax, "pax extended header"; GNU tar manual, "Storing Sparse Files".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

MAX_HEADER = 1 << 20
MAX_SIZE = 1 << 50
MAX_HOLES = 100_000
MAX_SPARSE = 64 << 30
"""Bytes of a sparse file when unpacked: its holes cost time to hash and nothing to send."""
_ZEROS = bytes(1 << 18)
_SHAPING = ("path", "linkpath", "size", "GNU.sparse.")


Rows = list[tuple[int, int]]
"""(offset, length) of the pieces of a sparse file."""


class TarFormatError(Exception):
    """The bytes are no tar archive that can be read to its end."""


class Holes:
    """Where the pieces of a sparse file lie; everything else is zeros."""

    def __init__(self, rows: Rows, size: int, packed: int) -> None:
        """`rows` are (offset, length); `packed` is how many bytes the archive holds of it."""
        end = 0
        for offset, length in rows:
            if offset < end or length < 0:
                raise TarFormatError("a sparse map that runs backwards")
            end = offset + length
        if end > size or size > MAX_SPARSE or sum(length for _, length in rows) != packed:
            raise TarFormatError("a sparse map that does not fit its file")
        self._rows, self.size = rows, size

    def fill(self, pieces: Iterator[memoryview]) -> Iterator[bytes | memoryview]:
        """The content with its holes, from the bytes that the archive holds."""
        at, rest = 0, memoryview(b"")
        for offset, length in [*self._rows, (self.size, 0)]:
            yield from _zeros(offset - at)
            at = offset + length
            left = length
            while left:
                rest = rest or next(pieces)
                yield rest[:left]
                step = min(left, len(rest))
                rest, left = rest[step:], left - step


class Extended:
    """What stands in front of one entry and changes how it is read."""

    def __init__(self) -> None:
        self.pending = False
        self.odd = ""
        self._pax: dict[str, bytes] = {}
        self._rows: list[tuple[str, bytes]] = []
        self._long: dict[bytes, bytes] = {}

    def add(self, kind: bytes, data: bytes) -> None:
        """One extended header. Raises TarFormatError where one kind stands twice in front of an entry."""
        if kind == b"g":  # runtimes pass over it; other tools apply it to everything that follows
            if any(key.startswith(_SHAPING) for key, _ in _records(data)):
                raise TarFormatError("a global header that sets paths or sizes, which runtimes ignore")
            return
        self.pending = True
        if kind in (b"L", b"K"):
            if kind in self._long:
                raise TarFormatError("two long names for one entry")
            self._long[kind] = data.partition(b"\0")[0]
            return
        if self._rows:
            raise TarFormatError("two extended headers for one entry")
        self._rows = list(_records(data))
        self._pax = {key: value for key, value in self._rows if value}
        if any(b"\0" in self._pax.get(key, b"") for key in ("path", "linkpath", "GNU.sparse.name")):
            raise TarFormatError("a path with a NUL")
        keys = [key for key, _ in self._rows if not key.startswith("GNU.sparse.")]
        if len(set(keys)) < len(keys):
            self.odd = "an extended header says one thing twice"

    def name(self, plain: str) -> str:
        """The path: a long name wins over PAX, as in Go."""
        return self._text(b"L", "GNU.sparse.name") or self._text(b"L", "path") or plain

    def target(self, plain: str) -> str:
        """Where a link points."""
        return self._text(b"K", "linkpath") or plain

    def size(self, plain: int) -> int:
        """How many bytes of content the archive holds."""
        return _decimal(self._pax["size"]) if "size" in self._pax else plain

    def sparse_map(self, line: Callable[[], bytes]) -> tuple[Rows, int] | None:
        """Pieces and size of a sparse file in one of the three forms of PAX; None for any other file.

        `line` gives the next line of a map that lies in front of the content.
        """
        said = {key: value for key, value in self._pax.items() if key.startswith("GNU.sparse.")}
        if (said.get("GNU.sparse.major"), said.get("GNU.sparse.minor")) == (b"1", b"0"):
            numbers = [_decimal(line()) for _ in range(2 * _few(_decimal(line())))]
            return _pairs(numbers), _decimal(said.get("GNU.sparse.realsize", b""))
        if "GNU.sparse.map" in said:
            numbers = [_decimal(one) for one in said["GNU.sparse.map"].split(b",")]
        elif "GNU.sparse.size" in said:
            kinds = ("GNU.sparse.offset", "GNU.sparse.numbytes")
            numbers = [_decimal(value) for key, value in self._rows if key in kinds]
        else:
            return None
        return _pairs(numbers), _decimal(said.get("GNU.sparse.size", b""))

    def _text(self, long: bytes, key: str) -> str:
        return (self._long.get(long) or self._pax.get(key, b"")).decode("utf-8", "surrogateescape")


def old_sparse(header: bytes, take: Callable[[int], bytes]) -> tuple[Rows, int]:
    """Pieces and size of a sparse file of GNU tar's old form; `take` gives the blocks after the header."""
    rows, more = _old_rows(header[386:482]), header[482]
    while more:
        block = take(512)
        rows += _old_rows(block[:504])
        more = block[504]
        _few(len(rows))
    return rows, read_number(header[483:495])


def _old_rows(table: bytes) -> Rows:
    fields = [table[at : at + 12] for at in range(0, len(table), 12)]
    return _pairs([read_number(field) for field in fields if field[0]])


def read_number(field: bytes) -> int:
    """Octal digits between blanks and NULs, or base 256. Raises TarFormatError, as for negative numbers."""
    if field[0] & 0x80:
        value = int.from_bytes(bytes((field[0] & 0x7F,)) + field[1:])
        if field[0] & 0x40 or value > MAX_SIZE:
            raise TarFormatError("a number that is negative or too large")
        return value
    digits = field.strip(b" \0")
    if digits.translate(None, b"01234567"):
        raise TarFormatError("a field that is no octal number")
    return int(digits or b"0", 8)


def _pairs(numbers: list[int]) -> Rows:
    if len(numbers) % 2:
        raise TarFormatError("a sparse map with half a row")
    _few(len(numbers) // 2)
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _few(count: int) -> int:
    if count > MAX_HOLES:
        raise TarFormatError(f"a sparse map of {count} rows")
    return count


def _zeros(count: int) -> Iterator[bytes]:
    while count > 0:
        yield _ZEROS[:count]
        count -= len(_ZEROS)


def _records(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Records `LENGTH KEY=VALUE` and a newline, the length counting all of it."""
    at = 0
    while at < len(data):
        blank = data.find(b" ", at, at + 12)
        length = _decimal(data[at:blank]) if blank > 0 else 0
        record = data[blank + 1 : at + length]
        key, sign, value = record[:-1].partition(b"=")
        if at + length > len(data) or not record.endswith(b"\n") or not (key and sign):
            raise TarFormatError("an extended header that cannot be read")
        yield key.decode("utf-8", "surrogateescape"), value
        at += length


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 19:
        raise TarFormatError("an extended header with a number that is none")
    return int(text)
