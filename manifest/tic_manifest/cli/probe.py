"""`tic-manifest probe`: what the real processes loaded."""

from __future__ import annotations

from pathlib import Path

import click

from tic_manifest.cli import wiring
from tic_manifest.cli.measuring import built, lock_bytes, lock_option, subject
from tic_manifest.cli.output import judging, output_option
from tic_manifest.model.receipt import Receipt
from tic_manifest.model.verdict import Report, report
from tic_manifest.stages.session import Session, open_session


@click.command("probe")
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
    """Run the recipe's workers in IMAGE@DIGEST under the agent and judge what was observed."""
    work = wiring.work_folder(work_dir)

    def judge() -> Report:
        with work.writing():
            session = open_session(work, lock_bytes(lock_file))
            run_probe(ctx, session, built(session, image))
            return judged(session)

    return judging(ctx, "probe", outputs, judge)


def run_probe(ctx: click.Context, session: Session, build: Receipt) -> Receipt:
    """Run the stage and keep its receipt."""
    from tic_manifest.stages.probe import probe

    bench = wiring.bench(ctx, session)
    receipt = probe(subject(session, bench, build), bench, session.receipt("probe"))
    session.keep(receipt)
    return receipt


def judged(session: Session) -> Report:
    """The observations, judged again from the files that the agent left."""
    from tic_manifest.rules.delivery_probe import judge_probe
    from tic_manifest.rules.dossier import read_dossier
    from tic_manifest.stages.assemble import collect

    files = collect(session.lock, session.receipts(), wiring.runs(session), session.work, None)
    checks, findings = judge_probe(read_dossier(files))
    return report("probe", checks, findings, subjects=[f"lock {session.lock.digest}"])
