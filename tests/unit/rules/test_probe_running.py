"""Live code judged: what fails, what is only a note, what was not looked at."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from observations import MATCH, Json, clean_report
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.probe import ProbeReport
from tic_manifest.model.verdict import Check, Finding, Status
from tic_manifest.rules.probe import judge_observation

OTHER = {**MATCH, "name": "plugin", "version": "2.0"}
TORCH = {**MATCH, "name": "torch", "version": "2.13.0"}


def judge(change: Callable[[Json], object]) -> tuple[dict[str, Check], list[Finding]]:
    """The clean report with one change, judged; checks by their last name."""
    report = copy.deepcopy(clean_report())
    change(report)
    checks, findings = judge_observation(read_model(json.dumps(report).encode(), ProbeReport, "probe.json"))
    return {check.id.rpartition(".")[2]: check for check in checks}, findings


def patch(*owners: Json, **more: Any) -> Callable[[Json], object]:
    row = {
        "module": "demo", "attribute": "Layer.forward", "file": "/x/mine.py", "line": 3, "name": "mine.forward",
        "inherited": False, "said": "def", "owners": list(owners), "expected": [MATCH], **more,
    }  # fmt: skip
    return lambda r: r["inside"][0]["running"]["patched"].append(row)


def override(*owners: Json) -> Callable[[Json], object]:
    row = {
        "operator": "aten::mm", "key": "CPU", "file": "/x/disp.py", "line": 3, "inactive": "RegisterCPU.cpp:9",
        "owners": list(owners),
    }  # fmt: skip
    return lambda r: r["inside"][0]["operators"]["overrides"].append(row)


FAILS: list[tuple[str, Callable[[Json], object], str, str, str]] = [
    ("nobody's code", patch(), "running", "CODE_PATCHED", "demo.Layer.forward"),
    ("the worker's code", patch({"kind": "worker"}), "running", "CODE_PATCHED", "demo.Layer.forward"),
    ("nobody's kernel", override(), "running", "OP_OVERRIDE", "aten::mm CPU"),
    ("live code", lambda r: r["inside"][0]["modules"][0].update(live_differs=["f:3"]), "content",
     "CODE_NOT_SOURCE", "demo"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "check", "code", "subject"), [f[1:] for f in FAILS], ids=[f[0] for f in FAILS]
)
def test_code_that_nobody_ships_fails(
    change: Callable[[Json], object], check: str, code: str, subject: str
) -> None:
    checks, findings = judge(change)
    assert [(f.code, f.status, f.subject, f.note) for f in findings] == [(code, Status.FAIL, subject, False)]
    assert [name for name, row in checks.items() if row.status is Status.FAIL] == [check]


@pytest.mark.parametrize(
    ("change", "code"), [(patch(OTHER), "CODE_PATCHED"), (override(OTHER), "OP_OVERRIDE")]
)
def test_code_of_a_package_is_named_with_its_owner(change: Callable[[Json], object], code: str) -> None:
    checks, findings = judge(change)
    assert [(f.code, f.note) for f in findings] == [(code, True)]
    assert findings[0].evidence["owners"] == ["wheel plugin 2.0"]
    assert checks["running"].status is Status.PASS


@pytest.mark.parametrize(
    "change",
    [
        patch(MATCH),
        override(TORCH),
        patch(OTHER, said="absent", attribute="Layer.__init__", inherited=True),
        patch(OTHER, said="absent", name="p.strict.<locals>.wrap", inherited=True),
    ],
    ids=["the package itself", "torch itself", "a class maker", "a class maker by closure"],
)
def test_what_packages_do_to_themselves_is_not_said(change: Callable[[Json], object]) -> None:
    assert judge(change)[1] == []


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["inside"][0].update(running={"error": "x"}),
        lambda r: r["inside"][0]["running"].update(reason="its Python is 3.12"),
        lambda r: r["inside"][0]["running"].update(cut_short=True),
        lambda r: r["inside"][0]["operators"].update(read=False),
        lambda r: r["inside"][0].update(operators={"error": "x"}),
    ],
    ids=["scan failed", "other Python", "cut", "dispatcher unread", "dispatcher failed"],
)
def test_what_was_not_compared_is_said(change: Callable[[Json], object]) -> None:
    checks, findings = judge(change)
    assert {f.code for f in findings} == {"LEDGER_INCOMPLETE"}
    assert checks["running"].status is Status.INCONCLUSIVE


def test_an_observation_without_a_scan_does_not_pass() -> None:
    checks, _ = judge(lambda r: r["inside"][0].pop("running"))
    assert checks["running"].status is Status.NOT_RUN
