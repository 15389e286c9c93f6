"""Every numbered scenario of `verify` and every row of its attack table is a folder below tests/scenarios/verify."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "scenarios" / "verify"
FOLDERS = sorted(path.name for path in FOLDER.iterdir())

ATTACKS = {
    "a tag is repointed": "S01-tag",
    "a byte of a layer flipped at rest": "S09-registry",
    "a document's bytes swapped under its digest": "S10-swapped",
    "a layer is missing": "S11-missing",
    "a descriptor lies about a size": "S13-size-more",
    "a config lies about a diff id": "A-diffid",
    "a key twice": "S14-twice",
    "a key in another case": "S14-case",
    "a document that is two kinds": "S15-both",
    "a variable that loads code": "A-env",
    "a file replaced by a later layer": "S17-overwritten",
    "a file removed by a later layer": "S16-removed",
    "a path that tools unpack differently": "A-path",
    "a delivery manifest of another image": "S21-other",
    "a second delivery manifest that contradicts": "A-conflict",
    "a probe and a validation of two runs": "A-run-mix",
    "a commit that is not of the pull request": "S28-fork",
    "native code of another commit": "A-native",
    "a library that is not from the image": "A-mapped-unowned",
    "a stale artifact of a JIT": "A-jit-stale",
    "a validation of another image": "A-validated-elsewhere",
    "a role that was not probed": "A-probe-missing",
    "a file patched when the worker starts": "A-patched-at-start",
}


@pytest.mark.parametrize("number", range(1, 40))
def test_a_numbered_scenario_is_there(number: int) -> None:
    assert [name for name in FOLDERS if name.startswith(f"S{number:02}-")]


@pytest.mark.parametrize("folder", ATTACKS.values(), ids=ATTACKS)
def test_a_row_of_the_attack_table_is_there(folder: str) -> None:
    assert (FOLDER / folder / "expect.json").is_file()


@pytest.mark.parametrize("name", FOLDERS)
def test_a_scenario_says_what_must_not_come_out_as_well(name: str) -> None:
    text = (FOLDER / name / "expect.json").read_text()
    assert any(word in text for word in ('"must_not"', '"not_contains"', '"absent"')), name
