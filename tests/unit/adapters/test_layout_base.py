"""The layers of a base stand in the image byte for byte, however the builder packed them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tic_manifest.adapters.layout_base import restore_base
from tic_manifest.adapters.layout_read import LayoutReader, read_built
from tic_manifest.errors import RefusedError

from tests.kit.layouts import Layout

BASE = {"usr/lib/libc.so": b"libc" * 2000}
OWN = {"opt/venv/x.py": b"x = 1\n"}


def one_layer(root: Path, encoding: str) -> Path:
    layout = Layout(root)
    layer, content = layout.layer(BASE, encoding)
    layout.save(layout.manifest(layout.config([content]), [layer]))
    return root


def on_base(root: Path, encoding: str, base: dict[str, bytes] = BASE) -> Path:
    layout = Layout(root)
    below, first = layout.layer(base, encoding)
    own, second = layout.layer(OWN, "zstd")
    image = layout.manifest(layout.config([first, second]), [below, own])
    image["platform"] = {"os": "linux", "architecture": "amd64"}
    layout.save(layout.index([image, layout.attestation(image)]))
    return root


def test_a_layer_that_was_packed_again_is_put_back(tmp_path: Path) -> None:
    base, image = one_layer(tmp_path / "base", "gzip"), on_base(tmp_path / "image", "zstd")
    before = read_built(image)
    restore_base(image, base)
    after = read_built(image)
    assert after.layers == (*read_built(base).layers, before.layers[1])
    assert after.config_digest == before.config_digest
    assert after.index_digest is not None
    assert LayoutReader().whole(image, after.index_digest) == after
    children = json.loads((image / "blobs/sha256" / after.index_digest.removeprefix("sha256:")).read_bytes())
    said = children["manifests"][1]["annotations"]["vnd.docker.reference.digest"]
    assert said == after.platform_digest


def test_the_result_does_not_depend_on_what_the_builder_knew(tmp_path: Path) -> None:
    base = one_layer(tmp_path / "base", "gzip")
    found = set()
    for encoding in ("gzip", "zstd", "tar"):
        image = on_base(tmp_path / encoding, encoding)
        restore_base(image, base)
        found.add(read_built(image).platform_digest)
    assert len(found) == 1


def test_an_image_on_another_base_is_refused(tmp_path: Path) -> None:
    base = one_layer(tmp_path / "base", "gzip")
    image = on_base(tmp_path / "image", "zstd", {"usr/lib/libc.so": b"other"})
    with pytest.raises(RefusedError) as caught:
        restore_base(image, base)
    assert caught.value.code == "BASE_LAYERS"
