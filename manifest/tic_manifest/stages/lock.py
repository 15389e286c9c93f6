"""`lock`: a recipe to every input by digest or commit, each file in the store (contract, section 1: lock)."""

from __future__ import annotations

from dataclasses import dataclass

from tic_manifest.errors import PersonError
from tic_manifest.formats.lock import recipe_data, recipe_digest
from tic_manifest.model.lock import SCHEMA, DebianRoot, Lock, LockedFile, LockedPython, Root
from tic_manifest.model.recipe import DebianBase, Python, Recipe
from tic_manifest.ports import Forge, Progress, Resolver, Roots, Store, Target
from tic_manifest.stages.lock_pulls import GitFor, lock_pull_requests
from tic_manifest.stages.materials import keep, materials_of

ALWAYS_BUILD = ("pip",)
"""Wheels are built and installed with the pip of the lock, never with the base's."""

GLIBC = {"bullseye": 31, "bookworm": 36, "trixie": 40}
GLIBC_OF_IMAGES = 35
"""Images by digest are taken to have glibc 2.35 or newer (Ubuntu 22.04)."""


@dataclass(frozen=True, kw_only=True)
class LockBench:
    """What locking needs from the outside."""

    store: Store
    git_for: GitFor
    forge: Forge
    resolver: Resolver
    roots: Roots
    progress: Progress


def make_lock(recipe: Recipe, materials: dict[str, bytes], bench: LockBench) -> Lock:
    """Resolve everything: git, then the roots, then Python; the recipe's mistakes before any download.

    Raises PersonError, UnavailableError, RefusedError, each naming what could not be resolved.
    """
    python = check_recipe(recipe, bench.resolver)
    keep(materials, bench.store)
    bench.progress.say(f"git: {len(recipe.pull_requests)} pull requests")
    pulls = lock_pull_requests(recipe, bench.git_for, bench.forge)
    base, builder = _roots(recipe, bench)
    wheels = _python(recipe, python, bench)
    return Lock(
        schema_=SCHEMA,
        recipe_digest=recipe_digest(recipe),
        recipe=recipe_data(recipe),
        pull_requests=pulls,
        base=base,
        builder=builder,
        python=wheels,
        materials=materials_of(materials),
    )


def check_recipe(recipe: Recipe, resolver: Resolver) -> Python:
    """What a lock needs and a gate does not. Raises PersonError RECIPE."""
    if recipe.base is None or recipe.python is None:
        missing = "base" if recipe.base is None else "python"
        raise PersonError(
            "RECIPE",
            f"{missing} is missing: an image cannot be built from this recipe",
            expected=f"key {missing}",
            actual="absent",
            remedy="see docs/recipe.md; gate alone needs neither base nor python",
        )
    resolver.check(recipe.python)
    return recipe.python


def target_of(recipe: Recipe) -> Target:
    """What wheels are chosen for: the recipe's platform and the base's glibc."""
    base = recipe.base
    glibc = GLIBC.get(base.debian.suite, GLIBC_OF_IMAGES) if isinstance(base, DebianBase) else GLIBC_OF_IMAGES
    return Target(architecture=architecture(recipe), glibc=glibc)


def architecture(recipe: Recipe) -> str:
    """The architecture of `platform`, as OCI spells it."""
    return recipe.platform.split("/")[1]


def _python(recipe: Recipe, python: Python, bench: LockBench) -> LockedPython:
    target = target_of(recipe)
    names = [one for one in ALWAYS_BUILD if not any(_is(one, text) for text in python.build)]
    return LockedPython(
        version=python.version,
        runtime=bench.resolver.resolve(python.runtime, python, target, bench.store) if python.runtime else (),
        build=bench.resolver.resolve((*python.build, *names), python, target, bench.store),
        precompiled=_precompiled(recipe, python, target, bench),
    )


def _is(name: str, requirement: str) -> bool:
    rest = requirement.lower().removeprefix(name)
    return rest != requirement.lower() and not rest[:1].isalnum() and rest[:1] not in {"-", "_", "."}


def _precompiled(recipe: Recipe, python: Python, target: Target, bench: LockBench) -> tuple[LockedFile, ...]:
    asked = {
        pull.precompiled.wheel: pull.precompiled for pull in recipe.pull_requests.values() if pull.precompiled
    }
    return tuple(
        bench.resolver.wheel(one.wheel, one.sha256, python, target, bench.store)
        for _, one in sorted(asked.items())
    )


def _roots(recipe: Recipe, bench: LockBench) -> tuple[Root, Root]:
    if recipe.base is None:
        raise PersonError("RECIPE", "base is missing", expected="key base", actual="absent")
    base = bench.roots.resolve(recipe.base, architecture(recipe), bench.store)
    if recipe.builder is None or recipe.builder == recipe.base:
        return base, base
    return base, bench.roots.resolve(recipe.builder, architecture(recipe), bench.store)


def sizes(lock: Lock) -> dict[str, int]:
    """Bytes of the files of a lock by kind; images by digest are not counted, their size is not in a lock."""
    roots = [root for root in (lock.base, lock.builder) if isinstance(root, DebianRoot)]
    return {
        "runtime": sum(one.size for one in lock.python.runtime),
        "build": sum(one.size for one in (*lock.python.build, *lock.python.precompiled)),
        "debian": sum(one.size for root in roots for one in root.packages),
    }
