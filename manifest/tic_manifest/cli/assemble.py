"""`tic-manifest assemble`: compute the delivery manifest and attach it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tic_manifest.cli import wiring
from tic_manifest.cli.measuring import built, lock_bytes, lock_option
from tic_manifest.cli.signing import sign
from tic_manifest.formats.canonical import digest_of
from tic_manifest.model.base import Digest
from tic_manifest.model.receipt import BuildBody, Receipt
from tic_manifest.ports import ImageSource
from tic_manifest.stages.assemble import Assembled, Earlier
from tic_manifest.stages.session import Session, open_session


@click.command("assemble")
@click.option(
    "--recipe", type=click.Path(path_type=Path, dir_okay=False), help="recipe whose approval file counts"
)
@click.option(
    "--sign-key",
    type=click.Path(path_type=Path, dir_okay=False),
    help="sign with this PEM key (ECDSA P-256 or Ed25519); its passphrase is read from TIC_SIGN_PASSPHRASE",
)
@lock_option
@wiring.work_option
@click.pass_context
def command(
    ctx: click.Context, recipe: Path | None, sign_key: Path | None, lock_file: Path | None, work_dir: Path
) -> None:
    """Compute the delivery manifest from receipts and attach it, with its evidence, to the image."""
    work = wiring.work_folder(work_dir)
    with work.writing():
        session = open_session(work, lock_bytes(lock_file))
        made = run_assemble(ctx, session, recipe, sign_key)
    sys.stdout.write(f"delivery manifest digest: {digest_of(made.statement)}\n")


def run_assemble(
    ctx: click.Context, session: Session, recipe: Path | None, sign_key: Path | None = None
) -> Assembled:
    """Run the stage; nothing is written where the attached delivery manifest says the same already."""
    from tic_manifest.adapters.attach import attach
    from tic_manifest.adapters.clock import SystemClock
    from tic_manifest.adapters.layout import LayoutSource
    from tic_manifest.stages.assemble import assemble, collect
    from tic_manifest.stages.delivered import descriptors, read_image

    build = built(session, None)
    layout = session.work.root / "layout"
    source = LayoutSource(layout)
    index = build.body.index_digest if isinstance(build.body, BuildBody) else None
    image = read_image(source, str(build.platform_digest), index)
    files = collect(session.lock, session.receipts(), wiring.runs(session), session.work, _approval(recipe))
    files |= _sources(ctx, session, build)
    made = assemble(
        files, image, _earlier(source, str(build.platform_digest)), SystemClock(), wiring.version()
    )
    signed = sign(source, image.platform_digest, made.statement, sign_key) if sign_key else None
    if made.unchanged and signed is None:
        wiring.progress(ctx).say("assemble: nothing to do")
        return made
    attach(layout, *descriptors(source, image), made.statement, made.evidence, signed=signed)
    return made


def _sources(ctx: click.Context, session: Session, build: Receipt) -> dict[str, bytes]:
    """Listings of the heads' trees and RECORDs of the wheels, from the work folder's store."""
    from tic_manifest.adapters.store import FileStore
    from tic_manifest.adapters.wheel_record import read_wheel
    from tic_manifest.stages.source_evidence import collect_sources

    body = build.body if isinstance(build.body, BuildBody) else None
    store = FileStore(session.work.root / "store")
    git_for = wiring.git_for(wiring.work_folder(session.work.root))
    return collect_sources(session.lock, body, git_for, store, read_wheel, wiring.progress(ctx))


def _earlier(source: ImageSource, platform_digest: Digest) -> Earlier | None:
    """The single head of the delivery manifests that are attached; None where there is none."""
    from tic_manifest.stages.attached import head_statement

    head = head_statement(source, platform_digest)
    return None if head is None else Earlier(digest=head.digest, raw=head.raw, statement=head.value)


def _approval(recipe: Path | None) -> bytes | None:
    path = wiring.approval_path(recipe) if recipe else None
    return wiring.read_person_file(path) if path is not None and path.is_file() else None
