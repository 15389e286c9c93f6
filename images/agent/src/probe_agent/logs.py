"""The two output streams of a worker: kept whole on disk up to a limit, with the last lines in memory."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import Deque

from .base import Json, text

MAX_LOG = 64 << 20
MAX_LINES = 200
MAX_LINE = 2000


class Tail:
    """Reads one pipe to its end in a thread; a line without an end never grows beyond its limit."""

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path
        self._lines: Deque[bytes] = deque(maxlen=MAX_LINES)
        self._part = b""
        self.bytes = 0
        self.lines = 0
        self._thread = threading.Thread(target=self._read, name="log " + os.path.basename(path), daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with open(self._path, "wb", buffering=0) as log:
            while True:
                try:
                    data = os.read(self._fd, 1 << 16)
                except OSError:
                    break
                if not data:
                    break
                if self.bytes < MAX_LOG:
                    log.write(data[: MAX_LOG - self.bytes])
                self.bytes += len(data)
                self._feed(data)
        os.close(self._fd)

    def _feed(self, data: bytes) -> None:
        pieces = (self._part + data).split(b"\n")
        self._part = pieces.pop()[-MAX_LINE:]
        self.lines += len(pieces)
        self._lines.extend(piece[:MAX_LINE] for piece in pieces)

    def finish(self, seconds: float) -> Json:
        """Wait for the end of the stream, at most so long, and report."""
        self._thread.join(seconds)
        lines = [*self._lines, self._part] if self._part else list(self._lines)
        return {
            "tail": [text(line, MAX_LINE) for line in lines[-MAX_LINES:]],
            "lines": self.lines + bool(self._part),
            "bytes": self.bytes,
            "ended": not self._thread.is_alive(),
            "log": os.path.basename(self._path),
            "log_truncated": self.bytes > MAX_LOG,
        }
