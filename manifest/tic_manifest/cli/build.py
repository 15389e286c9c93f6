"""`tic-manifest build`: the image from the lock alone."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tic_manifest.adapters.clock import SystemClock
from tic_manifest.cli import wiring
from tic_manifest.cli.measuring import lock_bytes, lock_option
from tic_manifest.model.receipt import BuildBody, Receipt
from tic_manifest.stages.session import Session, open_session

if TYPE_CHECKING:
    from tic_manifest.adapters.work import WorkFolder
    from tic_manifest.stages.build import BuildBench


@click.command("build")
@lock_option
@click.option("--no-cache", is_flag=True, help="build every part again, from the store's files alone")
@wiring.work_option
@click.pass_context
def command(ctx: click.Context, lock_file: Path | None, no_cache: bool, work_dir: Path) -> None:
    """Build the image from the lock alone, without network: OCI layout, log, receipt."""
    work = wiring.work_folder(work_dir)
    with work.writing():
        session = open_session(work, lock_bytes(lock_file))
        receipt = run_build(ctx, session, no_cache=no_cache)
    body = receipt.body
    index = body.index_digest if isinstance(body, BuildBody) else None
    sys.stdout.write(f"lock digest: {session.lock.digest}\nimage index digest: {index}\n")
    sys.stdout.write(f"platform manifest digest: {receipt.platform_digest}\n")


def run_build(ctx: click.Context, session: Session, *, no_cache: bool = False) -> Receipt:
    """Run the stage and keep its receipt; a build that stands is not done again."""
    from tic_manifest.stages.build import build

    receipt = build(session, bench(ctx, wiring.work_folder(session.work.root)), no_cache=no_cache)
    session.keep(receipt)
    return receipt


def bench(ctx: click.Context, work: WorkFolder) -> BuildBench:
    """What building needs from the outside."""
    from tic_manifest.adapters.layout_read import LayoutReader
    from tic_manifest.adapters.store import FileStore
    from tic_manifest.stages.build import BuildBench

    return BuildBench(
        engine=wiring.engine(ctx), store=FileStore(work.root / "store"), roots=wiring.roots(ctx),
        layouts=LayoutReader(), git_for=wiring.git_for(work), clock=SystemClock(),
        progress=wiring.progress(ctx), tool_version=wiring.version(), free=_free,
    )  # fmt: skip


def _free(place: Path) -> int:
    """Free bytes of the file system that a folder lies or will lie on."""
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free
