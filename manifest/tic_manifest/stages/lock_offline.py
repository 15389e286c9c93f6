"""`lock --offline`: a new lock from what an earlier lock resolved, every file of it in the store.

Right for a change of workers, policy, checklist, agent or Dockerfile. What would have to be asked for again
is named instead: an answer that nobody gave is never made up.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tic_manifest.errors import UnavailableError
from tic_manifest.formats.lock import LoadedLock, recipe_data, recipe_digest
from tic_manifest.model.lock import SCHEMA, DebianRoot, Lock, Root
from tic_manifest.model.recipe import Recipe
from tic_manifest.ports import Store
from tic_manifest.stages.materials import keep, materials_of

_RESOLVED = ("platform", "base", "builder", "python")


def relock(recipe: Recipe, materials: dict[str, bytes], earlier: LoadedLock, store: Store, git: Path) -> Lock:
    """The lock of a recipe from an earlier one's answers; `git` is the folder of the mirrors.

    Raises UnavailableError NETWORK with everything that the network would be needed for.
    """
    needed = [*_changed(recipe, earlier), *_missing(earlier.lock, store, git)]
    if needed:
        raise UnavailableError(
            "NETWORK",
            "this lock cannot be made without the network",
            actual="; ".join(needed[:20]),
            remedy="run tic-manifest lock without --offline",
        )
    keep(materials, store)
    known = {pull.name: pull for pull in earlier.lock.pull_requests}
    return earlier.lock.model_copy(
        update={
            "schema_": SCHEMA,
            "recipe_digest": recipe_digest(recipe),
            "recipe": recipe_data(recipe),
            "pull_requests": tuple(known[name] for name in recipe.pull_requests),
            "materials": materials_of(materials),
        }
    )


def _changed(recipe: Recipe, earlier: LoadedLock) -> Iterator[str]:
    for key in _RESOLVED:
        if getattr(recipe, key) != getattr(earlier.recipe, key):
            yield f"{key} changed"
    for name, pull in recipe.pull_requests.items():
        if earlier.recipe.pull_requests.get(name) != pull:
            yield f"pull_requests.{name} changed"


def _missing(lock: Lock, store: Store, git: Path) -> Iterator[str]:
    files = [*lock.python.runtime, *lock.python.build, *lock.python.precompiled]
    for root in (lock.base, lock.builder):
        files += root.packages if isinstance(root, DebianRoot) else ()
        yield from (f"{digest} is not in the store" for digest in _blobs(root) if store.path(digest) is None)
    for one in files:
        if store.path(f"sha256:{one.sha256}") is None:
            yield f"{one.file} is not in the store"
    for pull in lock.pull_requests:
        if not (git / f"{pull.name}.git").is_dir():
            yield f"the mirror of {pull.name} is not in the store"


def _blobs(root: Root) -> tuple[str, ...]:
    return () if isinstance(root, DebianRoot) else (root.platform_digest, root.config_digest, *root.layers)
