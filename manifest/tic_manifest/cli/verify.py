"""`tic-manifest verify`: judge a delivered image from its bytes and evidence alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tic_manifest.cli.output import judging, output_option
from tic_manifest.cli.wiring import progress
from tic_manifest.errors import PersonError
from tic_manifest.formats.reference import mutable, parse_reference, require_digest

if TYPE_CHECKING:
    from tic_manifest.model.delivery import VerifyReport
    from tic_manifest.model.oci import ImageReference
    from tic_manifest.ports import ImageSource

DEPTHS = ("identity", "content", "files")


@click.command("verify")
@click.argument("reference", metavar="REF@sha256:…", required=False)
@click.option("--depth", type=click.Choice(DEPTHS), help="how deep to read [default: content]")
@click.option("--offline", is_flag=True, help="open no socket; REF must be oci:DIR@sha256:…")
@click.option("--all-platforms", is_flag=True, help="a platform without evidence is inconclusive")
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    reference: str | None,
    outputs: tuple[tuple[str, str], ...],
    depth: str | None,
    offline: bool,
    all_platforms: bool,
) -> int:
    """Judge the image that REF names again: documents, every blob, attached delivery manifest and evidence.

    REF is HOST[:PORT]/REPOSITORY@sha256:…, [::1]:PORT/REPOSITORY@sha256:… or oci:DIR@sha256:….
    Depths: identity reads documents and asks for every blob; content (default) reads every blob to its end;
    files also judges the effective file system.
    """
    if reference is None:
        raise click.UsageError("Missing argument 'REF@sha256:…'.", ctx)
    return judging(ctx, "verify", outputs, lambda: _verify(ctx, reference, depth, offline, all_platforms))


def _verify(
    ctx: click.Context, text: str, depth: str | None, offline: bool, all_platforms: bool
) -> VerifyReport:
    from tic_manifest.adapters.blobs import read_blobs
    from tic_manifest.rules.delivery import judge_delivery
    from tic_manifest.stages.verify import Options, Tools, verify

    reference = parse_reference(text)
    if offline and reference.layout is None:
        raise PersonError(
            "USAGE", "--offline reads layouts alone", where=text, expected="oci:DIR@sha256:…",
            remedy="copy the image into a layout first, or leave --offline out",
        )  # fmt: skip
    source = open_image(reference)
    if reference.digest is None and reference.tag is not None:
        raise mutable(reference, source.resolve(reference.tag))
    options = Options(depth=_depth(depth), all_platforms=all_platforms)
    tools = Tools(reader=read_blobs, judge=judge_delivery, progress=progress(ctx))
    return verify(source, require_digest(reference), options, tools)


def _depth(depth: str | None) -> Any:
    return depth or "content"


def open_image(reference: ImageReference) -> ImageSource:
    """The place that a reference names. Raises PersonError LAYOUT for a folder that is no layout."""
    if reference.layout is not None:
        from tic_manifest.adapters.layout import LayoutSource

        return LayoutSource(Path(reference.layout))
    raise PersonError("USAGE", "registries are not supported yet", where=str(reference))
