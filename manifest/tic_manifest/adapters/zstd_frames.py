"""Follow the frames of a zstd stream as it passes, to know whether it ends at the end of a frame.

The library reports a cut stream as its end; tools that unpack layers report an error. RFC 8878, sections
3.1.1 and 3.1.2.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Protocol

_MAGIC = 0xFD2FB528
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)


class _Readable(Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


class Frames:
    """A file that passes bytes on and follows the frame structure in them."""

    def __init__(self, stream: _Readable, window: int, before_large: Callable[[], object]) -> None:
        """`before_large` is called once, before a frame is passed on whose window is over `window` bytes."""
        self._stream = stream
        self._window, self._before_large = window, before_large
        self.large = False
        self._need = self._walk()
        self._wanted = next(self._need)
        self._have = b""
        self._skip = 0
        self._inside = False

    @property
    def complete(self) -> bool:
        """Whether everything that was read ends where a frame ends."""
        return not self._inside and not self._have and not self._skip

    def read(self, size: int = -1) -> bytes:
        """The next bytes of the stream."""
        piece = self._stream.read(size)
        self._follow(piece)
        return piece

    def _follow(self, piece: bytes) -> None:
        at = 0
        while at < len(piece):
            if self._skip:
                step = min(self._skip, len(piece) - at)
                self._skip -= step
                at += step
                continue
            step = min(self._wanted - len(self._have), len(piece) - at)
            self._have += piece[at : at + step]
            at += step
            if len(self._have) == self._wanted:
                header, self._have = self._have, b""
                self._wanted = self._need.send(header)

    def _walk(self) -> Generator[int, bytes, None]:
        """Yields how many bytes of a header are wanted and is sent them; bodies are skipped over."""
        magic = int.from_bytes((yield 4), "little")
        while magic == _MAGIC or magic in _SKIPPABLE:
            self._inside = True
            if magic == _MAGIC:
                yield from self._frame()
            else:
                self._skip = int.from_bytes((yield 4), "little")
            self._inside = False
            magic = int.from_bytes((yield 4), "little")
        self._inside = True  # no frame: the library will say so
        while True:
            yield 1 << 20

    def _frame(self) -> Generator[int, bytes, None]:
        descriptor = (yield 1)[0]
        single = descriptor >> 5 & 1
        header = (1 - single) + (0, 1, 2, 4)[descriptor & 3] + (single, 2, 4, 8)[descriptor >> 6]
        if header:
            self._note_window((yield header), descriptor)
        last = 0
        while not last:
            block = int.from_bytes((yield 3), "little")
            last = block & 1
            self._skip = 1 if block >> 1 & 3 == 1 else block >> 3
        if descriptor >> 2 & 1:
            yield 4

    def _note_window(self, header: bytes, descriptor: int) -> None:
        """Window size as of RFC 8878, 3.1.1.1.2; of a frame of a single segment that of its content."""
        if descriptor >> 5 & 1:
            size = int.from_bytes(header[(0, 1, 2, 4)[descriptor & 3] :], "little")
        else:
            size = (8 + (header[0] & 7)) << 7 + (header[0] >> 3)
        if size > self._window and not self.large:
            self.large = True
            self._before_large()
