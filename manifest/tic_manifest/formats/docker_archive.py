"""`manifest.json` of an archive of `docker save`, and the platform manifest that `docker load` makes of it.

Source: moby, image/spec/spec.md (v1.2); containerd, images/archive/importer.go.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, ValidationError

from tic_manifest.errors import RefusedError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.formats.strict_json import case_variants, first_error, load_json
from tic_manifest.model.base import Digest, Value
from tic_manifest.model.oci import DOCKER_CONFIG, DOCKER_MANIFEST, MAX_MANIFEST_BYTES, Descriptor

LAYER = "application/vnd.docker.image.rootfs.diff.tar"
MAX_IMAGES = 64
_KEYS = ("Config", "RepoTags", "Layers", "Parent", "LayerSources")

Name = Annotated[str, Field(min_length=1, max_length=400)]


class ArchivedImage(Value):
    """One image of an archive: members of the archive by name, the lowest layer first."""

    config: Name
    layers: Annotated[tuple[Name, ...], Field(max_length=1000)]


def parse_archive_manifest(raw: bytes, where: str) -> tuple[ArchivedImage, ...]:
    """The images that `manifest.json` lists; unknown keys are ignored, as readers do.

    Raises RefusedError: what `load_json` raises, JSON_CASE_VARIANT, SCHEMA.
    """
    data = load_json(raw, where, max_bytes=MAX_MANIFEST_BYTES)
    if not isinstance(data, list) or not 0 < len(data) <= MAX_IMAGES:
        raise _schema(where, "$", f"a list of 1 to {MAX_IMAGES} images")
    return tuple(_image(one, f"$[{number}]", where) for number, one in enumerate(data))


def _image(data: object, path: str, where: str) -> ArchivedImage:
    if not isinstance(data, dict):
        raise _schema(where, path, "an object")
    if variants := case_variants(data, _KEYS):
        raise RefusedError(
            "JSON_CASE_VARIANT",
            "a key that readers take for another",
            where=where,
            actual=f"{path}.{variants[0]}",
        )
    try:
        layers = data.get("Layers")
        named = tuple(layers) if isinstance(layers, list) else layers or ()
        return ArchivedImage.model_validate({"config": data.get("Config"), "layers": named})
    except ValidationError as error:
        raise _schema(where, path + first_error(error)[1:], "Config and Layers") from error


def manifest_of(config: bytes, diff_ids: Sequence[Digest], sizes: Sequence[int]) -> bytes:
    """The platform manifest of an image in an archive, byte for byte as `docker load` stores it.

    Layers lie unpacked in the archive, so a layer's digest is its diff id. `sizes` are in bytes.
    """
    layers = [_descriptor(LAYER, digest, size) for digest, size in zip(diff_ids, sizes, strict=True)]
    named = _descriptor(DOCKER_CONFIG, digest_of(config), len(config))
    data = {"schemaVersion": 2, "mediaType": DOCKER_MANIFEST, "config": named, "layers": layers}
    return json.dumps(data, separators=(",", ":")).encode()


def entry_of(raw: bytes) -> Descriptor:
    """The descriptor of a platform manifest that `manifest_of` made."""
    return Descriptor(media_type=DOCKER_MANIFEST, digest=digest_of(raw), size=len(raw))


def _descriptor(media_type: str, digest: Digest, size: int) -> dict[str, object]:
    return {"mediaType": media_type, "digest": digest, "size": size}


def _schema(where: str, path: str, expected: str) -> RefusedError:
    return RefusedError(
        "SCHEMA", "not what docker save writes", where=where, expected=expected, actual=path[:400]
    )
