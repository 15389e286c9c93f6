"""Tampering with a recording of the gate (`--record`), for scenarios that replay it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from topology import delete


def change(record: Path, path: str, edit: Callable[[Any], Any]) -> None:
    """Change every recorded answer of a path. Raises KeyError where nothing was recorded."""
    answers = json.loads((record / "forge.json").read_bytes())
    for row in answers[path]:
        row["body"] = json.dumps(edit(json.loads(row["body"])))
    (record / "forge.json").write_text(json.dumps(answers))


def drop(record: Path, prefix: str) -> None:
    """Remove the answers of every path that begins so. Raises KeyError where there is none."""
    answers = json.loads((record / "forge.json").read_bytes())
    kept = {path: rows for path, rows in answers.items() if not path.startswith(prefix)}
    if len(kept) == len(answers):
        raise KeyError(prefix)
    (record / "forge.json").write_text(json.dumps(kept))


def lose(record: Path, name: str, oid: str) -> None:
    """Delete an object, and strike it off the list of what was recorded."""
    delete(record / "git" / f"{name}.git", oid)
    listed = record / "git" / f"{name}.objects"
    listed.write_text(listed.read_text().replace(f"{oid}\n", ""))
