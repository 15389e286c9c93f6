"""`tic-manifest report`: the whole report template from the evidence of a delivery."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import click

from tic_manifest.cli import wiring
from tic_manifest.cli.measuring import built, lock_bytes, lock_option
from tic_manifest.model.base import Digest
from tic_manifest.model.delivery import Statement
from tic_manifest.model.document import Document
from tic_manifest.model.receipt import BuildBody
from tic_manifest.render import REPORT_FORMATS, report_renderer
from tic_manifest.stages.session import Session, open_session


@click.command("report")
@click.option("--format", "name", type=click.Choice(REPORT_FORMATS), default="markdown", show_default=True)
@lock_option
@wiring.work_option
def command(name: str, lock_file: Path | None, work_dir: Path) -> int:
    """Fill the report template from evidence: of the attached delivery manifest, else of the work folder.

    Places that no evidence fills say `not run`, `unverified` or `unknown` with the reason. The exit code is 0
    when the report was written; the outcome stands in it, and is `verify`'s to return.
    """
    session = open_session(wiring.work_folder(work_dir), lock_bytes(lock_file))
    text = report_renderer(name)(made(session))
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.flush()
    return 0


def made(session: Session) -> Document:
    """The document of the image that the work folder holds. Raises UnavailableError STAGE_MISSING."""
    from tic_manifest.adapters.layout import LayoutSource
    from tic_manifest.stages.attached import EvidenceFiles, head_statement
    from tic_manifest.stages.delivered import read_image
    from tic_manifest.stages.report import document

    build = built(session, None)
    platform = str(build.platform_digest)
    index = build.body.index_digest if isinstance(build.body, BuildBody) else None
    source = LayoutSource(session.work.root / "layout")
    image, head = read_image(source, platform, index), head_statement(source, platform)
    attached: tuple[Statement, Digest] | None = None if head is None else (head.value, head.digest)
    evidence = _collected(session) if head is None else EvidenceFiles(source, head.value)
    return document(evidence, image, attached)


def _collected(session: Session) -> Mapping[str, bytes]:
    """What `assemble` would attach; without an approval, which lies beside the recipe."""
    from tic_manifest.stages.assemble import collect

    return collect(session.lock, session.receipts(), wiring.runs(session), session.work, None)
