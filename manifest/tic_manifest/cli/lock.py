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
from tic_manifest.formats.recipe import git_url, read_recipe
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
@click.option("--offline", is_flag=True, help="make the lock from what the earlier one resolved")
@click.option("--repin", metavar="NAME", help="first move this head to where its pull request is now")
@wiring.work_option
@wiring.project_option
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    recipe: Path,
    out: Path | None,
    check: bool,
    offline: bool,
    repin: str | None,
    work_dir: Path,
    project: Path,
    outputs: tuple[tuple[str, str], ...],
) -> int:
    """Resolve RECIPE: heads, bases, trees, every distribution and package by hash, into the store.

    With --check: exit 1 where recipe, Dockerfile, agent, workers or schema changed since the lock was made.
    """
    work = wiring.work_folder(work_dir)
    if repin is not None and (check or offline):
        raise click.UsageError("--repin asks the forge: it goes neither with --check nor with --offline")
    if check:
        return judging(ctx, "lock", outputs, lambda: checked(recipe, work, project, out))
    if outputs:
        raise click.UsageError("--output goes with --check: making a lock judges nothing")
    with work.writing():
        if repin is not None:
            moved(recipe, repin, work)
        loaded = make(ctx, recipe, work, project, offline=offline)
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


def make(
    ctx: click.Context, recipe: Path, work: WorkFolder, project: Path, *, offline: bool = False
) -> LoadedLock:
    """Resolve and write the lock of the work folder."""
    from tic_manifest.stages.lock import make_lock
    from tic_manifest.stages.lock_offline import relock
    from tic_manifest.stages.materials import read_materials

    wanted = _recipe(recipe)
    files = read_materials(project)
    needs = bench(ctx, wanted, work)
    if offline:
        made = relock(wanted, files, _earlier(work), needs.store, work.root / "store" / "git")
    else:
        made = make_lock(wanted, files, needs)
    raw = canonical_bytes(made)
    loaded = read_lock(raw, LOCK_FILE)
    work.write(LOCK_FILE, raw)
    wiring.progress(ctx).say(f"lock: {digest_of(raw)}")
    return loaded


def moved(recipe: Path, name: str, work: WorkFolder) -> None:
    """Write the new head into the recipe, nothing else; print old, new and range-diff."""
    from tic_manifest.cli.output import write_whole
    from tic_manifest.render.escape import printable
    from tic_manifest.stages.gate_repin import repinned
    from tic_manifest.stages.repin import repin

    wanted = _recipe(recipe)
    pull = wanted.pull_requests.get(name)
    found = repin(wanted, name, wiring.gate_git_for(work)(name, git_url(pull) if pull else ""))
    sys.stdout.write(f"{name}: old head {found.old}\n{name}: new head {found.new}\n")
    for line in found.range_diff:
        sys.stdout.write(f"  {printable(line)}\n")
    if found.new != found.old:
        raw = wiring.read_person_file(recipe)
        write_whole(recipe, repinned(raw, str(recipe), (found,)))


def _earlier(work: WorkFolder) -> LoadedLock:
    raw = work.read(LOCK_FILE)
    if raw is None:
        raise UnavailableError(
            "STAGE_MISSING",
            "there is no earlier lock to make this one from",
            where=str(work.root),
            expected=LOCK_FILE,
            remedy="run tic-manifest lock RECIPE with the network first",
        )
    return read_lock(raw, LOCK_FILE)


def checked(recipe: Path, work: WorkFolder, project: Path, lock: Path | None) -> Report:
    """Whether the lock still follows. Raises UnavailableError STAGE_MISSING where there is none."""
    from tic_manifest.stages.lock_check import check_lock
    from tic_manifest.stages.materials import read_materials

    raw = wiring.read_person_file(lock, wiring.MAX_LOCK) if lock is not None else work.read(LOCK_FILE)
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
    from tic_manifest.adapters.forge_map import read_forge_map
    from tic_manifest.adapters.pip_settings import read_pip_settings
    from tic_manifest.adapters.resolver import UvResolver
    from tic_manifest.adapters.store import FileStore
    from tic_manifest.stages.lock import LockBench

    progress = wiring.progress(ctx)
    return LockBench(
        store=FileStore(work.root / "store"),
        git_for=wiring.git_for(work),
        forge=GitHubForge(recipe.forge.api, wiring.forge_exchange(), read_forge_map(os.environ)),
        resolver=UvResolver(read_pip_settings(), progress, os.environ),
        roots=wiring.roots(ctx),
        progress=progress,
    )


def _recipe(path: Path) -> Recipe:
    return read_recipe(wiring.read_person_file(path), str(path))
