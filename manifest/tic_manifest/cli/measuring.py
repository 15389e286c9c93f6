"""What `probe`, `validate` and `image` share: the image of a work folder, made runnable once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tic_manifest.cli import wiring
from tic_manifest.errors import PersonError, RefusedError
from tic_manifest.formats.reference import parse_reference, require_digest
from tic_manifest.model.receipt import BuildBody, Receipt
from tic_manifest.stages.session import Session
from tic_manifest.stages.workers import Subject

if TYPE_CHECKING:
    from tic_manifest.stages.workers import Bench


def built(session: Session, image: str | None) -> Receipt:
    """The build's receipt, for the image that the command line names.

    A digest says which image, wherever the reference says it lies: the work folder's own copy is run.
    Raises PersonError for a reference to anything else than the image of this work folder.
    """
    receipt = session.need("build")
    if image is None:
        return receipt
    reference = require_digest(parse_reference(image))
    known = {
        receipt.platform_digest,
        receipt.body.index_digest if isinstance(receipt.body, BuildBody) else None,
    }
    if reference.digest not in known:
        raise PersonError(
            "NOT_CLEAN", "the image is not the one that was built from this lock", where=image,
            expected=f"oci:{session.work.root / 'layout'}@{receipt.platform_digest}",
            actual=str(reference.digest),
            remedy="name the image of this work folder, or give another --work",
        )  # fmt: skip
    return receipt


def subject(session: Session, bench: Bench, receipt: Receipt) -> Subject:
    """The image of a build, loaded into the engine and named there by digest."""
    body = receipt.body
    if receipt.platform_digest is None or not isinstance(body, BuildBody):
        raise RefusedError("SCHEMA", "the build's receipt names no platform manifest", where="receipts")
    return Subject(
        lock=session.lock,
        platform_digest=receipt.platform_digest,
        run_id=session.run_id,
        image=bench.engine.load(session.work.root / "layout", receipt.platform_digest),
        logs=session.work.root / "logs",
    )


def lock_bytes(path: Path | None) -> bytes | None:
    """The bytes of `--lock FILE`, or None for the work folder's own."""
    return None if path is None else wiring.read_person_file(path)


def lock_option(function: click.decorators.FC) -> click.decorators.FC:
    """Adds `--lock FILE`."""
    return click.option(
        "--lock", "lock_file", type=click.Path(path_type=Path, dir_okay=False), default=None,
        help="the lock (default: lock.json of the work folder)",
    )(function)  # fmt: skip
