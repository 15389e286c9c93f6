"""`verify` on Debian's docker-registry, which has no referrers API, through the command line (S01, S03, S09, S11, S22)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.adapters.attach import attach

sys.path.insert(0, str(Path(__file__).parents[1] / "kit"))
from layouts import Layout, layers_of
from push import push
from statements import EVIDENCE, delivery, descriptor

SCRIPT = Path(__file__).parents[2] / "scripts" / "registry"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    root = tmp_path_factory.mktemp("registry") / "root"
    up = subprocess.run([SCRIPT, "up", "--root", root], capture_output=True, text=True, check=False)
    if up.returncode == 3:
        pytest.skip(f"no registry here: {up.stderr.strip()}")
    assert up.returncode == 0, up.stderr
    yield up.stdout.split()[-1].removeprefix("http://"), root
    subprocess.run([SCRIPT, "down", "--root", root], check=True, capture_output=True)


@pytest.fixture
def delivered(
    registry: tuple[str, Path], tmp_path: Path
) -> tuple[str, Layout, dict[str, Any], dict[str, Any]]:
    layout = Layout(tmp_path / "layout")
    image = layout.image()
    index = layout.index([image, layout.attestation(image)])
    layout.save(index, "latest")
    files = {"runs/rollout/scores.bin": EVIDENCE["runs/rollout/scores.bin"]}
    raw = delivery(image["digest"], index["digest"], files)
    attach(layout.root, descriptor(image), descriptor(index), raw, files)
    name = f"{registry[0]}/team/image"
    push(layout.root, f"http://{registry[0]}/v2/team/image")
    return name, layout, image, index


def run(*argv: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tic_manifest", "verify", "--output", "json", *argv],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def codes(report: dict[str, Any]) -> set[str]:
    return {one["code"] for one in report["findings"]}


def test_the_delivery_is_found_through_the_fallback_tag(delivered: Any) -> None:
    name, layout, image, index = delivered
    for digest in (image["digest"], index["digest"]):
        code, report = run(f"{name}@{digest}")
        assert code == 4 and "DELIVERY_MISSING" not in codes(report)
        rows = {row["id"]: row["status"] for row in report["checks"]}
        assert rows["image.bytes"] == rows["delivery.attached"] == rows["delivery.evidence"] == "pass"
    _, local = run(f"oci:{layout.root}@{index['digest']}", "--offline")
    _, remote = run(f"{name}@{index['digest']}")
    assert local == remote


def test_a_tag_is_refused_with_the_digest_behind_it(delivered: Any) -> None:
    name, _, _, index = delivered
    code, report = run(f"{name}:latest")
    assert code == 2 and codes(report) == {"MUTABLE_REF"}
    assert index["digest"] in report["findings"][0]["remedy"]


def test_the_digest_of_a_config_is_told(delivered: Any) -> None:
    name, layout, image, _ = delivered
    config = json.loads(layout.path(image["digest"]).read_bytes())["config"]["digest"]
    code, report = run(f"{name}@{config}")
    assert code == 2 and codes(report) == {"DIGEST_KIND/config"}


def test_a_byte_flipped_on_the_registry_s_disk_and_a_blob_that_is_gone(delivered: Any, registry: Any) -> None:
    name, layout, image, _ = delivered
    blob = layers_of(layout, image)[1]["digest"].removeprefix("sha256:")
    [path] = [one for one in registry[1].rglob("data") if one.parent.name == blob]
    whole = path.read_bytes()
    path.write_bytes(whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:])
    code, report = run(f"{name}@{image['digest']}")
    assert code == 4 and "BLOB_DIGEST" in codes(report)
    path.write_bytes(whole)
    shutil.rmtree(path.parent)
    code, report = run(f"{name}@{image['digest']}", "--depth", "identity")
    assert "BLOB_MISSING" in codes(report)
    path.parent.mkdir()
    path.write_bytes(whole)
