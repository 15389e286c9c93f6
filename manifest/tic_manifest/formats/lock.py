"""Lock bytes to values and back."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic import JsonValue

from tic_manifest.errors import RefusedError
from tic_manifest.formats.canonical import canonical_bytes, canonical_digest, digest_of, plain
from tic_manifest.formats.recipe import reference_problem
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.base import Digest
from tic_manifest.model.lock import Lock
from tic_manifest.model.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class LoadedLock:
    """A lock with its digest and the recipe that it carries."""

    raw: bytes
    digest: Digest
    lock: Lock
    recipe: Recipe


_ONLY_LOCK = {"recipe_digest", "recipe", "builder", "materials"}
"""Keys of a lock that no recipe has."""


def read_lock(raw: bytes, where: str) -> LoadedLock:
    """A lock as written. Raises RefusedError SCHEMA, also for bytes that are not the canonical ones."""
    lock = read_model(raw, Lock, where)
    if canonical_bytes(lock) != raw:
        raise RefusedError("SCHEMA", "a lock is RFC 8785 bytes and one newline", where=where)
    recipe = read_model(json.dumps(lock.recipe).encode(), Recipe, f"{where}: recipe")
    if canonical_digest(lock.recipe) != lock.recipe_digest:
        raise RefusedError("SCHEMA", "the lock's recipe is not the one its digest names", where=where)
    _refuse_contradiction(lock, recipe, where)
    return LoadedLock(raw=raw, digest=digest_of(raw), lock=lock, recipe=recipe)


def is_lock(raw: bytes) -> bool:
    """Whether a file means to be a lock, also one that is damaged; a recipe can be JSON too.

    JSON that says it is a recipe is one. Other JSON is a lock where it has a lock's keys, and so is what
    begins as only a machine writes JSON and is none.
    """
    if raw.lstrip()[:1] != b"{":
        return False
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return raw.startswith(b'{"') or b"tic/lock/" in raw
    schema = data.get("schema")
    return (isinstance(schema, str) and schema.startswith("tic/lock/")) or (
        not (isinstance(schema, str) and schema.startswith("tic/recipe/")) and not _ONLY_LOCK.isdisjoint(data)
    )


def _refuse_contradiction(lock: Lock, recipe: Recipe, where: str) -> None:
    """A lock resolves its own recipe: same pull requests, same pins, and references that lead somewhere."""
    pins = {one.name: (one.url, one.base, one.head) for one in lock.pull_requests}
    asked = {name: (one.url, one.base, one.head) for name, one in recipe.pull_requests.items()}
    if pins != asked or len(pins) != len(lock.pull_requests):
        raise RefusedError("SCHEMA", "the lock's pull requests are not its recipe's", where=where)
    problem = reference_problem(recipe)
    if problem:
        raise RefusedError("SCHEMA", problem[1], where=where, actual=problem[2])


def recipe_data(recipe: Recipe) -> dict[str, JsonValue]:
    """The recipe as plain data, without what equals its default: later keys with defaults change nothing."""
    return recipe.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def recipe_digest(recipe: Recipe) -> Digest:
    """The digest of what a recipe says; comments, order and spelled-out defaults do not count."""
    return canonical_digest(recipe_data(recipe))


def checklist_data(recipe: Recipe) -> JsonValue:
    """The acceptance checklist as plain data."""
    return recipe_data(recipe).get("acceptance", [])


def checklist_digest(recipe: Recipe) -> Digest:
    """Digest of the acceptance checklist that a person approves."""
    return canonical_digest(checklist_data(recipe))


def resolved_digest(loaded: LoadedLock) -> Digest:
    """Digest of the resolved configuration: what runs, with which files, in which environment."""
    keys = ("workers", "validation", "env", "platform", "policy")
    lock = plain(loaded.lock)
    resolved = {key: loaded.lock.recipe.get(key) for key in keys}
    return canonical_digest(resolved | {"python": lock["python"], "materials": lock["materials"]})
