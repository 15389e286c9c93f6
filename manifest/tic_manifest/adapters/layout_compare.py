"""Two builds of one lock against each other, from their bytes: digests, diff ids, the paths that differ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tic_manifest.adapters.blobs import read_trees
from tic_manifest.adapters.layout import LayoutSource
from tic_manifest.adapters.layout_read import document, read_image
from tic_manifest.formats.oci import layer_encoding, parse_config, parse_manifest
from tic_manifest.model.base import Digest
from tic_manifest.model.files import FileEntry, LayerTree
from tic_manifest.model.oci import Blob
from tic_manifest.model.receipt import Differing, Rebuild
from tic_manifest.ports import Progress

MAX_LISTED = 50


class _Image:
    """The documents of one image of a layout."""

    def __init__(self, layout: Path, digest: Digest) -> None:
        self.source = LayoutSource(layout)
        self.built = read_image(self.source, digest)
        raw = document(self.source, self.built.platform_digest)
        self.manifest = parse_manifest(raw, self.built.platform_digest).value
        config = document(self.source, self.built.config_digest)
        self.config = parse_config(config, self.built.config_digest).value

    def tree(self, number: int, progress: Progress) -> LayerTree:
        """What layer `number`, from 1, holds; empty where there is none."""
        if number > len(self.manifest.layers):
            return LayerTree(number=number)
        layer = self.manifest.layers[number - 1]
        blob = Blob(descriptor=layer, encoding=layer_encoding(layer.media_type), layer=number)
        _, trees = read_trees(self.source, [blob], progress)
        return trees[0] or LayerTree(number=number)


def compare(earlier: tuple[Path, Digest], now: tuple[Path, Digest], progress: Progress) -> Rebuild:
    """The earlier build as it is told in the receipt of the later one; of the paths that differ the first 50.

    Raises RefusedError for a layout that cannot be read.
    """
    first, second = _Image(*earlier), _Image(*now)
    differing = list(_differing(first, second, progress))
    return Rebuild(
        index_digest=first.built.index_digest or first.built.platform_digest,
        platform_digest=first.built.platform_digest,
        config_digest=first.built.config_digest,
        layers=first.built.layers,
        diff_ids=first.config.diff_ids,
        differing=tuple(differing[:MAX_LISTED]),
        count=len(differing),
        only_pyc=bool(differing) and all(one.path.endswith(".pyc") for one in differing),
    )


def _differing(first: _Image, second: _Image, progress: Progress) -> Iterator[Differing]:
    ours, theirs = first.config.diff_ids, second.config.diff_ids
    for number in range(1, max(len(ours), len(theirs)) + 1):
        if ours[number - 1 : number] != theirs[number - 1 : number]:
            left, right = first.tree(number, progress).entries, second.tree(number, progress).entries
            for path in sorted(left.keys() | right.keys()):
                kind = _kind(left.get(path), right.get(path))
                if kind:
                    yield Differing(path=path, layer=number, kind=kind)


def _kind(left: FileEntry | None, right: FileEntry | None) -> str:
    if left is None or right is None:
        return "only later" if left is None else "only earlier"
    if (left.kind, left.target) != (right.kind, right.target):
        return "kind"
    return "content" if left.digest != right.digest else "mode" if left.mode != right.mode else ""
