"""A copy of the package with a fault in it."""

from __future__ import annotations

import shutil
from pathlib import Path

from faults.catalogue import Edit, Fault


class DoesNotApplyError(Exception):
    """The text that an edit replaces does not stand exactly once in the sources."""


def edited(source: str, edit: Edit) -> str:
    """The source with the edit made. Raises DoesNotApplyError."""
    count = source.count(edit.old)
    if count != 1:
        raise DoesNotApplyError(
            f"{edit.path} has {count} times, not once: {edit.old.strip().splitlines()[0]}"
        )
    return source.replace(edit.old, edit.new)


def planted(package: Path, fault: Fault | None, target: Path) -> Path:
    """Copy the package to `target/tic_manifest` and plant the fault; what to put on PYTHONPATH."""
    copy = target / package.name
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for edit in fault.edits if fault else ():
        path = copy / edit.path
        source = edited(path.read_text(encoding="utf-8"), edit)
        compile(source, edit.path, "exec")
        path.write_text(source, encoding="utf-8")
    return target
