"""Talk about long work on stderr: a live line on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

PLAIN_EVERY_SECONDS = 15.0
LIVE_EVERY_SECONDS = 0.2


class _Step:
    def __init__(self, name: str, total: int | None, stream: TextIO, *, live: bool, quiet: bool) -> None:
        self._name, self._total, self._stream = name, total, stream
        self._live, self._quiet = live and not quiet, quiet
        self._done, self._start = 0, time.monotonic()
        self._said = self._start

    def advance(self, amount: int) -> None:
        """`amount` more bytes or items are done."""
        self._done += amount
        now = time.monotonic()
        if self._quiet:
            return
        if now - self._said >= (LIVE_EVERY_SECONDS if self._live else PLAIN_EVERY_SECONDS):
            self._said = now
            self._stream.write(f"\r\x1b[K{self.line(now)}" if self._live else f"{self.line(now)}\n")
            self._stream.flush()

    def line(self, now: float) -> str:
        """Name, amount, rate and time left, as far as they are known."""
        rate = self._done / max(now - self._start, 1e-6)
        of = f" of {human(self._total)}" if self._total else ""
        left = f", {(self._total - self._done) / rate:.0f} s left" if self._total and rate else ""
        return f"{self._name}: {human(self._done)}{of}, {human(int(rate))}/s{left}"

    def close(self) -> None:
        """End the live line."""
        if self._live:
            self._stream.write("\r\x1b[K")


class StderrProgress:
    """Progress for a person; `mode` is auto, plain or none."""

    def __init__(self, mode: str = "auto", stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._quiet = mode == "none"
        self._live = mode == "auto" and self._stream.isatty()

    def say(self, text: str) -> None:
        """One plain line."""
        if not self._quiet:
            self._stream.write(text + "\n")
            self._stream.flush()

    @contextmanager
    def step(self, name: str, total: int | None = None) -> Iterator[_Step]:
        """A step with an optional total in bytes."""
        step = _Step(name, total, self._stream, live=self._live, quiet=self._quiet)
        try:
            yield step
        finally:
            step.close()


def human(amount: int) -> str:
    """Bytes in binary units, one decimal."""
    size = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return ""
