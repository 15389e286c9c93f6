"""An archive that holds another platform manifest than was asked for: what can be said of the image in it."""

from __future__ import annotations

from tic_manifest.errors import RefusedError
from tic_manifest.formats.oci import kind_of, parse_config, parse_manifest
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.base import Digest
from tic_manifest.model.oci import MAX_MANIFEST_BYTES, ImageConfig, Kind
from tic_manifest.model.receipt import BuildBody, Receipt
from tic_manifest.model.verdict import Finding, note
from tic_manifest.ports import ImageSource
from tic_manifest.stages.attached import EvidenceFiles, head_statement

EQUAL = "config and diffIDs equal: re-encoded copy"
PERHAPS = "a re-encoded copy, if the image that is meant has this config, which names all diffIDs: "


def reencoded(source: ImageSource, asked: Digest) -> list[Finding]:
    """The note for a copy whose layers were packed anew: a fail all the same, as its digest is another.

    That config and diffIDs are equal is said only where the build's receipt for `asked` is attached.
    """
    raw = source.manifest(asked)
    if raw is None or kind_of(raw) is not Kind.MANIFEST:
        return []
    try:
        digest = parse_manifest(raw, source.describe()).value.config.digest
        config = _config(source, digest)
        built = _built(source, asked)
    except RefusedError:
        return []
    if config is None or built not in {None, digest}:
        return []
    evidence = {"config": digest, "diffIds": list(config.diff_ids)}
    what = EQUAL if built else PERHAPS + digest
    return [note("MANIFEST_DIGEST", source.describe(), what=what, evidence=evidence)]


def _config(source: ImageSource, digest: Digest) -> ImageConfig | None:
    pieces = source.blob(digest, MAX_MANIFEST_BYTES)
    return None if pieces is None else parse_config(b"".join(pieces), digest).value


def _built(source: ImageSource, asked: Digest) -> Digest | None:
    """The config of the image that was built, as the delivery manifest's evidence says."""
    head = head_statement(source, asked)
    raw = EvidenceFiles(source, head.value).get("receipts/build.json") if head else None
    body = read_model(raw, Receipt, "receipts/build.json").body if raw else None
    return body.config_digest if isinstance(body, BuildBody) else None
