"""`tic-manifest init`: a complete recipe from pull request URLs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from tic_manifest.cli import wiring
from tic_manifest.cli.output import write_whole
from tic_manifest.render.escape import printable


@click.command("init")
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option(
    "--base", required=True, help="base image by digest: HOST/REPO@sha256:... or oci:DIR@sha256:..."
)
@click.option(
    "-o", "--output", "target", type=click.Path(path_type=Path, dir_okay=False), help="file to write"
)
def command(urls: tuple[str, ...], base: str, target: Path | None) -> None:
    """Write a recipe whose heads and bases are those that are live now; to standard output without -o."""
    from tic_manifest.adapters.forge import GitHubForge
    from tic_manifest.adapters.forge_map import read_forge_map
    from tic_manifest.formats.reference import parse_reference, require_digest, require_store
    from tic_manifest.stages.init import init

    require_digest(require_store(parse_reference(base)))
    forge_map = read_forge_map(os.environ)
    text = init(urls, base, lambda api: GitHubForge(api, wiring.forge_exchange(), forge_map))
    if target is None:
        sys.stdout.write(text)
        return
    write_whole(target, text.encode())
    sys.stderr.write(
        f"{printable(str(target))}: fill in python.runtime, workers and validation, then lock it\n"
    )
