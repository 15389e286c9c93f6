"""Observations of a delivery: one row per role, one over all, and each pull request followed to a process."""

from __future__ import annotations

import json
from typing import Any

import deliveries as d
import pytest
from observations import DIFFERS, MATCH, SITE, clean_report
from tic_manifest.errors import RefusedError
from tic_manifest.model.receipt import BuiltWheel, ProbeBody, WorkerRun
from tic_manifest.model.verdict import Check, Finding, Status
from tic_manifest.rules.delivery_probe import judge_probe
from tic_manifest.rules.dossier import read_dossier

RECIPE = d.RECIPE.replace(
    b"workers:\n",
    b"workers:\n  watched: {stage: probe, role: rollout, command: [rollout]}\n"
    b"  maker: {stage: input, role: policy, command: [policy]}\n",
)
WHEEL = "alpha-1.0-cp311-abi3-linux_x86_64.whl"


def observation(*owners: dict[str, Any]) -> dict[str, Any]:
    """The clean report, its library shipped by these owners."""
    report = clean_report()
    mine = [{**owner, "name": "alpha"} for owner in owners or (MATCH,)]
    report["files"][0]["owners"] = report["inside"][0]["modules"][0]["owners"] = mine
    return report


def judge(
    report: Any, *, tree: str = "d" * 40, runs: tuple[WorkerRun, ...] | None = None, emulated: bool = False
) -> tuple[dict[str, Check], list[Finding]]:
    """The probe part of a delivery with one watched worker."""
    loaded = d.lock(RECIPE)
    files = d.evidence(loaded)
    wheel = BuiltWheel(name="alpha", tree=tree, file=WHEEL, digest=d.digest("wheel"), size=3)
    files["receipts/build.json"] = d.receipt(loaded, d.build_body(wheels=(wheel,)))
    outputs = {} if report is None else {"probe.json": json.dumps(report).encode()}
    run = d.run("watched", outputs, role="rollout")
    body = ProbeBody(runs=(run, d.run("maker", {})) if runs is None else runs, emulated=emulated)
    files["receipts/probe.json"] = d.receipt(loaded, body)
    files |= {f"runs/watched/{name}": data for name, data in outputs.items()}
    checks, findings = judge_probe(read_dossier(files))
    return {check.id: check for check in checks}, findings


def test_a_pull_request_is_followed_from_its_head_into_the_process() -> None:
    checks, findings = judge(observation())
    assert findings == []
    assert {check.status for check in checks.values()} == {Status.PASS}
    said = checks["probe.attribution.alpha"].reason
    for part in ("b" * 40, "d" * 40, WHEEL, d.digest("wheel"), f"{SITE}/demo/_C.abi3.so sha256:{'a' * 64}"):
        assert part in said


@pytest.mark.parametrize(
    ("owner", "tree", "status"),
    [(DIFFERS, "d" * 40, Status.FAIL), (MATCH, "e" * 40, Status.FAIL), (MATCH, "d" * 40, Status.PASS)],
)
def test_other_bytes_or_another_tree_are_not_the_pull_request(
    owner: dict[str, Any], tree: str, status: Status
) -> None:
    assert judge(observation(owner), tree=tree)[0]["probe.attribution.alpha"].status is status


def test_a_pull_request_that_never_ran_is_not_run_not_passed() -> None:
    checks, _ = judge(clean_report())
    assert checks["probe.attribution.alpha"].status is Status.NOT_RUN
    assert checks["probe"].status is Status.NOT_RUN


def test_a_missing_observation_is_said() -> None:
    checks, findings = judge(None)
    assert [(f.code, f.subject) for f in findings] == [("PROBE_MISSING", "watched")]
    assert checks["probe"].status is Status.INCONCLUSIVE


def test_a_receipt_without_runs_misses_every_worker_that_the_recipe_wants_probed() -> None:
    checks, findings = judge(observation(), runs=())
    assert {f.code for f in findings} == {"PROBE_MISSING"}
    assert checks["probe"].status is Status.INCONCLUSIVE


def test_on_another_platform_nothing_is_observed_and_that_is_not_run() -> None:
    checks, findings = judge(observation(), emulated=True, runs=())
    assert (findings, list(checks)) == ([], ["probe"])
    assert (checks["probe"].status, checks["probe"].reason) == (
        Status.NOT_RUN,
        "the host is of another platform",
    )


def test_one_failing_role_is_named_in_the_row_over_all() -> None:
    report = observation()
    report["worker"].update(outcome="timeout")
    checks, _ = judge(report)
    assert checks["probe"].status is Status.INCONCLUSIVE
    assert "probe.rollout.worker" in checks["probe"].reason


def test_a_malformed_observation_is_refused() -> None:
    with pytest.raises(RefusedError):
        judge({"schema": "tic/probe-agent/v1", "outcome": "pass"})
