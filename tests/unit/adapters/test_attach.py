"""Attaching a delivery manifest to a layout: found again, judged again, idempotent, whole or not at all."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.adapters.attach import attach
from tic_manifest.adapters.layout import LayoutSource
from tic_manifest.errors import RefusedError, UnavailableError
from tic_manifest.model.oci import Descriptor
from tic_manifest.stages.attached import EvidenceFiles, find_attached, head_statement

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from layouts import Layout, digest_of
from statements import EVIDENCE, delivery, descriptor


@pytest.fixture
def made(tmp_path: Path) -> tuple[Layout, Descriptor, Descriptor]:
    layout = Layout(tmp_path / "layout")
    image = layout.image()
    index = layout.index([image, layout.attestation(image)])
    layout.save(index, "latest")
    return layout, descriptor(image), descriptor(index)


def everything(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_what_is_attached_is_found_for_platform_and_index(made: Any, tmp_path: Path) -> None:
    layout, image, index = made
    log = tmp_path / "build.log"
    log.write_bytes(b"log" * 1000)
    evidence = {**EVIDENCE, "build.log": log}
    raw = delivery(image.digest, index.digest, evidence)
    artifacts = attach(layout.root, image, index, raw, evidence)
    assert [one.artifact_type for one in artifacts] == [
        "application/vnd.in-toto+json", "application/vnd.tic-manifest.evidence.v1", "application/vnd.in-toto+json",
    ]  # fmt: skip
    source = LayoutSource(layout.root)
    for subject in (image.digest, index.digest):
        found = find_attached(source, [subject])
        assert list(found.candidates) == [digest_of(raw)]
        assert not found.findings and not found.notes
    head = head_statement(source, image.digest)
    assert head is not None and head.digest == digest_of(raw)
    files = EvidenceFiles(source, head.value)
    assert dict(files) == {**EVIDENCE, "build.log": log.read_bytes()}


def test_attaching_the_same_again_changes_nothing(made: Any) -> None:
    layout, image, index = made
    raw = delivery(image.digest, index.digest, EVIDENCE)
    attach(layout.root, image, index, raw, EVIDENCE)
    before = everything(layout.root)
    attach(layout.root, image, index, raw, EVIDENCE)
    assert everything(layout.root) == before


def test_entries_of_others_stay_and_a_later_delivery_is_the_head(made: Any) -> None:
    layout, image, index = made
    first = delivery(image.digest, index.digest, EVIDENCE)
    attach(layout.root, image, index, first, EVIDENCE)
    later = {**EVIDENCE, "approval.json": b"{}"}
    second = delivery(image.digest, index.digest, later, supersedes=digest_of(first))
    attach(layout.root, image, index, second, later)
    source = LayoutSource(layout.root)
    assert source.resolve("latest") == index.digest
    found = find_attached(source, [image.digest])
    assert set(found.candidates) == {digest_of(first), digest_of(second)}
    head = head_statement(source, image.digest)
    assert head is not None and head.digest == digest_of(second)


def test_a_damaged_blob_of_an_earlier_try_is_written_again(made: Any) -> None:
    layout, image, index = made
    raw = delivery(image.digest, index.digest, EVIDENCE)
    layout.path(digest_of(raw)).write_bytes(b"half")
    attach(layout.root, image, index, raw, EVIDENCE)
    assert layout.path(digest_of(raw)).read_bytes() == raw


def test_a_file_of_evidence_that_is_gone_leaves_index_json_as_it_was(made: Any, tmp_path: Path) -> None:
    layout, image, index = made
    before = (layout.root / "index.json").read_bytes()
    with pytest.raises(UnavailableError) as raised:
        attach(layout.root, image, index, delivery(image.digest, None, {}), {"gone": tmp_path / "gone"})
    assert raised.value.code == "BLOB_MISSING"
    assert (layout.root / "index.json").read_bytes() == before
    assert not list(layout.root.rglob(".new-*"))


def test_changed_evidence_is_not_in_the_mapping(made: Any) -> None:
    layout, image, index = made
    raw = delivery(image.digest, index.digest, EVIDENCE)
    attach(layout.root, image, index, raw, EVIDENCE)
    layout.flip(digest_of(EVIDENCE["lock.json"]), at=0)
    source = LayoutSource(layout.root)
    head = head_statement(source, image.digest)
    assert head is not None
    files = EvidenceFiles(source, head.value)
    assert "lock.json" not in files and list(files) == ["runs/rollout/scores.bin"]
    assert files.get("lock.json") is None and "../lock.json" not in files


def test_a_fallback_tag_that_names_the_image_itself_is_no_answer(made: Any) -> None:
    layout, image, _ = made
    layout.save({"mediaType": image.media_type, "digest": image.digest, "size": image.size},
                image.digest.replace(":", "-"))  # fmt: skip
    found = find_attached(LayoutSource(layout.root), [image.digest])
    assert [one.code for one in found.findings] == ["REFERRERS_INVALID"]
    with pytest.raises(RefusedError):
        attach(layout.root, image, None, delivery(image.digest, None, EVIDENCE), EVIDENCE)


def test_artifacts_are_what_the_specification_says(made: Any) -> None:
    layout, image, index = made
    raw = delivery(image.digest, index.digest, EVIDENCE)
    statement, evidence, _ = attach(layout.root, image, index, raw, EVIDENCE)
    data = json.loads(layout.path(statement.digest).read_bytes())
    assert data["subject"] == {"mediaType": image.media_type, "digest": image.digest, "size": image.size}
    assert data["config"]["mediaType"] == "application/vnd.oci.empty.v1+json" and data["config"]["size"] == 2
    assert [layer["mediaType"] for layer in data["layers"]] == ["application/vnd.in-toto+json"]
    titles = [
        layer["annotations"]["org.opencontainers.image.title"]
        for layer in json.loads(layout.path(evidence.digest).read_bytes())["layers"]
    ]
    assert titles == sorted(EVIDENCE)
    entries = json.loads((layout.root / "index.json").read_bytes())["manifests"]
    names = [one["annotations"]["org.opencontainers.image.ref.name"] for one in entries]
    assert names == ["latest", *sorted(one.digest.replace(":", "-") for one in (image, index))]
