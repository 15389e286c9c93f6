"""`tic-manifest validate`: final validation in the clean image."""

from __future__ import annotations

from pathlib import Path

import click

from tic_manifest.cli import wiring
from tic_manifest.cli.measuring import built, lock_bytes, lock_option, subject
from tic_manifest.cli.output import judging, output_option
from tic_manifest.model.receipt import Receipt
from tic_manifest.model.verdict import Report, report
from tic_manifest.stages.session import Session, open_session


@click.command("validate")
@click.argument("image", required=False)
@lock_option
@wiring.work_option
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    image: str | None,
    lock_file: Path | None,
    work_dir: Path,
    outputs: tuple[tuple[str, str], ...],
) -> int:
    """Measure the recipe's comparisons in IMAGE@DIGEST, the clean build, and judge them from raw bytes."""

    work = wiring.work_folder(work_dir)

    def judge() -> Report:
        with work.writing():
            session = open_session(work, lock_bytes(lock_file))
            run_validate(ctx, session, built(session, image))
            return judged(session)

    return judging(ctx, "validate", outputs, judge)


def run_validate(ctx: click.Context, session: Session, build: Receipt) -> Receipt:
    """Run the stage and keep its receipt."""
    from tic_manifest.stages.validate import refuse_unclean, validate

    bench = wiring.bench(ctx, session)
    subject_ = subject(session, bench, build)
    refuse_unclean(build, subject_)
    receipt = validate(subject_, bench, build, session.receipt("probe"), session.receipt("validate"))
    session.keep(receipt)
    return receipt


def judged(session: Session) -> Report:
    """The comparisons, judged again from the bytes that the runs left."""
    from tic_manifest.rules.delivery import judge_comparisons
    from tic_manifest.rules.dossier import read_dossier
    from tic_manifest.stages.assemble import collect

    files = collect(session.lock, session.receipts(), wiring.runs(session), session.work, None)
    checks, findings = judge_comparisons(read_dossier(files))
    return report("validate", checks, findings, subjects=[f"lock {session.lock.digest}"])
