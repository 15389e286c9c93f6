"""`tic-manifest lock`: resolve everything a recipe names."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tic_manifest.cli import wiring
from tic_manifest.cli.output import judging, output_option
from tic_manifest.errors import UnavailableError
from tic_manifest.formats.canonical import canonical_bytes, digest_of
from tic_manifest.formats.lock import LoadedLock, read_lock
from tic_manifest.formats.recipe import read_recipe
from tic_manifest.model.recipe import Recipe
from tic_manifest.stages.session import LOCK_FILE

if TYPE_CHECKING:
    from tic_manifest.adapters.work import WorkFolder
    from tic_manifest.model.verdict import Report
    from tic_manifest.stages.lock import LockBench


@click.command("lock")
@click.argument("recipe", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="where else the lock is written"
)
@click.option("--check", is_flag=True, help="say whether the lock still follows; opens no socket")
@wiring.work_option
@wiring.project_option
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    recipe: Path,
    out: Path | None,
    check: bool,
    work_dir: Path,
    project: Path,
    outputs: tuple[tuple[str, str], ...],
) -> int:
    """Resolve RECIPE: heads, bases, trees, every distribution and package by hash, into the store.

    With --check: exit 1 where recipe, Dockerfile, agent, workers or schema changed since the lock was made.
    """
    work = wiring.work_folder(work_dir)
    if check:
        return judging(ctx, "lock", outputs, lambda: checked(recipe, work, project, out))
    with work.writing():
        loaded = make(ctx, recipe, work, project)
    if out is not None:
        from tic_manifest.cli.output import write_whole

        write_whole(out, loaded.raw)
    sys.stdout.write(f"lock digest: {loaded.digest}\n")
    return 0


def run_lock(ctx: click.Context, recipe: Path, work: WorkFolder, project: Path) -> LoadedLock:
    """As `make`, but a lock that still follows from recipe and project is kept, whatever moved meanwhile."""
    raw = work.read(LOCK_FILE)
    if raw is not None:
        loaded = read_lock(raw, LOCK_FILE)
        if not checked(recipe, work, project, None).findings:
            wiring.progress(ctx).say(f"lock: {loaded.digest} still follows from the recipe, nothing to do")
            return loaded
    return make(ctx, recipe, work, project)


def make(ctx: click.Context, recipe: Path, work: WorkFolder, project: Path) -> LoadedLock:
    """Resolve and write the lock of the work folder."""
    from tic_manifest.stages.lock import make_lock
    from tic_manifest.stages.materials import read_materials

    wanted = _recipe(recipe)
    files = read_materials(project)
    raw = canonical_bytes(make_lock(wanted, files, bench(ctx, wanted, work)))
    loaded = read_lock(raw, LOCK_FILE)
    work.write(LOCK_FILE, raw)
    wiring.progress(ctx).say(f"lock: {digest_of(raw)}")
    return loaded


def checked(recipe: Path, work: WorkFolder, project: Path, lock: Path | None) -> Report:
    """Whether the lock still follows. Raises UnavailableError STAGE_MISSING where there is none."""
    from tic_manifest.stages.lock_check import check_lock
    from tic_manifest.stages.materials import read_materials

    raw = wiring.read_person_file(lock) if lock is not None else work.read(LOCK_FILE)
    if raw is None:
        raise UnavailableError(
            "STAGE_MISSING",
            "there is no lock",
            where=str(work.root),
            expected=LOCK_FILE,
            remedy="run tic-manifest lock RECIPE first",
        )
    return check_lock(read_lock(raw, LOCK_FILE), _recipe(recipe), read_materials(project))


def bench(ctx: click.Context, recipe: Recipe, work: WorkFolder) -> LockBench:
    """What locking needs from the outside."""
    from tic_manifest.adapters.forge import GitHubForge
    from tic_manifest.adapters.forge_http import HttpExchange
    from tic_manifest.adapters.forge_map import read_forge_map
    from tic_manifest.adapters.pip_settings import read_pip_settings
    from tic_manifest.adapters.resolver import UvResolver
    from tic_manifest.adapters.store import FileStore
    from tic_manifest.stages.lock import LockBench

    progress = wiring.progress(ctx)
    return LockBench(
        store=FileStore(work.root / "store"),
        git_for=wiring.git_for(work),
        forge=GitHubForge(recipe.forge.api, HttpExchange(os.environ), read_forge_map(os.environ)),
        resolver=UvResolver(read_pip_settings(), progress, os.environ),
        roots=wiring.roots(ctx),
        progress=progress,
    )


def _recipe(path: Path) -> Recipe:
    return read_recipe(wiring.read_person_file(path), str(path))
