"""Archives as `docker save` writes them, in both forms, made of a layout of the kit."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from layouts import Layout, compact, layers_of

DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar"


def write_tar(path: Path, files: Mapping[str, bytes], links: Mapping[str, str] | None = None) -> Path:
    """A tar file with these members, in order."""
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return path


def parts_of(layout: Layout, image: Mapping[str, Any]) -> tuple[bytes, list[bytes], list[str]]:
    """Config, unpacked layers (of gzip ones) and diff ids of a platform manifest."""
    manifest = json.loads(layout.path(image["digest"]).read_bytes())
    config = layout.path(manifest["config"]["digest"]).read_bytes()
    raw = [gzip.decompress(layout.path(one["digest"]).read_bytes()) for one in layers_of(layout, image)]
    return config, raw, json.loads(config)["rootfs"]["diff_ids"]


def old_form(layout: Layout, image: Mapping[str, Any]) -> dict[str, bytes]:
    """Members of an archive with `manifest.json` alone."""
    config, raw, diff_ids = parts_of(layout, image)
    name = json.loads(layout.path(image["digest"]).read_bytes())["config"]["digest"][7:]
    layers = {f"{diff_id[7:]}.tar": data for diff_id, data in zip(diff_ids, raw, strict=True)}
    listed = [{"Config": f"{name}.json", "RepoTags": ["team/image:latest"], "Layers": list(layers)}]
    return {**layers, f"{name}.json": config, "manifest.json": compact(listed)}


def new_form(layout: Layout, image: Mapping[str, Any]) -> dict[str, bytes]:
    """Members of an archive that is a layout as well, its layers unpacked."""
    config, raw, diff_ids = parts_of(layout, image)
    named = json.loads(layout.path(image["digest"]).read_bytes())["config"]
    layers = [
        {"mediaType": DOCKER_LAYER, "digest": digest, "size": len(data)}
        for digest, data in zip(diff_ids, raw, strict=True)
    ]
    kind = "application/vnd.docker.distribution.manifest.v2+json"
    made = layout.blob(
        compact({"schemaVersion": 2, "mediaType": kind, "config": {
            "mediaType": "application/vnd.docker.container.image.v1+json", "digest": named["digest"],
            "size": named["size"]}, "layers": layers}), kind)  # fmt: skip
    manifest = layout.path(made["digest"]).read_bytes()
    blobs = dict(zip(diff_ids, raw, strict=True))
    blobs |= {made["digest"]: manifest, named["digest"]: config}
    entry = {"mediaType": kind, "digest": made["digest"], "size": len(manifest)}
    place = {digest: f"blobs/sha256/{digest[7:]}" for digest in blobs}
    listed = [
        {"Config": place[named["digest"]], "RepoTags": None, "Layers": [place[one] for one in diff_ids]}
    ]
    return {
        **{place[digest]: data for digest, data in blobs.items()},
        "index.json": compact({"schemaVersion": 2, "manifests": [entry]}),
        "manifest.json": compact(listed), "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
    }  # fmt: skip
