"""The admissibility ladder: each rung once, and that a measured mismatch stays a fail."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import pytest
from tic_manifest.model.receipt import WorkerRun
from tic_manifest.model.recipe import Comparison
from tic_manifest.model.record import WorkerRecord
from tic_manifest.rules.validation import Side, judge, judge_all

TOKENS = hashlib.sha256(b"tokens").hexdigest()
WEIGHTS = {"model.safetensors": hashlib.sha256(b"weights").hexdigest()}


ROLES = {"trainer": "trainer", "b": "trainer", "c": "trainer"}


def row(**changes: Any) -> Comparison:
    fields = {
        "id": "cross", "kind": "cross_stack", "left": "rollout/scores", "right": "trainer/scores",
        "scope_limitation": "none",
    }  # fmt: skip
    return Comparison.model_validate(fields | changes)


def side(name: str, *values: float, scores: str = "scores", **changes: Any) -> Side:
    payload = struct.pack(f"<{len(values)}f", *values)
    file = {
        "file": "s.bin",
        "sha256": hashlib.sha256(payload).hexdigest(),
        "shape": (1, len(values)),
        "count": len(values),
    }
    fields: dict[str, Any] = {
        "schema": "tic/worker-record/v1", "role": ROLES.get(name, "rollout"), "pid": 7, "checkpoint": WEIGHTS,
        "tokens_sha256": TOKENS, "mask": (tuple([1] * len(values)),), "dtype": "float32",
        "byte_order": "little", "scores": file, "scores_grad": file | {"file": "g.bin"},
    }  # fmt: skip
    record = WorkerRecord.model_validate(fields | changes)
    return Side(
        name=f"{name}/{scores}",
        run=run(name),
        record=record,
        scores=record.score_files()[scores],
        payload=payload,
    )


def run(name: str) -> WorkerRun:
    when = "2026-01-01T00:00:00Z"
    return WorkerRun(
        name=name,
        role=ROLES.get(name, "rollout"),
        command=("x",),
        needs=(),
        exit_code=0,
        started_at=when,
        finished_at=when,
    )


def batch(*tokens: int, order: int = 1) -> tuple[dict[str, Any], ...]:
    return tuple({"request": str(i), "tokens": n} for i, n in list(enumerate(tokens))[::order])


def codes(row: Comparison, left: Side, right: Side) -> list[str]:
    return [one.code for one in judge(row, left, right).findings]


def test_equal_bytes_pass_and_say_how_many() -> None:
    judged = judge(row(), side("rollout", -1, -2), side("trainer", -1, -2))
    assert judged.check.status == "pass"
    assert judged.findings == ()
    assert judged.parity is not None
    assert (judged.parity.valid_tokens, judged.parity.mismatches) == (2, 0)


def test_a_mismatch_fails_with_count_and_first() -> None:
    judged = judge(row(), side("rollout", -1, -2, -3), side("trainer", -1, -2.5, -3.5))
    assert judged.check.status == "fail"
    assert judged.findings[0].actual == {
        "validTokens": 3, "mismatches": 2, "firstMismatch": {"request": 0, "position": 1}, "maxUlp": 2097152, "nonfinite": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("left", "right", "code"),
    [
        pytest.param(side("a", -1), side("b", -1, tokens_sha256="0" * 64), "UNBOUND/tokens", id="other tokens"),
        pytest.param(side("a", -1), side("b", -1, checkpoint={}), "UNBOUND/checkpoint", id="other checkpoint"),
        pytest.param(side("a", -1), side("b", -1, -2), "UNBOUND/shape", id="other shape"),
        pytest.param(side("a", -1, -2), side("b", -1, -2, mask=((1, 0),)), "UNBOUND/shape", id="other mask"),
        pytest.param(side("a", -1), side("a", -1), "UNBOUND/process", id="one process"),
        pytest.param(side("a", -1, mask=((0,),)), side("b", -2, mask=((0,),)), "VACUOUS", id="no valid token"),
        pytest.param(side("a", -1), side("b", -1, diagnostic_interventions=("nudge",)), "INTERVENTION", id="nudged"),
        pytest.param(side("a", -1), side("b", -1, scores="scores_grad"), "GRAD_NOT_ENABLED", id="no gradient read"),
        pytest.param(side("a", -1), Side(name="b", run=None, record=None, scores=None, payload=None), "SCORES_INVALID/missing", id="no side"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_inconclusive(left: Side, right: Side, code: str) -> None:
    judged = judge(row(), left, right)
    assert [one.code for one in judged.findings] == [code]
    assert judged.check.status == "inconclusive"


def test_scores_that_are_not_the_recorded_ones_are_not_compared() -> None:
    left, right = side("a", -1), side("b", -1)
    other = Side(name="b", run=right.run, record=right.record, scores=right.scores, payload=b"\0\0\0\0")
    assert codes(row(), left, other) == ["SCORES_INVALID/hash"]


def test_grad_enabled_is_read_from_the_tensor() -> None:
    facts = {"calls": 1, "requires_grad": True, "any_requires_grad": True, "grad_fn": ("StackBackward0",)}
    assert codes(row(), side("a", -1), side("b", -1, scores="scores_grad", grad=facts)) == []
    quiet = facts | {"requires_grad": False}
    assert codes(row(), side("a", -1), side("b", -1, scores="scores_grad", grad=quiet)) == [
        "GRAD_NOT_ENABLED"
    ]


def test_equal_nan_is_a_fail() -> None:
    nan = float("nan")
    assert codes(row(), side("a", nan), side("b", nan)) == ["NONFINITE"]


@pytest.mark.parametrize(
    ("before", "after", "code", "status"),
    [
        pytest.param((batch(3, 4),), (batch(3, 4),), "NO_TREATMENT", "inconclusive", id="nothing changed"),
        pytest.param(
            (batch(3, 4),), (batch(3, 4, order=-1),), "NO_TREATMENT/vacuous", "pass", id="same total"
        ),
        pytest.param((batch(3, 4),), (batch(3), batch(4)), None, "pass", id="regrouped"),
        pytest.param((), (batch(3), batch(4)), "NO_TREATMENT", "inconclusive", id="not recorded"),
    ],
)
def test_treatment_is_read_from_the_recorded_batches(
    before: Any, after: Any, code: str | None, status: str
) -> None:
    judged = judge(row(treatment="regrouped"), side("a", -1, batches=before), side("b", -1, batches=after))
    assert [one.code for one in judged.findings] == ([code] if code else [])
    assert judged.check.status == status


def test_a_broken_control_is_said_where_a_treatment_leans_on_it() -> None:
    control = row(id="aa", kind="inference_only")
    treated = row(id="ac", kind="inference_only", treatment="reversed")
    batches = (batch(1, 1),), (batch(1), batch(1))
    judged = judge_all({
        "aa": (control, side("a", -1), side("b", -2)),
        "ac": (treated, side("a", -1, batches=batches[0]), side("c", -3, batches=batches[1])),
    })  # fmt: skip
    assert [one.code for one in judged["ac"].findings] == ["PARITY_MISMATCH", "NO_CONTROL"]
    assert judged["ac"].check.status == "fail"
