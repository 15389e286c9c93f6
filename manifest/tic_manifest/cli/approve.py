"""`tic-manifest approve`: a person's word for recipe, checklist and resolved configuration."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tic_manifest.adapters.clock import SystemClock
from tic_manifest.cli.output import write_whole
from tic_manifest.cli.wiring import approval_path, read_person_file, work_folder, work_option
from tic_manifest.errors import PersonError, UnavailableError
from tic_manifest.formats.canonical import canonical_bytes
from tic_manifest.formats.lock import checklist_digest, recipe_digest, resolved_digest
from tic_manifest.formats.recipe import read_recipe
from tic_manifest.model.receipt import Approval
from tic_manifest.render.escape import printable


@click.command("approve")
@click.argument("recipe", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--as", "name", required=True, help="the name of the person who approves")
@work_option
def command(recipe: Path, name: str, work_dir: Path) -> None:
    """Write the approval file of RECIPE beside it. The recipe itself is never changed."""
    from tic_manifest.stages.session import open_session

    if not 1 <= len(name) <= 200 or not name.isprintable():
        raise PersonError(
            "USAGE", "--as takes the name of a person", expected="1 to 200 printable characters", actual=name
        )
    said = read_recipe(read_person_file(recipe), str(recipe))
    lock = open_session(work_folder(work_dir)).lock
    if recipe_digest(said) != lock.lock.recipe_digest:
        raise UnavailableError(
            "LOCK_STALE", "the lock is of an earlier version of this recipe", where=str(recipe),
            expected=lock.lock.recipe_digest, actual=recipe_digest(said),
            remedy=f"run tic-manifest lock {recipe}",
        )  # fmt: skip
    approval = Approval(
        schema_="tic/approval/v1",
        recipe_digest=lock.lock.recipe_digest,
        checklist_digest=checklist_digest(said),
        resolved_digest=resolved_digest(lock),
        approved_by=name,
        approved_at=SystemClock().now(),
    )
    target = approval_path(recipe)
    write_whole(target, canonical_bytes(approval))
    sys.stdout.write(f"{printable(str(target))}: approved by {printable(name)} (self-declared)\n")
    for label, digest in (
        ("recipe digest", approval.recipe_digest),
        ("acceptance checklist digest", approval.checklist_digest),
        ("resolved configuration digest", approval.resolved_digest),
    ):
        sys.stdout.write(f"  {label}: {digest}\n")
