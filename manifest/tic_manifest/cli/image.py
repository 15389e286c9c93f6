"""`tic-manifest image`: every stage in order, resumable; what `make image` runs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tic_manifest.adapters.work import WorkFolder
from tic_manifest.cli import wiring
from tic_manifest.cli.output import has_stdout, judging, output_option, to_stdout
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
    run = _Run(ctx, recipe, project, require_pass, quiet=has_stdout(outputs))

    def judge() -> Report:
        work = wiring.work_folder(work_dir)
        with work.writing():
            _preflight(recipe, work)
            return run.all(work)

    code = judging(ctx, "image", outputs, judge)
    return 0 if run.delivered and not require_pass else code


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
    """One run of all stages; the gate is printed as soon as it is judged.

    With `quiet`, what is printed on the way goes to standard error: a report has standard output for itself.
    """

    def __init__(self, ctx: click.Context, recipe: Path, project: Path, strict: bool, *, quiet: bool) -> None:
        self._ctx, self._recipe, self._project, self._strict = ctx, recipe, project, strict
        self._quiet = quiet
        self.delivered = False

    def all(self, work: WorkFolder) -> Report:
        """Every stage in order; the report of the whole, or of the stage at which --require-pass stopped."""
        from tic_manifest.cli.gate import gate_of, keep_gate

        gated = gate_of(self._ctx, self._recipe, work)
        self._print(renderer("text")(gated.report, color=self._ctx.obj.use_color and not self._quiet))
        if self._stops(gated.report):
            return gated.report
        session = self._locked(work)
        keep_gate(session, gated)
        return self._measured(session) or self._delivered(session)

    def _locked(self, work: WorkFolder) -> Session:
        from tic_manifest.cli.lock import run_lock

        run_lock(self._ctx, self._recipe, work, self._project)
        return open_session(work)

    def _measured(self, session: Session) -> Report | None:
        """Build, probe and validate; a report only where --require-pass stops."""
        from tic_manifest.cli import probe, validate
        from tic_manifest.cli.build import run_build

        build = run_build(self._ctx, session)
        probe.run_probe(self._ctx, session, build)
        if self._strict and self._stops(seen := probe.judged(session)):
            return seen
        validate.run_validate(self._ctx, session, build)
        return seen if self._strict and self._stops(seen := validate.judged(session)) else None

    def _delivered(self, session: Session) -> Report:
        """Assemble and print rows and digests; the verdict is the report."""
        from tic_manifest.cli.assemble import run_assemble
        from tic_manifest.render.delivery import rows_text

        made = run_assemble(self._ctx, session, self._recipe)
        self._print(rows_text(made.judged.rows))
        self._print("".join(f"{line}\n" for line in self._digests(session, made)))
        self.delivered = True
        return _verdict(session, made)

    def _stops(self, judged: Report) -> bool:
        return self._strict and judged.outcome is not Outcome.PASS

    def _print(self, text: str) -> None:
        if self._quiet:
            sys.stderr.write(text)
        else:
            to_stdout(text)

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


def _verdict(session: Session, made: Assembled) -> Report:
    """What follows from the evidence, before the image's bytes are read: `verify` reads those too."""
    subjects = [f"lock {session.lock.digest}", f"delivery manifest {digest_of(made.statement)}"]
    return report("image", made.judged.checks, made.judged.findings, subjects=subjects)
