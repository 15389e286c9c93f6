"""What an image stands on: an image by digest from a layout or a registry, or a root of Debian packages."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

from tic_manifest.adapters.debian import DebianBuilder
from tic_manifest.adapters.layout_read import document, read_image, whole
from tic_manifest.adapters.places import Mirrored, StoreSource
from tic_manifest.errors import PersonError, RefusedError, UnavailableError
from tic_manifest.formats.oci import kind_of, parse_manifest
from tic_manifest.formats.reference import parse_reference, require_digest, require_store
from tic_manifest.model.base import Digest
from tic_manifest.model.lock import DebianRoot, ImageRoot, Root
from tic_manifest.model.oci import INDEX, Descriptor, ImageReference, Kind
from tic_manifest.model.recipe import DebianBase
from tic_manifest.ports import Built, ImageSource, Progress, Step, Store

SourceOf = Callable[[ImageReference], ImageSource]


class AnyRoots:
    """`ports.Roots`; `source_of` opens the place that a reference names."""

    def __init__(self, debian: DebianBuilder, source_of: SourceOf, progress: Progress) -> None:
        self._debian, self._source_of, self._progress = debian, source_of, progress

    def resolve(self, wanted: str | DebianBase, architecture: str, store: Store) -> Root:
        """Everything that makes the root, by digest, each file in the store.

        Raises PersonError MUTABLE_REF, DIGEST_KIND, PLATFORM_UNCOVERED; UnavailableError BASE_IMAGE_GONE.
        """
        if isinstance(wanted, DebianBase):
            return self._debian.resolve(wanted.debian, architecture, store)
        reference = require_digest(require_store(parse_reference(wanted)))
        digest = str(reference.digest)
        source = self._source(reference, store)
        _check_kind(source, digest, wanted)
        built = read_image(source, digest, architecture)
        _check_platform(built, architecture, wanted)
        self._keep(source, built, store)
        return ImageRoot(
            reference=wanted,
            index_digest=built.index_digest,
            platform_digest=built.platform_digest,
            config_digest=built.config_digest,
            layers=built.layers,
        )

    def make(self, root: Root, store: Store, folder: Path, scripts: Path) -> tuple[Path, Digest]:
        """The root as an OCI layout below `folder`; where, and its platform manifest digest."""
        if isinstance(root, DebianRoot):
            return self._debian.make(root, store, folder, scripts)
        target = folder / root.platform_digest.removeprefix("sha256:")
        if not whole(target):
            _lay_out(root, store, target)
        return target, root.platform_digest

    def _source(self, reference: ImageReference, store: Store) -> ImageSource:
        """Where the base lies; where it is gone from there, the store that an earlier lock filled."""
        kept = StoreSource(store)
        try:
            named = self._source_of(reference)
        except PersonError:
            if kept.manifest(str(reference.digest)) is None:
                raise
            named = kept
        return Mirrored([kept, named])

    def _keep(self, source: ImageSource, built: Built, store: Store) -> None:
        if built.index_digest is not None:
            _put(iter([document(source, built.index_digest)]), built.index_digest, store)
        raw = document(source, built.platform_digest)
        image = parse_manifest(raw, built.platform_digest).value
        _put(iter([raw]), built.platform_digest, store)
        _put(iter([document(source, built.config_digest)]), built.config_digest, store)
        missing = [one for one in image.layers if store.path(one.digest) is None]
        with self._progress.step("base image", sum(one.size for one in missing)) as step:
            for layer in missing:
                _put(_pieces(source, layer, step), layer.digest, store)


def _pieces(source: ImageSource, layer: Descriptor, step: Step) -> Iterator[bytes]:
    pieces = source.blob(layer.digest, layer.size)
    if pieces is None:
        raise UnavailableError(
            "BASE_IMAGE_GONE",
            "a layer of the base image is not there",
            where=source.describe(),
            expected=layer.digest,
            actual="absent",
        )
    for piece in pieces:
        step.advance(len(piece))
        yield piece


class _Stream:
    """Pieces as a stream to read from."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def read(self, amount: int = -1) -> bytes:
        """The next piece, whatever its length; empty at the end."""
        return next((piece for piece in self._pieces if piece), b"")


def _put(pieces: Iterator[bytes], digest: Digest, store: Store) -> None:
    if store.path(digest) is None:
        try:
            store.put(cast("IO[bytes]", _Stream(pieces)), expected=digest)
        except RefusedError as error:
            raise RefusedError(
                "BLOB_DIGEST", "a blob of the base image is not the one its digest names",
                expected=error.expected, actual=error.actual,
            ) from error  # fmt: skip


def _check_kind(source: ImageSource, digest: Digest, wanted: str) -> None:
    raw = source.manifest(digest)
    if raw is None:
        raise UnavailableError(
            "BASE_IMAGE_GONE", "the base image is not there", where=wanted, expected=digest, actual="absent"
        )
    kind = kind_of(raw)
    if kind not in {Kind.INDEX, Kind.MANIFEST}:
        raise PersonError(
            "DIGEST_KIND",
            "the base is named by the digest of something else",
            where=wanted,
            expected="the digest of an image index or a platform manifest",
            actual=f"a {kind.value}",
        )


def _check_platform(built: Built, architecture: str, wanted: str) -> None:
    if built.platform != f"linux/{architecture}":
        raise PersonError(
            "PLATFORM_UNCOVERED",
            "the base image is for another platform",
            where=wanted,
            expected=f"linux/{architecture}",
            actual=built.platform,
        )


def _lay_out(root: ImageRoot, store: Store, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".root-", dir=target.parent) as scratch:
        layout = Path(scratch) / "layout"
        for digest in dict.fromkeys((root.platform_digest, root.config_digest, *root.layers)):
            name = digest.removeprefix("sha256:")
            store.place(digest, layout / "blobs" / "sha256" / name, f"{root.reference}: {digest}")
        raw = (layout / "blobs" / "sha256" / root.platform_digest.removeprefix("sha256:")).read_bytes()
        kind = parse_manifest(raw, root.platform_digest).value.media_type
        entry = {"mediaType": kind, "digest": root.platform_digest, "size": len(raw)}
        (layout / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}
        (layout / "index.json").write_text(json.dumps(index))
        shutil.rmtree(target, ignore_errors=True)
        layout.rename(target)
