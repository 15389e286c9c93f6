"""What an image stands on: an image by digest out of a layout, or a root of Debian packages."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from tic_manifest.adapters.debian import DebianBuilder
from tic_manifest.adapters.layout import LayoutSource
from tic_manifest.adapters.layout_read import read_built, whole
from tic_manifest.errors import PersonError, UnavailableError
from tic_manifest.formats.reference import parse_reference, require_digest
from tic_manifest.model.base import Digest
from tic_manifest.model.lock import DebianRoot, ImageRoot, Root
from tic_manifest.model.oci import INDEX, MANIFEST
from tic_manifest.model.recipe import DebianBase
from tic_manifest.ports import Built, Store


class AnyRoots:
    """`ports.Roots`."""

    def __init__(self, debian: DebianBuilder) -> None:
        self._debian = debian

    def resolve(self, wanted: str | DebianBase, architecture: str, store: Store) -> Root:
        """Everything that makes the root, by digest, each file in the store.

        Raises PersonError MUTABLE_REF, DIGEST_KIND, PLATFORM_UNCOVERED; UnavailableError.
        """
        if isinstance(wanted, DebianBase):
            return self._debian.resolve(wanted.debian, architecture, store)
        reference = require_digest(parse_reference(wanted))
        if reference.layout is None or reference.digest is None:
            raise UnavailableError(
                "BASE_IMAGE_GONE",
                "base images are taken from an OCI layout by this version",
                where=wanted,
                expected="oci:DIR@sha256:…",
                remedy="copy the image to a layout: skopeo copy docker://… oci:DIR",
            )
        layout = Path(reference.layout)
        built = read_built(layout, reference.digest)
        _check_platform(built, architecture, wanted)
        for digest in _blobs(built):
            _put(LayoutSource(layout), digest, store, layout)
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


def _blobs(built: Built) -> list[Digest]:
    return list(dict.fromkeys((built.platform_digest, built.config_digest, *built.layers)))


def _put(source: LayoutSource, digest: Digest, store: Store, layout: Path) -> None:
    if store.path(digest) is None:
        with (layout / "blobs" / "sha256" / digest.removeprefix("sha256:")).open("rb") as stream:
            store.put(stream, expected=digest)


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
        entry = {"mediaType": MANIFEST, "digest": root.platform_digest, "size": _size(store, root)}
        (layout / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}
        (layout / "index.json").write_text(json.dumps(index))
        shutil.rmtree(target, ignore_errors=True)
        layout.rename(target)


def _size(store: Store, root: ImageRoot) -> int:
    path = store.path(root.platform_digest)
    return path.stat().st_size if path else 0
