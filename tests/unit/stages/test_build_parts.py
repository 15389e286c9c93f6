"""The parts of a build as values."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tic_manifest.errors import RefusedError, UnavailableError
from tic_manifest.stages import build_parts as parts

ROOT = Path(__file__).resolve().parents[3]
A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def test_requirements_name_every_wheel_by_hash() -> None:
    files = [
        ("torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl", A),
        ("My_Pkg.x-1.0-1-py3-none-any.whl", B),
    ]
    assert parts.requirements(files) == (f"my-pkg-x==1.0 --hash={B}\ntorch==2.13.0+cpu --hash={A}\n")


def test_one_distribution_from_two_wheels_is_said() -> None:
    with pytest.raises(UnavailableError) as caught:
        parts.requirements([("a_b-1-py3-none-any.whl", A), ("A.B-2-py3-none-any.whl", B)])
    assert caught.value.code == "RESOLVE"
    assert "a-b" in caught.value.what


@pytest.mark.parametrize("name", ["x.tar.gz", "-r /etc/passwd", "x-1.whl", "a b-1-py3-none-any.whl"])
def test_what_is_no_wheel_name_is_refused(name: str) -> None:
    with pytest.raises(RefusedError):
        parts.requirements([(name, A)])


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain", '"plain"'),
        ("$HOME/x", '"\\$HOME/x"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("# no comment", '"# no comment"'),
    ],
)
def test_variables_reach_the_image_as_they_are_written(value: str, written: str) -> None:
    assert parts.dockerfile(f"a\n{parts.MARK}b\n", {"X": value}) == f"a\nENV X={written}\nb\n"


@pytest.mark.parametrize("value", ["a\nRUN curl", "a\rb", "\x00"])
def test_a_variable_cannot_add_a_line(value: str) -> None:
    with pytest.raises(RefusedError) as caught:
        parts.dockerfile(parts.MARK, {"X": value})
    assert caught.value.code == "ENV_INJECTION"


def test_the_dockerfile_of_the_project_has_its_mark_and_no_network() -> None:
    text = (ROOT / "Dockerfile.unified").read_text()
    assert text.count(parts.MARK) == 1
    assert parts.hermetic(text)
    assert parts.hermetic((ROOT / "images/build/Dockerfile.debian").read_text())


@pytest.mark.parametrize(
    ("text", "hermetic"),
    [
        ("RUN --network=none x\n", True),
        ("RUN x\n", False),
        ("RUN --network=none \\\n  x\nrun \\\n y\n", False),
        ("RUN --network=default x\n", False),
        ("FROM scratch\n", False),
        ("RUN echo --network=nonexistent\n", False),
    ],
)
def test_hermetic_is_every_run_without_network(text: str, hermetic: bool) -> None:
    assert parts.hermetic(text) is hermetic


def test_a_folder_has_one_mode_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        assert parts.folder(tmp_path / "x").stat().st_mode & 0o777 == 0o755
    finally:
        os.umask(before)
