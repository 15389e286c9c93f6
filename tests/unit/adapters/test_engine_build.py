"""What the builder is asked for, seen by a program called `docker` that notes its command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tic_manifest.adapters.engine import ContainerEngine
from tic_manifest.adapters.engine_build import Buildx
from tic_manifest.adapters.progress import StderrProgress
from tic_manifest.errors import UnavailableError
from tic_manifest.ports import ImageBuild

DOCKER = """#!/bin/sh
printf '%s\\n' "$@" >"$NOTES"
echo '#1 [final 1/2] COPY x' >&2
if [ -n "$FAILS" ]; then echo "ERROR: $FAILS" >&2; exit 1; fi
for word in "$@"; do case $word in *dest=*) mkdir -p "${word##*dest=}" ;; esac; done
"""


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(DOCKER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    monkeypatch.delenv("FAILS", raising=False)
    return tmp_path / "notes"


def request(tmp_path: Path, **more: object) -> ImageBuild:
    fields: dict[str, object] = {
        "dockerfile": tmp_path / "Dockerfile", "target": "final", "contexts": {"base": "oci-layout://x@sha256:0"},
        "arguments": {"TREE": "t"}, "labels": {"l": "v"}, "platform": "linux/arm64", "epoch": 7,
        "destination": tmp_path / "made", "kind": "oci", "log": tmp_path / "log",
    }  # fmt: skip
    return ImageBuild(**(fields | more))  # type: ignore[arg-type]


def test_there_is_no_network_and_times_are_set(notes: Path, tmp_path: Path) -> None:
    Buildx(None, StderrProgress("none")).build(request(tmp_path))
    said = notes.read_text().split("\n")
    assert said[said.index("--network") + 1] == "none"
    assert "SOURCE_DATE_EPOCH=7" in said
    assert said[said.index("--platform") + 1] == "linux/arm64"
    output = said[said.index("--output") + 1]
    assert {"type=oci", "tar=false", "compression=zstd"} <= set(output.split(","))
    assert (tmp_path / "made").is_dir()
    assert b"[final 1/2]" in (tmp_path / "log").read_bytes()


@pytest.mark.parametrize(
    ("words", "code"), [("exit code: 1", "ENGINE_FAILED"), ("no space left on device", "DISK_FULL")]
)
def test_a_failed_build_says_the_last_lines_and_leaves_nothing(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, code: str
) -> None:
    monkeypatch.setenv("FAILS", words)
    with pytest.raises(UnavailableError) as caught:
        Buildx(None, StderrProgress("none")).build(request(tmp_path))
    assert (caught.value.code, caught.value.exit_code) == (code, 3)
    assert words in caught.value.actual
    assert not (tmp_path / "made").exists()
    assert not list(tmp_path.glob(".build-*"))


def test_without_the_program_nothing_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError) as caught:
        Buildx(None, StderrProgress("none")).build(request(tmp_path))
    assert caught.value.code == "ENGINE_MISSING"


def test_an_engine_that_does_not_answer_is_named(tmp_path: Path) -> None:
    host = f"unix://{tmp_path / 'nowhere.sock'}"
    with pytest.raises(UnavailableError) as caught:
        ContainerEngine(host, StderrProgress("none")).describe()
    assert (caught.value.code, caught.value.where) == ("ENGINE_MISSING", host)
