"""Requirements to wheels by hash: uv for real, on a folder of tiny wheels; no network."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.adapters.pip_settings import PipSettings
from tic_manifest.adapters.resolver import UvResolver
from tic_manifest.adapters.store import FileStore
from tic_manifest.errors import PersonError, TicError
from tic_manifest.model.recipe import Python
from tic_manifest.ports import Target

from tests.kit import debs

TARGET = Target(architecture="amd64", glibc=36)
NATIVE = "cp311-cp311-manylinux_2_28_x86_64"


class Quiet:
    def say(self, text: str) -> None: ...

    def advance(self, amount: int) -> None: ...

    def step(self, name: str, total: int | None = None) -> AbstractContextManager[Any]:
        return nullcontext(self)


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    debs.wheel(folder, "top", "1.0", requires=("lower>=2", "heavy", "other; sys_platform == 'win32'"))
    debs.wheel(folder, "lower", "2.0")
    debs.wheel(folder, "lower", "2.1")
    debs.wheel(folder, "heavy", "5.0", tag=NATIVE)
    debs.wheel(folder, "heavy", "5.0", tag="cp311-cp311-manylinux_2_39_x86_64")
    debs.wheel(folder, "heavy", "5.0", tag="cp311-cp311-win_amd64")
    debs.wheel(folder, "arm_only", "1.0", tag="cp311-cp311-manylinux_2_28_aarch64")
    return folder


def resolver(wheels: Path) -> UvResolver:
    return UvResolver(PipSettings(no_index=True, find_links=(str(wheels),)), Quiet(), os.environ)


def resolve(wheels: Path, tmp_path: Path, *wanted: str, **more: Any) -> dict[str, str]:
    store = FileStore(tmp_path / "store")
    found = resolver(wheels).resolve(wanted, Python(version="3.11", **more), TARGET, store)
    assert all(store.path(f"sha256:{one.sha256}") for one in found)
    assert all(debs.sha256(wheels / one.file) == one.sha256 for one in found)
    assert [one.name for one in found] == sorted(one.name for one in found)
    return {one.name: one.file for one in found}


def test_everything_that_installs_by_hash_for_the_image_and_not_for_this_machine(
    wheels: Path, tmp_path: Path
) -> None:
    assert resolve(wheels, tmp_path, "top") == {
        "top": "top-1.0-py3-none-any.whl",
        "lower": "lower-2.1-py3-none-any.whl",
        "heavy": f"heavy-5.0-{NATIVE}.whl",
    }


def test_an_excluded_distribution_is_left_out(wheels: Path, tmp_path: Path) -> None:
    assert "heavy" not in resolve(wheels, tmp_path, "top", exclude=("heavy",))


def test_constraints_of_the_machine_count(wheels: Path, tmp_path: Path) -> None:
    rules = tmp_path / "constraints.txt"
    rules.write_text("lower<2.1\n")
    settings = PipSettings(no_index=True, find_links=(str(wheels),), constraints=(str(rules),))
    found = UvResolver(settings, Quiet(), os.environ).resolve(
        ("top",), Python(version="3.11"), TARGET, FileStore(tmp_path / "store")
    )
    assert {one.name: one.version for one in found}["lower"] == "2.0"


def test_a_wheel_by_name_and_hash(wheels: Path, tmp_path: Path) -> None:
    file = f"heavy-5.0-{NATIVE}.whl"
    args = (Python(version="3.11"), TARGET, FileStore(tmp_path / "store"))
    assert resolver(wheels).wheel(file, debs.sha256(wheels / file), *args).file == file
    with pytest.raises(TicError) as caught:
        resolver(wheels).wheel(file, "0" * 64, *args)
    assert caught.value.code == "WHEEL_HASH"


@pytest.mark.parametrize("wanted", ["arm_only", "absent", "lower==9"])
def test_no_solution_says_the_resolvers_words(wheels: Path, tmp_path: Path, wanted: str) -> None:
    with pytest.raises(TicError) as caught:
        resolve(wheels, tmp_path, wanted)
    assert (caught.value.code, caught.value.exit_code) == ("RESOLVE", 3)
    assert wanted.partition("=")[0].replace("_", "-") in caught.value.actual.replace("_", "-")


@pytest.mark.parametrize(
    "text", ["a b", "x @ https://host.example/x.whl", "x @ file:///etc/passwd", "1x==", "x ; nonsense"]
)
def test_what_is_no_requirement_is_the_persons_mistake(wheels: Path, text: str) -> None:
    with pytest.raises(PersonError) as caught:
        resolver(wheels).check(Python.model_construct(version="3.11", runtime=(text,)))
    assert caught.value.actual == text
