"""Apply small exact edits and add files: how a demo pull request is written without copying upstream files."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


class EditError(Exception):
    """An edit that does not apply exactly once, or that leaves its tree."""


@dataclass(frozen=True)
class Edit:
    """Replace `old` by `new` in the file at `path` (relative to the tree); `old` must occur exactly once."""

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
            raise EditError(f"{file}: an edit has the keys path, old and new, not {sorted(table)}")
    return [Edit(**table) for table in tables]


def inside(tree: Path, path: str) -> Path:
    """Resolve `path` under `tree`; raises EditError where it is absolute, climbs out or meets a link."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise EditError(f"{path!r} leaves the tree")
    target = tree.joinpath(*pure.parts)
    if any(part.is_symlink() for part in (target, *target.parents) if part.is_relative_to(tree)):
        raise EditError(f"{path!r} goes through a link")
    return target


def apply_edit(tree: Path, edit: Edit) -> None:
    """Apply one edit in place; raises EditError unless `old` is non-empty and occurs exactly once."""
    file = inside(tree, edit.path)
    if not file.is_file():
        raise EditError(f"{edit.path}: no such file in this tree")
    text = file.read_bytes()
    old = edit.old.encode()
    count = text.count(old) if old else 0
    if count != 1:
        raise EditError(f"{edit.path}: the text to replace occurs {count} times, not once: {edit.old!r}")
    file.write_bytes(text.replace(old, edit.new.encode()))


def add_files(tree: Path, source: Path) -> list[str]:
    """Copy every file below `source` into `tree`; raises EditError where one is there already."""
    added = []
    for file in sorted(p for p in source.rglob("*") if p.is_file()):
        relative = file.relative_to(source).as_posix()
        target = inside(tree, relative)
        if target.exists():
            raise EditError(f"{relative}: is in this tree already; write an edit instead")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
        added.append(relative)
    return added


def apply(tree: Path, change: Path) -> None:
    """Apply the folder of a change: `edits.toml` (optional), then `files/` (optional)."""
    if (change / "edits.toml").is_file():
        for edit in load_edits(change / "edits.toml"):
            apply_edit(tree, edit)
    if (change / "files").is_dir():
        add_files(tree, change / "files")
