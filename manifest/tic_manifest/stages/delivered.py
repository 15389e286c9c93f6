"""The documents of an image that we built, read back from its bytes: what a delivery is about."""

from __future__ import annotations

from tic_manifest.errors import RefusedError, UnavailableError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.formats.oci import parse_config, parse_manifest
from tic_manifest.formats.strict_json import load_json
from tic_manifest.model.base import Digest
from tic_manifest.model.oci import INDEX, MANIFEST, Descriptor, JudgedImage
from tic_manifest.ports import ImageSource


def read_image(source: ImageSource, platform_digest: Digest, index_digest: Digest | None) -> JudgedImage:
    """The platform manifest and its config, each hashed when read.

    Raises UnavailableError BLOB_MISSING, RefusedError MANIFEST_DIGEST and what the strict reader raises.
    """
    manifest = parse_manifest(_document(source, platform_digest), "platform manifest").value
    config = parse_config(_document(source, manifest.config.digest), "config").value
    return JudgedImage(
        index_digest=index_digest,
        platform_digest=platform_digest,
        platform=config.platform,
        manifest=manifest,
        config=config,
    )


def descriptors(source: ImageSource, image: JudgedImage) -> tuple[Descriptor, Descriptor | None]:
    """Descriptors of platform manifest and image index, sizes in bytes as stored."""
    return (
        _descriptor(source, image.platform_digest, MANIFEST),
        _descriptor(source, image.index_digest, INDEX) if image.index_digest else None,
    )


def _descriptor(source: ImageSource, digest: Digest, default: str) -> Descriptor:
    raw = _document(source, digest)
    data = load_json(raw, digest)
    named = data.get("mediaType") if isinstance(data, dict) else None
    return Descriptor(media_type=named if isinstance(named, str) else default, digest=digest, size=len(raw))


def _document(source: ImageSource, digest: Digest) -> bytes:
    raw = source.manifest(digest)
    if raw is None:
        raise UnavailableError(
            "BLOB_MISSING", "a document of the image is not there", where=source.describe(), expected=digest
        )
    if digest_of(raw) != digest:
        raise RefusedError(
            "MANIFEST_DIGEST", "a document has other bytes than its digest names", where=source.describe(),
            expected=digest, actual=digest_of(raw),
        )  # fmt: skip
    return raw
