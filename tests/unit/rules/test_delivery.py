"""A delivery judged from its evidence: everything is computed again, and no claim is believed."""

from __future__ import annotations

import json
from typing import Any

import deliveries as d
import pytest
from tic_manifest.errors import RefusedError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.delivery import Statement
from tic_manifest.model.receipt import ValidateBody
from tic_manifest.rules.delivery import Judged, judge_delivery, judge_evidence
from tic_manifest.rules.dossier import read_dossier
from tic_manifest.stages.assemble import Earlier, assemble


class Clock:
    def now(self) -> str:
        return d.WHEN


def judged(files: dict[str, bytes], **image: Any) -> Judged:
    dossier = read_dossier(files)
    return judge_evidence(dossier, d.image(dossier.lock, **image))


def statuses(judged: Judged) -> dict[str, str]:
    return {check.id: check.status.value for check in judged.checks}


def test_six_rows_in_the_order_of_the_template() -> None:
    made = judged(d.evidence(d.lock()))
    assert [row.kind for row in made.rows] == ["pull_request", "image", "recipe", "validation"]
    image = made.rows[1]
    assert image.platform_digest == d.digest("platform")  # type: ignore[union-attr]


def test_a_measured_equality_passes_and_what_was_not_run_says_so() -> None:
    made = judged(d.evidence(d.lock()))
    seen = statuses(made)
    assert seen["validation.cross"] == seen["status.proxy"] == "pass"
    assert seen["status.full_zero_update"] == "not_run"
    assert seen["build.reproducible"] == "not_run"
    states = {check.id: check.state.value for check in made.checks}
    assert states["build.reproducible"] == states["status.quality"] == "out_of_scope"
    assert states["status.performance"] == "required"


def test_a_measured_mismatch_is_a_fail_whatever_paperwork_is_missing() -> None:
    made = judged(d.evidence(d.lock(), trainer=d.scores("trainer", -1.0, -2.5)))
    assert statuses(made)["validation.cross"] == "fail"
    assert {"PARITY_MISMATCH", "UNAPPROVED"} <= {one.code for one in made.findings}


def test_approval_counts_only_for_what_was_approved() -> None:
    loaded = d.lock()
    good = judged(d.evidence(loaded) | {"approval.json": d.approval(loaded)})
    assert statuses(good)["approval"] == "pass"
    assert [one.code for one in good.findings if one.note] == ["SELF_DECLARED"]
    other = judged(
        d.evidence(loaded) | {"approval.json": d.approval(loaded, checklist_digest=d.digest("old"))}
    )
    assert statuses(other)["approval"] == "inconclusive"
    said = [one for one in other.findings if one.code == "UNAPPROVED"]
    assert [one.subject for one in said] == ["acceptance checklist"]


@pytest.mark.parametrize(
    ("name", "body", "changes", "code"),
    [
        ("build", d.build_body(), {"run_id": "f" * 32}, "RUN_MIX"),
        ("build", d.build_body(), {"platform_digest": d.digest("other")}, "STALE"),
        ("build", d.build_body(), {"lock_digest": d.digest("other")}, "STALE"),
        ("build", d.build_body(hermetic=False), {}, "HERMETIC"),
        ("build", d.build_body(layers=(d.digest("other"),)), {}, "STALE"),
        ("build", d.build_body(wheels=()), {}, "TREE_MISMATCH"),
    ],
)
def test_what_is_not_bound_together(name: str, body: Any, changes: dict[str, Any], code: str) -> None:
    loaded = d.lock()
    files = d.evidence(loaded) | {f"receipts/{name}.json": d.receipt(loaded, body, **changes)}
    assert code in {one.code for one in judged(files).findings}


def test_a_label_of_another_lock_is_stale() -> None:
    assert "STALE" in {one.code for one in judged(d.evidence(d.lock()), label=d.digest("other")).findings}


def test_scores_that_are_not_those_of_the_receipt_are_missing() -> None:
    files = d.evidence(d.lock())
    files["runs/trainer/scores.bin"] = files["runs/trainer/scores.bin"][::-1]
    assert statuses(judged(files))["validation.cross"] == "inconclusive"


def test_nothing_run_is_not_run_and_never_pass() -> None:
    loaded = d.lock()
    made = judged({"lock.json": loaded.raw})
    assert {statuses(made)[name] for name in ("validation.cross", "build.alpha", "status.proxy")} == {
        "not_run"
    }
    assert "pass" not in {check.status.value for check in made.checks}


def test_a_host_of_another_platform_leaves_validation_not_run() -> None:
    loaded = d.lock()
    body = ValidateBody(runs=(), emulated=True)
    made = judged(d.evidence(loaded) | {"receipts/validate.json": d.receipt(loaded, body)})
    assert statuses(made)["validation.cross"] == "not_run"


def test_a_receipt_under_another_name_is_refused() -> None:
    loaded = d.lock()
    files = d.evidence(loaded)
    files["receipts/gate.json"] = files["receipts/build.json"]
    with pytest.raises(RefusedError) as caught:
        read_dossier(files)
    assert caught.value.code == "SCHEMA"


def test_what_assemble_writes_verify_derives() -> None:
    loaded = d.lock()
    files = d.evidence(loaded)
    made = assemble(files, d.image(loaded), None, Clock(), "0")
    statement = read_model(made.statement, Statement, "statement")
    checks, _ = judge_delivery(statement, files, d.image(loaded))
    assert {check.id: check.status.value for check in checks}["delivery.claims"] == "pass"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(("rows", 0, "head"), "e" * 40, id="another head"),
        pytest.param(("rows", 0, "gate", "status"), "pass", id="a gate that was not run"),
        pytest.param(("rows", 2, "approved", "status"), "pass", id="an approval that nobody gave"),
        pytest.param(("rows", 3, "statuses", 2, "result", "status"), "pass", id="a status that was not run"),
        pytest.param(("rows", 1, "pins"), [], id="pins left out"),
        pytest.param(("lockDigest",), d.digest("other"), id="another lock"),
        pytest.param(("runId",), "e" * 32, id="another run"),
        pytest.param(("receipts",), [], id="receipts left out"),
    ],
)
def test_a_claim_that_does_not_follow_is_refused(path: tuple[Any, ...], value: Any) -> None:
    loaded = d.lock()
    files = d.evidence(loaded)
    data = json.loads(assemble(files, d.image(loaded), None, Clock(), "0").statement)
    place = data["predicate"]
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    statement = read_model(json.dumps(data).encode(), Statement, "statement")
    _, findings = judge_delivery(statement, files, d.image(loaded))
    assert [one.code for one in findings if one.refused] == ["OVERCLAIM"]


def test_a_claim_of_less_than_follows_is_no_overclaim() -> None:
    loaded = d.lock()
    files = d.evidence(loaded)
    data = json.loads(assemble(files, d.image(loaded), None, Clock(), "0").statement)
    data["predicate"]["rows"][3]["statuses"][0]["result"] = {
        "status": "inconclusive",
        "reason": "older rules",
    }
    statement = read_model(json.dumps(data).encode(), Statement, "statement")
    _, findings = judge_delivery(statement, files, d.image(loaded))
    assert not [one for one in findings if one.refused]


def test_assembling_the_same_again_changes_nothing_and_a_change_supersedes() -> None:
    loaded = d.lock()
    files, image = d.evidence(loaded), d.image(loaded)
    first = assemble(files, image, None, Clock(), "0")
    attached = Earlier(
        digest=digest_of(first.statement),
        raw=first.statement,
        statement=read_model(first.statement, Statement, "s"),
    )
    again = assemble(files, image, attached, Clock(), "0")
    assert (again.unchanged, again.statement) == (True, first.statement)
    approved = assemble(files | {"approval.json": d.approval(loaded)}, image, attached, Clock(), "0")
    assert not approved.unchanged
    assert json.loads(approved.statement)["predicate"]["supersedes"] == digest_of(first.statement)


def test_a_bad_end_after_the_whole_output_is_said_and_judges_no_score() -> None:
    loaded = d.lock()
    files = d.evidence(loaded)
    outputs = {
        one: {n.rpartition("/")[2]: files[n] for n in files if f"/{one}/" in n}
        for one in ("rollout", "trainer")
    }
    runs = (
        d.run("rollout", outputs["rollout"], exit_code=134, signal=6),
        d.run("trainer", outputs["trainer"]),
    )
    files["receipts/validate.json"] = d.receipt(loaded, ValidateBody(runs=runs))
    made = judged(files)
    assert statuses(made)["workers.shutdown"] == "inconclusive"
    assert statuses(made)["validation.cross"] == "pass"
    assert [one.subject for one in made.findings if one.code == "WORKER_EXIT"] == ["rollout"]


def test_an_emulated_platform_is_said_once() -> None:
    loaded = d.lock()
    body = ValidateBody(runs=(), emulated=True)
    made = judged(d.evidence(loaded) | {"receipts/validate.json": d.receipt(loaded, body)})
    assert [one.code for one in made.findings].count("PLATFORM_EMULATED") == 1
