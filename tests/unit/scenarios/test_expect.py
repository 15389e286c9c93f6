"""expect.json: every key must be able to fail a scenario."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scenarios.expect import Seen, differences, matches

CODES = [
    ("STACKED_SHA", "STACKED_SHA", True),
    ("STACKED_SHA", "STACKED_SHA/overlap", True),
    ("STACKED_SHA", "STACKED_SHADOW", False),
    ("STACKED_SHA/overlap", "STACKED_SHA", False),
    ("STACKED_SHA/overlap", "STACKED_SHA/overlap", True),
    ("STACKED_*", "STACKED_BASE", True),
    ("STACKED_*", "MERGE_CONFLICT", False),
    ("HEAD_MOVED/re*", "HEAD_MOVED/rewritten", True),
    ("HEAD_MOVED/re*", "HEAD_MOVED/fast_forward", False),
]


@pytest.mark.parametrize(("pattern", "code", "wanted"), CODES)
def test_matches(pattern: str, code: str, wanted: bool) -> None:
    assert matches(pattern, code) is wanted


REPORT: dict[str, Any] = {
    "outcome": "fail",
    "exitCode": 1,
    "findings": [
        {"code": "STACKED_SHA/overlap", "subject": "vllm", "status": "fail"},
        {"code": "DUPLICATE_PR", "subject": "verl", "status": "pass", "note": True},
    ],
}
HOLDS: list[dict[str, Any]] = [
    {},
    {"exit": [0, 1]},
    {"outcome": "fail"},
    {"must": ["STACKED_SHA", "DUPLICATE_PR"]},
    {"must_not": ["MERGE_CONFLICT"]},
    {"subjects": {"STACKED_SHA": "vllm"}},
    {"contains": ["#12", "warned"]},
    {"not_contains": ["secret"]},
    {"files": {"out.txt": "held"}},
    {"absent": ["touched"]},
]
FAILS: list[tuple[dict[str, Any], str]] = [
    ({"exit": 0}, "exit: expected 0, was 1"),
    ({"exit": [0, 3]}, "exit: expected 0 or 3, was 1"),
    ({"outcome": "pass"}, "outcome: expected pass, was fail"),
    ({"must": ["STACKED_BASE"]}, "must: no STACKED_BASE among"),
    ({"must_not": ["STACKED_*"]}, "must_not: STACKED_* is there: STACKED_SHA/overlap"),
    ({"must_not": ["DUPLICATE_PR"]}, "must_not: DUPLICATE_PR is there"),
    ({"subjects": {"STACKED_SHA": "verl"}}, "subjects: STACKED_SHA is not said of verl but of vllm"),
    ({"contains": ["#13"]}, "contains: output lacks '#13'"),
    ({"not_contains": ["warned"]}, "not_contains: output has 'warned'"),
    ({"files": {"out.txt": "other"}}, "files: out.txt lacks 'other'"),
    ({"files": {"gone.txt": ""}}, "files: gone.txt is not there"),
    ({"absent": ["out.txt"]}, "absent: out.txt is there"),
]


def _seen(work: Path, raw: bytes | None = None, status: int | None = 1) -> Seen:
    (work / "out.txt").write_text("held\n")
    text = json.dumps(REPORT).encode() if raw is None else raw
    return Seen(status, "blames #12\n", "warned\n", text, work)


@pytest.mark.parametrize("expect", HOLDS)
def test_what_holds_gives_no_difference(expect: dict[str, Any], tmp_path: Path) -> None:
    assert differences({"exit": 1} | expect, _seen(tmp_path)) == []


@pytest.mark.parametrize(("expect", "said"), FAILS)
def test_what_does_not_hold_is_said(expect: dict[str, Any], said: str, tmp_path: Path) -> None:
    found = differences({"exit": 1} | expect, _seen(tmp_path))
    assert len(found) == 1
    assert found[0].startswith(said)


@pytest.mark.parametrize("key", ["outcome", "must", "must_not", "subjects"])
def test_without_a_report_nothing_about_findings_holds(key: str, tmp_path: Path) -> None:
    empty: dict[str, Any] = {"outcome": "fail", "must": [], "must_not": ["X"], "subjects": {}}
    found = differences({"exit": 1, key: empty[key]}, _seen(tmp_path, b"not json"))
    assert found == [f"no JSON report to find {key} in"]


def test_a_time_out_is_no_exit_code(tmp_path: Path) -> None:
    assert differences({"exit": [0, 1]}, _seen(tmp_path, b"", None)) == ["exit: expected 0 or 1, was None"]
