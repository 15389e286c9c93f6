"""`tic-manifest report` on a real layout: before and after a delivery manifest is attached."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import deliveries as d
import pytest
from tic_manifest.cli.app import run
from tic_manifest.formats.lock import LoadedLock
from tic_manifest.model.receipt import ProbeBody, ValidateBody

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from layouts import Layout, layers_of


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A work folder in which everything up to validation was done."""
    loaded, root = d.lock(), tmp_path / "work"
    layout = Layout(root / "layout")
    image = layout.image(labels={"org.tic-manifest.lock": loaded.digest})
    index = layout.index([image])
    layout.save(index)
    manifest = json.loads(layout.path(image["digest"]).read_bytes())
    build = d.build_body(
        index_digest=index["digest"], config_digest=manifest["config"]["digest"],
        layers=tuple(one["digest"] for one in layers_of(layout, image)),
    )  # fmt: skip
    runs = (write_run(root, loaded, "rollout"), write_run(root, loaded, "trainer"))
    for stage, body in (
        ("build", build),
        ("probe", ProbeBody(runs=())),
        ("validate", ValidateBody(runs=runs)),
    ):
        write(
            root,
            f"receipts/{loaded.digest}/{stage}.json",
            d.receipt(loaded, body, platform_digest=image["digest"]),
        )
    write(root, f"receipts/{loaded.digest}/run-id", d.RUN_ID.encode() + b"\n")
    write(root, "lock.json", loaded.raw)
    write(root, "logs/build.log", b"log")
    return root


def write(root: Path, name: str, data: bytes) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(data)


def write_run(root: Path, loaded: LoadedLock, name: str) -> Any:
    files = d.scores(name, -1.0, -2.0)
    for one, data in files.items():
        write(root, f"runs/{loaded.digest.removeprefix('sha256:')}/{name}/{one}", data)
    return d.run(name, files, needs=("rollout",) if name == "trainer" else ())


def report(work: Path, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["report", "--work", str(work), "--format", name]) == 0
    return capsys.readouterr().out


def test_before_and_after_a_delivery_manifest_is_attached(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = report(work, "markdown", capsys)
    assert "no delivery manifest is attached to the image" in before
    assert run(["assemble", "--work", str(work)]) == 0
    said = capsys.readouterr().out.strip()
    after = report(work, "markdown", capsys)
    assert said.startswith("delivery manifest digest: sha256:")
    assert f"`{said}`" in after
    assert "cross: rollout/scores against trainer/scores: 0 of 2 valid tokens differ" in after


@pytest.mark.parametrize("name", ["html", "pr", "json"])
def test_every_format_is_written(work: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert d.lock().digest in report(work, name, capsys)


def test_without_a_lock_it_says_what_to_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "--work", str(tmp_path)]) == 3
    assert "run tic-manifest lock RECIPE first" in capsys.readouterr().err


def test_evidence_that_was_changed_is_not_read(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for scores in work.glob("runs/*/trainer/scores.bin"):
        scores.write_bytes(b"\0" * 8)
    text = report(work, "json", capsys)
    assert json.loads(text)["outcome"] == "inconclusive"
    assert "SCORES_INVALID" in text
