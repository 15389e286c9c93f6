"""Which blobs a question needs, so that a partial mirror fetches just those before the question is asked.

A server that knows `--filter=blob:none` sends commits and trees alone. Pure reading of git's raw differences:
nothing here runs a process. Sources: git diff-tree(1), RAW OUTPUT FORMAT; rules/pr-gate.md F33, F34.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

RAW = ["--raw", "-r", "-z", "--no-abbrev", "--no-renames"]
"""Options of diff-tree for `changes`."""

_LINKS = {"000000", "160000"}


@dataclass(frozen=True)
class Change:
    """A path that differs: git's letter (A, D, M, T), and the ids of its blobs before and after."""

    letter: str
    path: bytes
    blobs: tuple[str, ...]


def changes(raw: bytes) -> list[Change]:
    """What `diff-tree --raw -z` says, ids of commits between the rows left out."""
    found, words = [], iter(raw.split(b"\0"))
    for word in words:
        if word.startswith(b":"):
            old, new, before, after, letter = word[1:].decode("ascii").split(" ")
            pairs = ((old, before), (new, after))
            blobs = tuple(oid for mode, oid in pairs if mode not in _LINKS)
            found.append(Change(letter[:1], next(words, b""), blobs))
    return found


def blobs_of(rows: Iterable[Change]) -> list[str]:
    """Ids of all blobs of changes, each once."""
    return list(dict.fromkeys(oid for row in rows for oid in row.blobs))


def blobs_of_merge(ours: Sequence[Change], theirs: Sequence[Change]) -> list[str]:
    """Blobs that a merge with one base reads: paths that both sides change, and what may be a rename.

    A rename is a deleted path and an added one of the same side. Where one side changes nothing, none.
    """
    if not ours or not theirs:
        return []
    both = {row.path for row in ours} & {row.path for row in theirs}
    read = [row for row in (*ours, *theirs) if row.path in both]
    return blobs_of([*read, *_renames(ours), *_renames(theirs)])


def _renames(side: Sequence[Change]) -> list[Change]:
    moved = [row for row in side if row.letter in "AD"]
    return moved if {row.letter for row in moved} == {"A", "D"} else []


def is_partial(repo: Path) -> bool:
    """Whether the repository, or one that it borrows from, has packs of a server that left objects out."""
    return any(next((one / "pack").glob("*.promisor"), None) for one in (repo / "objects", *_borrowed(repo)))


def _borrowed(repo: Path) -> list[Path]:
    try:
        text = (repo / "objects" / "info" / "alternates").read_text()
    except OSError:
        return []
    return [Path(line) for line in text.splitlines() if line]
