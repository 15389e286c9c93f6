"""What stands in a layout folder that a builder wrote: read from bytes, hashed, never from a log."""

from __future__ import annotations

from pathlib import Path

from tic_manifest.adapters.layout import LayoutSource
from tic_manifest.adapters.store import hash_file
from tic_manifest.errors import RefusedError, TicError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.formats.oci import kind_of, parse_config, parse_index, parse_manifest
from tic_manifest.model.base import Digest
from tic_manifest.model.oci import ATTESTATION_KIND, MAX_MANIFEST_BYTES, Descriptor, Kind
from tic_manifest.model.receipt import Rebuild
from tic_manifest.ports import Built, ImageSource, Progress


class LayoutReader:
    """`ports.Layouts`."""

    def read(self, layout: Path) -> Built:
        """The one image of a layout; see `read_built`."""
        return read_built(layout)

    def restore_base(self, layout: Path, base: Path) -> None:
        """Make the first layers of a layout's image those of its base. Raises RefusedError BASE_LAYERS."""
        from tic_manifest.adapters.layout_base import restore_base

        restore_base(layout, base)

    def compare(self, earlier: tuple[Path, Digest], now: tuple[Path, Digest], progress: Progress) -> Rebuild:
        """What two builds of one lock differ in; see `layout_compare.compare`."""
        from tic_manifest.adapters.layout_compare import compare

        return compare(earlier, now, progress)

    def whole(self, layout: Path, digest: Digest) -> Built | None:
        """The image of a digest, when every byte of it is there as its digests say."""
        try:
            built = read_built(layout, digest)
        except TicError:
            return None
        blobs = layout / "blobs" / "sha256"
        good = all(_holds(blobs / one.removeprefix("sha256:"), one) for one in built.layers)
        return built if good else None


def read_built(root: Path, digest: Digest | None = None) -> Built:
    """The one image of a layout, or that of an image index or platform manifest `digest` in it.

    Raises RefusedError LAYOUT where there is not exactly one, MANIFEST_DIGEST or BLOB_MISSING.
    """
    source = LayoutSource(root)
    named = [one.digest for one in source.index_entries() if not _attached(one.annotations)]
    return read_image(source, digest or _only(named, source.describe()))


def read_image(source: ImageSource, top: Digest, architecture: str | None = None) -> Built:
    """The image of an image index or a platform manifest; of several platforms linux/`architecture`.

    Raises RefusedError LAYOUT, MANIFEST_DIGEST, BLOB_MISSING, and what a broken document gives.
    """
    raw = document(source, top)
    index = top if kind_of(raw) is Kind.INDEX else None
    if index:
        children = [one for one in parse_index(raw, top).value.manifests if not _attached(one.annotations)]
        fit = [one.digest for one in children if _fits(one, architecture)]
        top = _only(fit, source.describe())
        raw = document(source, top)
    image = parse_manifest(raw, top).value
    config = parse_config(document(source, image.config.digest), image.config.digest).value
    return Built(
        index_digest=index,
        platform_digest=top,
        config_digest=image.config.digest,
        layers=tuple(layer.digest for layer in image.layers),
        labels=dict(config.labels),
        platform=f"{config.os}/{config.architecture}",
    )


def _fits(one: Descriptor, architecture: str | None) -> bool:
    if architecture is None or one.platform is None:
        return True
    return (one.platform.os, one.platform.architecture) == ("linux", architecture)


def platform_digest(root: Path) -> Digest:
    """Digest of the platform manifest of the one image of a layout."""
    return read_built(root).platform_digest


def whole(root: Path) -> bool:
    """Whether a layout holds one image with every byte as its digests say."""
    try:
        built = read_built(root)
    except TicError:
        return False
    blobs = root / "blobs" / "sha256"
    return all(_holds(blobs / digest.removeprefix("sha256:"), digest) for digest in built.layers)


def _holds(path: Path, digest: Digest) -> bool:
    return path.is_file() and hash_file(path) == digest


def _attached(annotations: dict[str, str]) -> bool:
    return ATTESTATION_KIND in annotations


def _only(digests: list[Digest], where: str) -> Digest:
    if len(set(digests)) != 1:
        actual = ", ".join(digests) or "none"
        raise RefusedError("LAYOUT", "not exactly one image", where=where, expected="one", actual=actual)
    return digests[0]


def document(source: ImageSource, digest: Digest) -> bytes:
    """A document by its digest, hashed. Raises RefusedError BLOB_MISSING, MANIFEST_DIGEST."""
    raw = source.manifest(digest)
    if raw is None:  # a registry serves configs as blobs only
        raw = b"".join(source.blob(digest, MAX_MANIFEST_BYTES) or ()) or None
    if raw is None:
        raise RefusedError(
            "BLOB_MISSING", "a document is not there", where=source.describe(), expected=digest
        )
    if digest_of(raw) != digest:
        raise RefusedError(
            "MANIFEST_DIGEST",
            "a document is not the one its digest names",
            where=source.describe(),
            expected=digest,
            actual=digest_of(raw),
        )
    return raw
