"""`tic-manifest verify`: judge a delivered image from its bytes and evidence alone."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tic_manifest.cli.output import judging, output_option
from tic_manifest.cli.wiring import progress, read_person_file
from tic_manifest.errors import PersonError, UnavailableError

if TYPE_CHECKING:
    from tic_manifest.model.delivery import VerifyReport
    from tic_manifest.model.oci import ImageReference
    from tic_manifest.ports import ImageSource
    from tic_manifest.stages.verify import Options

DEPTHS = ("identity", "content", "files")
_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """The options of the command line."""

    reference: str
    depth: str | None
    policy: Path | None
    keys: tuple[Path, ...]
    offline: bool
    all_platforms: bool


@click.command("verify")
@click.argument("reference", metavar="REF@sha256:…", required=False)
@click.option("--depth", type=click.Choice(DEPTHS), help="how deep to read [default: content]")
@click.option("--policy", type=_FILE, help="what to demand, in place of the built-in policy")
@click.option("--show-policy", is_flag=True, help="print the built-in policy and end")
@click.option("--key", "keys", type=_FILE, multiple=True, help="accepted signer, SPKI PEM; repeatable")
@click.option("--offline", is_flag=True, help="open no socket; REF must be a layout or an archive")
@click.option("--all-platforms", is_flag=True, help="a platform without evidence is inconclusive")
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    reference: str | None,
    outputs: tuple[tuple[str, str], ...],
    depth: str | None,
    policy: Path | None,
    show_policy: bool,
    keys: tuple[Path, ...],
    offline: bool,
    all_platforms: bool,
) -> int:
    """Judge the image that REF names again: documents, every blob, attached delivery manifest and evidence.

    REF is HOST[:PORT]/REPOSITORY@sha256:…, [::1]:PORT/REPOSITORY@sha256:…, oci:DIR@sha256:… or, to read
    what docker save wrote, docker-archive:FILE@sha256:….
    Depths: identity reads documents and asks for every blob; content (default) reads every blob to its end;
    files also judges the effective file system.
    """
    if show_policy:
        from tic_manifest.model.policy import BUILT_IN

        sys.stdout.write(BUILT_IN)
        return 0
    if reference is None:
        raise click.UsageError("Missing argument 'REF@sha256:…'.", ctx)
    asked = _Asked(
        reference=reference,
        depth=depth,
        policy=policy,
        keys=keys,
        offline=offline,
        all_platforms=all_platforms,
    )
    return judging(ctx, "verify", outputs, lambda: _verify(ctx, asked))


def _verify(ctx: click.Context, asked: _Asked) -> VerifyReport:
    from tic_manifest.adapters.blobs import read_blobs, read_trees
    from tic_manifest.formats.reference import mutable, parse_reference, require_digest
    from tic_manifest.rules.delivery import judge_delivery
    from tic_manifest.stages.verify import Tools, verify

    reference = parse_reference(asked.reference)
    if asked.offline and reference.registry is not None:
        raise PersonError(
            "USAGE", "--offline reads no registry", where=asked.reference, expected="oci:DIR@sha256:…",
            remedy="copy the image into a layout first, or leave --offline out",
        )  # fmt: skip
    options = _options(asked)
    source = open_image(reference)
    if reference.digest is None:
        raise mutable(reference, behind(source, reference.tag))
    tools = Tools(reader=read_blobs, judge=judge_delivery, progress=progress(ctx), trees=read_trees)
    return verify(source, require_digest(reference), options, tools)


def _options(asked: _Asked) -> Options:
    from tic_manifest.cli.signers import accepted
    from tic_manifest.formats.policy import read_policy
    from tic_manifest.model.policy import BUILT_IN
    from tic_manifest.stages.verify import Options

    where = str(asked.policy) if asked.policy else "built-in policy"
    policy = read_policy(read_person_file(asked.policy) if asked.policy else BUILT_IN.encode(), where)
    signers = accepted(asked.keys, policy, asked.policy)
    if signers.names:  # naming a signer demands a signature
        out = tuple(name for name in policy.out_of_scope if name != "authenticity")
        policy = policy.model_copy(
            update={"out_of_scope": out, "required": (*policy.required, "authenticity")}
        )
    depth = asked.depth or policy.depth
    return Options(
        depth="identity" if depth == "identity" else "files" if depth == "files" else "content",
        all_platforms=asked.all_platforms or policy.all_platforms,
        keys=signers.names,
        signers=signers.signers,
        policy=policy,
    )


def behind(source: ImageSource, tag: str | None) -> str | None:
    """The digest that a tag names now, or of the only image there is.

    None where nobody answers: the tag is refused all the same.
    """
    try:
        if tag is None:
            named = {one.digest for one in source.index_entries()}
            return named.pop() if len(named) == 1 else None
        return source.resolve(tag)
    except UnavailableError:
        return None


def open_image(reference: ImageReference) -> ImageSource:
    """The place that a reference names. Raises PersonError LAYOUT for what is no such place."""
    if reference.archive is not None:
        from tic_manifest.adapters.docker_archive import open_archive

        return open_archive(Path(reference.archive), reference.digest)
    if reference.layout is not None:
        from tic_manifest.adapters.layout import LayoutSource

        return LayoutSource(Path(reference.layout))
    return _registry(str(reference.registry), str(reference.repository))


def _registry(host: str, repository: str) -> ImageSource:
    """The registry, behind the mirrors that registries.conf names."""
    from tic_manifest.adapters.registry import RegistrySource
    from tic_manifest.adapters.registry_mirrors import mirrors_of

    own = RegistrySource(host, repository, os.environ)
    mirrors = [RegistrySource(*one, os.environ) for one in mirrors_of(host, repository, os.environ)]
    if not mirrors:
        return own
    from tic_manifest.adapters.places import Mirrored

    return Mirrored([*mirrors, own])
