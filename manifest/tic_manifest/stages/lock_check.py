"""`lock --check`: whether a lock still follows from the recipe and the project's files. Opens no socket."""

from __future__ import annotations

from tic_manifest.formats.lock import LoadedLock, recipe_digest
from tic_manifest.model.recipe import Recipe
from tic_manifest.model.verdict import Finding, Report, Status, check_of, finding, report
from tic_manifest.stages.materials import materials_of


def check_lock(loaded: LoadedLock, recipe: Recipe, materials: dict[str, bytes]) -> Report:
    """One finding LOCK_STALE for each thing that changed since the lock was made."""
    found = [*_recipe(loaded, recipe), *_materials(loaded, materials)]
    row = check_of("lock.current", found, subject=loaded.digest)
    return report("lock", (row,), found, subjects=(f"lock {loaded.digest}",))


def _recipe(loaded: LoadedLock, recipe: Recipe) -> list[Finding]:
    now = recipe_digest(recipe)
    return [] if now == loaded.lock.recipe_digest else [_stale("recipe", loaded.lock.recipe_digest, now)]


def _materials(loaded: LoadedLock, materials: dict[str, bytes]) -> list[Finding]:
    then = {one.name: one.sha256 for one in loaded.lock.materials}
    now = {one.name: one.sha256 for one in materials_of(materials)}
    names = sorted(set(then) | set(now))
    return [_stale(name, then.get(name), now.get(name)) for name in names if then.get(name) != now.get(name)]


def _stale(subject: str, expected: str | None, actual: str | None) -> Finding:
    return finding("LOCK_STALE", Status.FAIL, subject, expected=expected, actual=actual)
