"""`tic-manifest image`: every stage in order, resumable; what `make image` runs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tic_manifest.adapters.work import WorkFolder
from tic_manifest.cli import wiring
from tic_manifest.cli.output import output_option
from tic_manifest.errors import UnavailableError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.formats.recipe import read_recipe
from tic_manifest.model.receipt import BuildBody
from tic_manifest.model.verdict import Outcome, Report, report
from tic_manifest.render import renderer
from tic_manifest.render.escape import printable
from tic_manifest.stages.session import LOCK_FILE, Session, open_session

if TYPE_CHECKING:
    from tic_manifest.stages.assemble import Assembled


@click.command("image")
@click.argument("recipe", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--require-pass", is_flag=True, help="stop at the first stage that is not pass, with its exit code"
)
@wiring.work_option
@wiring.project_option
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    recipe: Path,
    require_pass: bool,
    work_dir: Path,
    project: Path,
    outputs: tuple[tuple[str, str], ...],
) -> int:
    """Gate, lock, build, probe, validate and assemble RECIPE; finished stages are not done again.

    Exits 0 when every stage ran and the delivery manifest is attached: the verdict is printed, and is
    `verify`'s to return.
    """
    work = wiring.work_folder(work_dir)
    with work.writing():
        _preflight(recipe, work)
        run = _Run(ctx, recipe, project, require_pass)
        session, code = run.stages(work)
        if session is None:
            return code
        return run.deliver(session, outputs)


def _preflight(recipe: Path, work: WorkFolder) -> None:
    """Refuse before anything is read from a network. Raises UnavailableError DISK_FULL with both numbers.

    Only a first run is judged by the figure in the recipe: with a lock, `build` counts from its sizes.
    """
    needed = read_recipe(wiring.read_person_file(recipe), str(recipe)).disk_mib << 20
    free = shutil.disk_usage(work.root).free
    if work.read(LOCK_FILE) is None and free < needed:
        raise UnavailableError(
            "DISK_FULL", "not enough free disk for the whole delivery", where=str(work.root),
            expected=f"{needed} bytes free (disk_mib of the recipe)", actual=f"{free} bytes",
            remedy=f"free {needed - free} bytes, or name a --work on another disk",
        )  # fmt: skip


class _Run:
    """One run of all stages; the gate is printed as soon as it is judged."""

    def __init__(self, ctx: click.Context, recipe: Path, project: Path, require_pass: bool) -> None:
        self._ctx, self._recipe, self._project, self._strict = ctx, recipe, project, require_pass
        self._say = wiring.progress(ctx).say

    def stages(self, work: WorkFolder) -> tuple[Session | None, int]:
        """Every stage up to validation; (None, exit code) where --require-pass stopped."""
        from tic_manifest.cli.build import run_build
        from tic_manifest.cli.gate import gate_of, keep_gate
        from tic_manifest.cli.lock import run_lock
        from tic_manifest.cli.probe import judged as judged_probe
        from tic_manifest.cli.probe import run_probe
        from tic_manifest.cli.validate import judged as judged_validate
        from tic_manifest.cli.validate import run_validate

        facts = gate_of(self._ctx, self._recipe, work)
        if self._stopped(facts.report):
            return None, facts.report.exit_code
        run_lock(self._ctx, self._recipe, work, self._project)
        session = open_session(work)
        keep_gate(session, facts)
        build = run_build(self._ctx, session)
        run_probe(self._ctx, session, build)
        if self._strict and self._stopped(seen := judged_probe(session)):
            return None, seen.exit_code
        run_validate(self._ctx, session, build)
        if self._strict and self._stopped(seen := judged_validate(session)):
            return None, seen.exit_code
        return session, 0

    def deliver(self, session: Session, outputs: tuple[tuple[str, str], ...]) -> int:
        """Assemble, print digests, rows and verdict."""
        from tic_manifest.cli.assemble import run_assemble
        from tic_manifest.render.delivery import rows_text

        made = run_assemble(self._ctx, session, self._recipe)
        judged = _verdict(session, made)
        sys.stdout.write(rows_text(made.judged.rows))
        for line in self._digests(session, made):
            sys.stdout.write(line + "\n")
        self._write(judged, outputs)
        return judged.exit_code if self._strict else 0

    def _stopped(self, judged: Report) -> bool:
        sys.stdout.write(renderer("text")(judged, color=self._ctx.obj.use_color))
        sys.stdout.flush()
        return self._strict and judged.outcome is not Outcome.PASS

    def _digests(self, session: Session, made: Assembled) -> list[str]:
        build = session.need("build")
        index = build.body.index_digest if isinstance(build.body, BuildBody) else None
        layout = printable(str(session.work.root / "layout"))
        return [
            f"lock digest: {session.lock.digest}",
            f"image index digest: {index}",
            f"platform manifest digest: {build.platform_digest}",
            f"delivery manifest digest: {digest_of(made.statement)}",
            f"verify with: tic-manifest verify oci:{layout}@{build.platform_digest}",
        ]

    def _write(self, judged: Report, outputs: tuple[tuple[str, str], ...]) -> None:
        from tic_manifest.cli.output import finish

        finish(self._ctx, judged, outputs)


def _verdict(session: Session, made: Assembled) -> Report:
    """What follows from the evidence, before the image's bytes are read: `verify` reads those too."""
    subjects = [f"lock {session.lock.digest}", f"delivery manifest {digest_of(made.statement)}"]
    return report("image", made.judged.checks, made.judged.findings, subjects=subjects)
