"""Puts the layers of a base back into an image that was built on it, byte for byte.

A builder knows layers by their content and may write one that it met before in another compression. What
stands in the base by digest must stand in the image by the same digest, whatever the builder's cache held.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from tic_manifest.adapters.layout import LayoutSource
from tic_manifest.adapters.layout_read import document, read_built
from tic_manifest.errors import RefusedError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.formats.oci import parse_config
from tic_manifest.model.base import Digest
from tic_manifest.model.oci import ATTESTATION_OF


def restore_base(layout: Path, base: Path) -> None:
    """Make the first layers of the one image in `layout` those of the one image in `base`.

    Raises RefusedError BASE_LAYERS where their contents differ.
    """
    image, below = read_built(layout), read_built(base)
    if image.layers[: len(below.layers)] == below.layers:
        return
    count = len(below.layers)
    if _contents(layout, image.config_digest)[:count] != _contents(base, below.config_digest):
        raise RefusedError(
            "BASE_LAYERS",
            "the image does not begin with the layers of its base",
            where=str(layout),
            expected=", ".join(below.layers),
            actual=", ".join(image.layers),
        )
    manifest = _json(layout, image.platform_digest)
    manifest["layers"][:count] = _json(base, below.platform_digest)["layers"]
    for digest in below.layers:
        _link(base, layout, digest)
    moved = {image.platform_digest: _put(layout, manifest)}
    if image.index_digest is not None:
        moved[image.index_digest] = _put(layout, _renamed(_json(layout, image.index_digest), moved))
    index = _renamed(json.loads((layout / "index.json").read_bytes()), moved)
    (layout / "index.json").write_bytes(_bytes(index))
    _drop(layout, [*moved, *set(image.layers[:count]) - set(below.layers)])


def _contents(layout: Path, config: Digest) -> tuple[Digest, ...]:
    return parse_config(document(LayoutSource(layout), config), config).value.diff_ids


def _json(layout: Path, digest: Digest) -> Any:
    return json.loads(document(LayoutSource(layout), digest))


def _renamed(index: Any, moved: dict[Digest, tuple[Digest, int]]) -> Any:
    """An index whose entries, and the annotations of attached ones, name the new documents."""
    for entry in index["manifests"]:
        if entry["digest"] in moved:
            entry["digest"], entry["size"] = moved[entry["digest"]]
        notes = entry.get("annotations") or {}
        if notes.get(ATTESTATION_OF) in moved:
            notes[ATTESTATION_OF] = moved[notes[ATTESTATION_OF]][0]
    return index


def _put(layout: Path, data: Any) -> tuple[Digest, int]:
    raw = _bytes(data)
    _place(layout, digest_of(raw)).write_bytes(raw)
    return digest_of(raw), len(raw)


def _bytes(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


def _link(source: Path, target: Path, digest: Digest) -> None:
    if not _place(target, digest).exists():
        try:
            os.link(_place(source, digest), _place(target, digest))
        except OSError:
            shutil.copyfile(_place(source, digest), _place(target, digest))


def _drop(layout: Path, digests: list[Digest]) -> None:
    for digest in digests:
        _place(layout, digest).unlink(missing_ok=True)


def _place(layout: Path, digest: Digest) -> Path:
    return layout / "blobs" / "sha256" / digest.removeprefix("sha256:")
