"""Deliveries of every released version verify with this one (docs/deliveries.md)."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from tic_manifest import __version__

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from kept import DEPTHS, ROOT, asked

VERSIONS = sorted(one.name for one in ROOT.iterdir() if one.is_dir())
RELEASED = re.findall(r"^## \[?([0-9][^] \n]*)", (ROOT.parents[1] / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_this_version_and_every_released_one_has_a_delivery() -> None:
    assert {__version__, *RELEASED} <= set(VERSIONS), "scripts/keep-delivery makes that of this version"


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_kept_delivery_is_judged_as_it_was_when_it_was_made(version: str, depth: str) -> None:
    expected = json.loads((ROOT / version / "expect.json").read_bytes())
    said = asked(ROOT / version, expected["index"], depth)
    assert said == expected["depths"][depth]
    assert said["signed"] and said["exit"] == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_the_depth_files_disproves_nothing_of_it(version: str) -> None:
    expected = json.loads((ROOT / version / "expect.json").read_bytes())
    assert asked(ROOT / version, expected["index"], "files")["exit"] in {0, 3}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_spoiled_copy_never_passes(version: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / version, copy)
    index = json.loads((copy / "expect.json").read_bytes())["index"]
    manifest = json.loads((copy / "layout/blobs/sha256" / index.removeprefix("sha256:")).read_bytes())[
        "manifests"
    ][0]
    image = json.loads(
        (copy / "layout/blobs/sha256" / manifest["digest"].removeprefix("sha256:")).read_bytes()
    )
    layer = copy / "layout/blobs/sha256" / image["layers"][-1]["digest"].removeprefix("sha256:")
    layer.write_bytes(layer.read_bytes()[:-1] + b"\x01")
    assert asked(copy, index, "content")["exit"] == 1


def test_they_are_small() -> None:
    for version in VERSIONS:
        size = sum(one.stat().st_size for one in (ROOT / version).rglob("*") if one.is_file())
        assert size < 300_000, version
