"""Progress that says nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Quiet:
    """A `Progress` and its `Step` in one."""

    def say(self, text: str) -> None: ...

    @contextmanager
    def step(self, name: str, total: int | None = None) -> Iterator[Quiet]:
        yield self

    def advance(self, amount: int) -> None: ...
