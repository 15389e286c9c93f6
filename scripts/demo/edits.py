"""Apply small exact edits and add files: how a demo pull request is written without copying upstream files.

A tree is held in memory as {path: Entry}, so no edit can reach outside it, follow a link or depend on umask.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

PLAIN, EXECUTABLE, LINK = "100644", "100755", "120000"


@dataclass(frozen=True)
class Entry:
    """One file of a tree: git's mode (100644, 100755 or 120000) and its bytes."""

    mode: str
    data: bytes


Tree = dict[str, Entry]


class EditError(Exception):
    """An edit that does not apply exactly once, or a file that cannot be added."""


@dataclass(frozen=True)
class Edit:
    """Replace `old` by `new` in the file at `path`; `old` must occur there exactly once."""

    path: str
    old: str
    new: str


def load_edits(file: Path) -> list[Edit]:
    """Read `[[edit]]` tables (path, old, new) from TOML.

    A literal block starts on the line after its quotes: TOML drops that first newline, so `old` and `new`
    hold whole lines. Raises EditError on a table of another shape.
    """
    tables = tomllib.loads(file.read_text(encoding="utf-8")).get("edit", [])
    for table in tables:
        if set(table) != {"path", "old", "new"} or not all(isinstance(v, str) for v in table.values()):
            raise EditError(f"{file.name}: an edit has the keys path, old and new, not {sorted(table)}")
    return [Edit(**table) for table in tables]


def apply_edit(tree: Tree, edit: Edit) -> None:
    """Apply one edit in place; raises EditError unless `old` is non-empty and occurs exactly once."""
    entry = tree.get(edit.path)
    if entry is None or entry.mode == LINK:
        raise EditError(f"{edit.path}: no such file in this tree")
    old = edit.old.encode()
    count = entry.data.count(old) if old else 0
    if count != 1:
        raise EditError(f"{edit.path}: the text to replace occurs {count} times, not once: {edit.old!r}")
    tree[edit.path] = replace(entry, data=entry.data.replace(old, edit.new.encode()))


def read_files(folder: Path) -> Tree:
    """Every regular file below a folder of ours. Raises EditError on a link: we write none."""
    tree: Tree = {}
    for file in sorted(folder.rglob("*")):
        if file.is_symlink():
            raise EditError(f"{file.name}: a link among the files of a change")
        if file.is_file() and "__pycache__" not in file.parts:
            mode = EXECUTABLE if os.access(file, os.X_OK) and file.stat().st_mode & 0o100 else PLAIN
            tree[file.relative_to(folder).as_posix()] = Entry(mode, file.read_bytes())
    return tree


def add_files(tree: Tree, files: Tree) -> None:
    """Add files; raises EditError where one is there already: that would be an edit."""
    for path, entry in files.items():
        if path in tree:
            raise EditError(f"{path}: is in this tree already; write an edit instead")
        tree[path] = entry


def fill(files: Tree, values: dict[str, str]) -> Tree:
    """Replace each `{{NAME}}` of `values` in the files. Raises EditError where a NAME is not known."""
    filled: Tree = {}
    for path, entry in files.items():
        data = entry.data
        for name, value in values.items():
            data = data.replace(b"{{" + name.encode() + b"}}", value.encode())
        if b"{{head:" in data:
            raise EditError(f"{path}: names a head that is not known yet")
        filled[path] = replace(entry, data=data)
    return filled


def apply(tree: Tree, change: Path, values: dict[str, str]) -> Tree:
    """The tree after a change: `edits.toml` (optional), then `files/` (optional). The input stays."""
    after = dict(tree)
    if (change / "edits.toml").is_file():
        for edit in load_edits(change / "edits.toml"):
            apply_edit(after, edit)
    if (change / "files").is_dir():
        add_files(after, fill(read_files(change / "files"), values))
    if after == tree:
        raise EditError(f"{change.name}: the change changes nothing")
    return after
