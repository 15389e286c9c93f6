"""The planted faults of scripts/mutants: each applies to the sources as they are now, and is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.catalogue import FAULTS, Edit, Fault
from faults.main import Outcome
from faults.plant import DoesNotApplyError, edited, planted

ROOT = Path(__file__).resolve().parents[3]
ASKED = (
    "null read as true",
    "null read as false",
    "--first-parent",
    "base.sha",
    "branch name only",
    "first page only",
    "exit 128 read as conflict",
    "shallow accepted",
    "draft ignored",
    "patch-id alone",
    "trusted over git",
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_applies_to_a_copy_and_the_sources_stay(fault: Fault, tmp_path: Path) -> None:
    package = ROOT / "manifest" / "tic_manifest"
    before = {edit.path: (package / edit.path).read_bytes() for edit in fault.edits}
    copy = planted(package, fault, tmp_path) / "tic_manifest"
    for path, source in before.items():
        assert (copy / path).read_bytes() != source
        assert (package / path).read_bytes() == source


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_scenarios_of_a_fault_are_there(fault: Fault) -> None:
    assert fault.scenarios
    for name in fault.scenarios:
        assert (ROOT / "tests" / "scenarios" / "gate" / name / "expect.json").is_file(), name


@pytest.mark.parametrize("text", ASKED)
def test_every_fault_of_the_acceptance_list_is_planted(text: str) -> None:
    assert any(text in fault.name for fault in FAULTS)


@pytest.mark.parametrize("source", ["", "x = 1\nx = 1\n"])
def test_an_edit_that_does_not_stand_exactly_once_is_an_error(source: str) -> None:
    with pytest.raises(DoesNotApplyError, match="not once"):
        edited(source, Edit("m.py", "x = 1\n", "x = 2\n"))


@pytest.mark.parametrize(
    ("killed_by", "why", "found"),
    [
        ("S01", "exit: expected 1, was 0", True),
        ("", "", False),
        ("S01", "exit: expected 1, was 70", False),
        ("S01", "the scenario cannot be run: no make", False),
    ],
)
def test_a_copy_that_breaks_is_no_fault_that_was_found(killed_by: str, why: str, found: bool) -> None:
    assert Outcome("f", killed_by, why, 1, 0.1).found is found
