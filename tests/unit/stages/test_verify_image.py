"""The image half of `verify`: attack table 1b and scenarios S01 to S15 on real layouts (rules/image-verify.md)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.adapters.blobs import read_blobs
from tic_manifest.adapters.layout import LayoutSource
from tic_manifest.errors import PersonError, UnavailableError
from tic_manifest.formats.reference import parse_reference
from tic_manifest.model.delivery import VerifyReport
from tic_manifest.model.policy import Policy
from tic_manifest.model.verdict import Check, Outcome, Status
from tic_manifest.stages.verify import Options, Tools, verify

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from layouts import Layout, compact, digest_of, layers_of, tar
from quiet import Quiet


def agree(*_: Any) -> tuple[list[Check], list[Any]]:
    return [Check(id="judged", status=Status.PASS)], []


def judge(layout: Layout, digest: str, **options: Any) -> VerifyReport:
    reference = parse_reference(f"oci:{layout.root}@{digest}")
    tools = Tools(reader=read_blobs, judge=agree, progress=Quiet())
    return verify(LayoutSource(layout.root), reference, Options(**options), tools)


def policy(**fields: Any) -> Policy:
    return Policy(schema="tic/policy/v1", **fields)


def codes(report: VerifyReport) -> set[str]:
    return {one.code for one in report.findings if not one.note}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "layout")


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "tar"])
def test_a_whole_image_lacks_only_its_delivery(layout: Layout, encoding: str) -> None:
    report = judge(layout, layout.save(layout.image(encoding)))
    assert codes(report) == {"DELIVERY_MISSING"}
    assert report.outcome is Outcome.INCONCLUSIVE
    rows = {check.id: check.status for check in report.checks}
    assert rows["image.documents"] is rows["image.presence"] is rows["image.bytes"] is Status.PASS
    assert report.depth == "content" and report.authenticity == "not checked"


def test_identity_never_claims_more_and_says_what_it_left(layout: Layout) -> None:
    image = layout.image()
    layout.flip(layers_of(layout, image)[0]["digest"])
    report = judge(layout, layout.save(image), depth="identity")
    assert codes(report) == {"DELIVERY_MISSING"}
    row = next(check for check in report.checks if check.id == "image.bytes")
    assert (row.status, row.state.value) == (Status.NOT_RUN, "out_of_scope")
    assert report.not_read[0].startswith("3 blobs, ")
    assert "content" not in report.model_dump_json()


def test_an_index_maps_to_its_platform_and_an_attestation_is_none(layout: Layout) -> None:
    image = layout.image()
    index = layout.index([image, layout.attestation(image)])
    report = judge(layout, layout.save(index))
    assert codes(report) == {"DELIVERY_MISSING"}
    assert report.subjects[0] == f"image index {index['digest']}"
    assert report.subjects[1].startswith(f"platform manifest {image['digest']} (linux/amd64), config sha256:")
    assert len(report.subjects) == 2


def flip_layer(layout: Layout) -> str:
    image = layout.image()
    layout.flip(layers_of(layout, image)[1]["digest"])
    return layout.save(image)


def flip_attestation_blob(layout: Layout) -> str:
    image = layout.image()
    attestation = layout.attestation(image)
    layout.flip(layers_of(layout, attestation)[0]["digest"], at=5)
    return layout.save(layout.index([image, attestation]))


def flip_config(layout: Layout) -> str:
    image = layout.image()
    layout.flip(json.loads(layout.path(image["digest"]).read_bytes())["config"]["digest"])
    return layout.save(image)


def swap_manifest(layout: Layout) -> str:
    image, other = layout.image(), layout.image(env=("PATH=/bin",))
    layout.path(image["digest"]).write_bytes(layout.path(other["digest"]).read_bytes())
    return layout.save(image)


def swap_child(layout: Layout) -> str:
    image, other = layout.image(), layout.image(env=("PATH=/bin",))
    layout.path(image["digest"]).write_bytes(layout.path(other["digest"]).read_bytes())
    return layout.save(layout.index([image]))


def drop_layer(layout: Layout) -> str:
    image = layout.image()
    layout.path(layers_of(layout, image)[0]["digest"]).unlink()
    return layout.save(image)


def drop_child(layout: Layout) -> str:
    image = layout.image()
    layout.path(image["digest"]).unlink()
    return layout.save(layout.index([image]))


def drop_config(layout: Layout) -> str:
    image = layout.image()
    layout.path(json.loads(layout.path(image["digest"]).read_bytes())["config"]["digest"]).unlink()
    return layout.save(image)


def with_layer(layout: Layout, **changes: Any) -> str:
    layer, diff_id = layout.layer({"a": b"a" * 9999})
    return layout.save(layout.manifest(layout.config([diff_id]), [{**layer, **changes}]))


def size_more(layout: Layout) -> str:
    return with_layer(layout, size=99999)


def size_less(layout: Layout) -> str:
    return with_layer(layout, size=7)


def child_size(layout: Layout) -> str:
    image = layout.image()
    return layout.save(layout.index([{**image, "size": image["size"] + 7}]))


def lie_about_diff_id(layout: Layout) -> str:
    layer, _ = layout.layer({"a": b"a"})
    return layout.save(layout.manifest(layout.config([digest_of(b"other")]), [layer]))


def lie_at_second_place(layout: Layout) -> str:
    layer, diff_id = layout.layer({"a": b"a"})
    return layout.save(layout.manifest(layout.config([diff_id, digest_of(b"other")]), [layer, layer]))


def more_diff_ids(layout: Layout) -> str:
    layer, diff_id = layout.layer({"a": b"a"})
    return layout.save(layout.manifest(layout.config([diff_id, diff_id]), [layer]))


def zstd_called_gzip(layout: Layout) -> str:
    layer, diff_id = layout.layer({"a": b"a"}, "zstd")
    wrong = {**layer, "mediaType": layer["mediaType"].replace("zstd", "gzip")}
    return layout.save(layout.manifest(layout.config([diff_id]), [wrong]))


def cut_gzip(layout: Layout) -> str:
    raw = tar({"a": b"a" * 9999})
    import gzip

    layer = layout.blob(gzip.compress(raw)[:-6], "application/vnd.oci.image.layer.v1.tar+gzip")
    return layout.save(layout.manifest(layout.config([digest_of(raw)]), [layer]))


def wrong_platform(layout: Layout) -> str:
    image = layout.image()
    return layout.save(layout.index([{**image, "platform": {"os": "linux", "architecture": "arm64"}}]))


def variable_twice(layout: Layout) -> str:
    return layout.save(layout.image(env=("PATH=/a", "PATH=/b")))


FAILS = [
    (flip_layer, "BLOB_DIGEST"),
    (flip_attestation_blob, "BLOB_DIGEST"),
    (flip_config, "BLOB_DIGEST"),
    (swap_manifest, "MANIFEST_DIGEST"),
    (swap_child, "MANIFEST_DIGEST"),
    (drop_layer, "BLOB_MISSING"),
    (drop_child, "BLOB_MISSING"),
    (drop_config, "BLOB_MISSING"),
    (size_more, "DESCRIPTOR_SIZE"),
    (size_less, "DESCRIPTOR_SIZE"),
    (child_size, "DESCRIPTOR_SIZE"),
    (lie_about_diff_id, "DIFFID"),
    (lie_at_second_place, "DIFFID"),
    (more_diff_ids, "DIFFID"),
    (zstd_called_gzip, "LAYER_ENCODING/mismatch"),
    (cut_gzip, "LAYER_ENCODING/undecodable"),
    (wrong_platform, "PLATFORM_MISMATCH"),
    (variable_twice, "ENV_INJECTION"),
]


@pytest.mark.parametrize(("spoil", "code"), FAILS, ids=[one.__name__ for one, _ in FAILS])
def test_a_spoiled_image_fails_for_the_right_reason(layout: Layout, spoil: Any, code: str) -> None:
    report = judge(layout, spoil(layout))
    assert codes(report) - {"DELIVERY_MISSING"} == {code}
    assert report.exit_code == 1


SWAP = b'"layers":['
REFUSALS = [
    ("twice", lambda raw: raw.replace(SWAP, b'"layers":[],"layers":['), "JSON_DUPLICATE_KEY"),
    ("twice escaped", lambda raw: raw.replace(SWAP, b'"layer\\u0073":[],"layers":['), "JSON_DUPLICATE_KEY"),
    ("case", lambda raw: raw.replace(SWAP, b'"Layers":[],"layers":['), "JSON_CASE_VARIANT"),
    ("long s", lambda raw: raw.replace(SWAP, '"layer\u017f":[],"layers":['.encode()), "JSON_CASE_VARIANT"),
    ("nested case", lambda raw: raw.replace(b'"digest":', b'"Digest":"x","digest":', 1), "JSON_CASE_VARIANT"),
    ("confusion", lambda raw: raw.replace(SWAP, b'"manifests":[],"layers":['), "MEDIATYPE_CONFUSION"),
    ("schema 1", lambda raw: raw.replace(SWAP, b'"fsLayers":[],"layers":['), "MEDIATYPE_CONFUSION"),
    ("type", lambda raw: raw.replace(b"image.manifest", b"image.index", 1), "MEDIATYPE_CONFUSION"),
    ("size text", lambda raw: raw.replace(b'"size":', b'"size":"1","was":', 1), "SCHEMA"),
    ("size true", lambda raw: raw.replace(b'"size":', b'"size":true,"was":', 1), "SCHEMA"),
    ("version", lambda raw: raw.replace(b'"schemaVersion":2', b'"schemaVersion":"2"'), "SCHEMA"),
    ("short digest", lambda raw: raw.replace(b'"digest":"sha256:', b'"digest":"sha256:x', 1), "SCHEMA"),
    ("depth", lambda raw: raw[:-1] + b',"x":' + b"[" * 40 + b"]" * 40 + b"}", "JSON_DEPTH"),
]


@pytest.mark.parametrize(("edit", "code"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
@pytest.mark.parametrize("inside", [False, True], ids=["root", "child"])
def test_a_document_that_two_readers_read_differently_is_refused(
    layout: Layout, edit: Any, code: str, inside: bool
) -> None:
    image = layout.image(edit=edit)
    report = judge(layout, layout.save(layout.index([image]) if inside else image))
    assert codes(report) - {"DELIVERY_MISSING"} == {code}
    assert (report.outcome, report.exit_code) == (Outcome.REFUSED, 4)


def test_a_case_variant_in_a_config_is_refused(layout: Layout) -> None:
    layer, diff_id = layout.layer({"a": b"a"})
    data = {"architecture": "amd64", "os": "linux", "config": {"Env": [], "env": ["LD_PRELOAD=/x"]}}
    raw = compact({**data, "rootfs": {"type": "layers", "diff_ids": [diff_id]}})
    image = layout.manifest(layout.blob(raw, "application/vnd.oci.image.config.v1+json"), [layer])
    assert codes(judge(layout, layout.save(image))) >= {"JSON_CASE_VARIANT"}


def test_an_unknown_key_is_ignored_and_noted(layout: Layout) -> None:
    image = layout.image(edit=lambda raw: raw[:-1] + b',"x-new":1}')
    report = judge(layout, layout.save(image))
    noted = [one for one in report.findings if one.code == "UNKNOWN_KEY"]
    assert noted[0].note and noted[0].actual == ["$.x-new"]
    assert codes(report) == {"DELIVERY_MISSING"}


@pytest.mark.parametrize("env", ["LD_PRELOAD=/x.so", "PYTHONPATH=/x", "LD_LIBRARY_PATH=/x"])
def test_a_variable_that_loads_code_is_undecided_without_the_lock(layout: Layout, env: str) -> None:
    report = judge(layout, layout.save(layout.image(env=(env,))))
    assert codes(report) == {"DELIVERY_MISSING", "ENV_INJECTION"}
    assert report.exit_code == 3


def test_a_variable_that_the_policy_allows_with_this_value_passes(layout: Layout) -> None:
    digest = layout.save(layout.image(env=("LD_LIBRARY_PATH=/usr/local/nvidia/lib",)))
    allowed = policy(env={"LD_LIBRARY_PATH": "/usr/local/nvidia/lib"})
    assert codes(judge(layout, digest, policy=allowed)) == {"DELIVERY_MISSING"}
    other = judge(layout, digest, policy=policy(env={"LD_LIBRARY_PATH": "/other"}))
    assert other.exit_code == 1 and "ENV_INJECTION" in codes(other)


def test_the_kind_of_a_digest_is_told_with_the_image_that_it_is_part_of(layout: Layout) -> None:
    image = layout.image()
    digest = layout.save(layout.index([image]))
    manifest = json.loads(layout.path(image["digest"]).read_bytes())
    for part, variant in ((manifest["config"], "config"), (manifest["layers"][0], "layer")):
        with pytest.raises(PersonError) as raised:
            judge(layout, part["digest"])
        assert raised.value.code == f"DIGEST_KIND/{variant}"
        assert image["digest"] in raised.value.remedy
    assert judge(layout, digest).exit_code == 3


def test_an_absent_digest_is_not_found(layout: Layout) -> None:
    layout.save(layout.image())
    with pytest.raises(UnavailableError) as raised:
        judge(layout, digest_of(b"nothing"))
    assert raised.value.code == "NOT_FOUND"


def test_an_unmarked_unknown_child_and_two_children_of_one_platform_are_refused(layout: Layout) -> None:
    image, other = layout.image(), layout.image(env=("PATH=/bin",))
    odd = {**image, "platform": {"os": "unknown", "architecture": "unknown"}}
    for children in (
        [odd],
        [image, other],
        [image, {**layout.index([image]), "platform": image["platform"]}],
    ):
        report = judge(layout, layout.save(layout.index(children)))
        assert report.exit_code == 4 and "SCHEMA" in codes(report), children


def test_every_reason_is_listed(layout: Layout) -> None:
    image = layout.image()
    first, second = layers_of(layout, image)
    layout.flip(first["digest"])
    layout.path(second["digest"]).unlink()
    report = judge(layout, layout.save(image))
    assert codes(report) == {"BLOB_DIGEST", "BLOB_MISSING", "DELIVERY_MISSING"}


def test_a_link_or_a_pipe_in_place_of_a_blob_is_refused(layout: Layout, tmp_path: Path) -> None:
    import os

    from tic_manifest.errors import RefusedError

    image = layout.image()
    path = layout.path(layers_of(layout, image)[0]["digest"])
    data = path.read_bytes()
    (tmp_path / "outside").write_bytes(data)
    for make in (lambda: path.symlink_to(tmp_path / "outside"), lambda: os.mkfifo(path)):
        path.unlink()
        make()
        with pytest.raises(RefusedError) as raised:
            judge(layout, layout.save(image))
        assert raised.value.code == "LAYOUT"
