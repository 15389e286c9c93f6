"""Final validation judged again from raw bytes: the admissibility ladder, then the comparison.

Source: rules/parity.md 1.2 (the ladder) and 1.4 (the figures). A measured mismatch of a bitwise target is a
fail whatever paperwork is missing; evidence that cannot be compared is inconclusive, never a pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from tic_manifest.model.receipt import WorkerRun
from tic_manifest.model.recipe import Comparison
from tic_manifest.model.record import ScoreFile, WorkerRecord
from tic_manifest.model.verdict import Check, Finding, Status, check_of, finding, note
from tic_manifest.rules.parity import Parity, Scores, compare, fault


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side of a comparison, as far as it is there."""

    name: str
    run: WorkerRun | None
    record: WorkerRecord | None
    scores: ScoreFile | None
    payload: bytes | None


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What a comparison came to."""

    check: Check
    findings: tuple[Finding, ...]
    parity: Parity | None


def judge(row: Comparison, left: Side, right: Side) -> Compared:
    """Judge one comparison of the recipe: `fail` only for a difference in bytes that was measured."""
    subject = f"validation.{row.id}"
    faults = [*_side_faults(subject, left), *_side_faults(subject, right)]
    faults = faults or _pair_faults(subject, row, left, right)
    if any(one.code.startswith(("SCORES_INVALID", "UNBOUND")) for one in faults):
        return _compared(subject, faults, None)
    parity = compare(_scores(left), _scores(right))
    return _compared(subject, [*faults, *_difference(subject, left, right, parity)], parity)


def judge_all(rows: Mapping[str, tuple[Comparison, Side, Side]]) -> dict[str, Compared]:
    """Every comparison, and what a control that is not equal means for those that lean on it."""
    judged = {name: judge(*row) for name, row in rows.items()}
    broken = [
        name
        for name, (row, _, _) in rows.items()
        if row.kind == "inference_only"
        and row.treatment == "none"
        and judged[name].check.status is Status.FAIL
    ]
    return {name: _with_control(rows[name][0], one, broken) for name, one in judged.items()}


def _with_control(row: Comparison, one: Compared, broken: list[str]) -> Compared:
    if row.treatment == "none" or not broken or one.parity is None:
        return one
    said = note("NO_CONTROL", one.check.subject, evidence={"control": list(broken)})
    return Compared(check=one.check, findings=(*one.findings, said), parity=one.parity)


def _compared(subject: str, findings: list[Finding], parity: Parity | None) -> Compared:
    check = check_of(subject, findings, subject=subject)
    said = next((one.what for one in findings if not one.note), "")
    return Compared(check=check.model_copy(update={"reason": said}), findings=tuple(findings), parity=parity)


def _unsure(code: str, subject: str, **fields: object) -> Finding:
    return finding(code, Status.INCONCLUSIVE, subject, **fields)


def _side_faults(subject: str, side: Side) -> list[Finding]:
    record, scores, payload = side.record, side.scores, side.payload
    if record is None or scores is None or payload is None:
        return [_unsure("SCORES_INVALID/missing", subject, expected=side.name, actual="not there")]
    seen = hashlib.sha256(payload).hexdigest()
    if seen != scores.sha256:
        return [_unsure("SCORES_INVALID/hash", subject, expected=scores.sha256, actual=seen)]
    wrong = fault(_scores(side))
    wrong = wrong or (
        "" if scores.count == sum(record.lengths) else f"the record counts {scores.count} scores"
    )
    if wrong:
        return [_unsure("SCORES_INVALID/shape", subject, actual=f"{side.name}: {wrong}")]
    return [*_intervention(subject, side), *_gradient(subject, side)]


def _intervention(subject: str, side: Side) -> list[Finding]:
    done = list(side.record.diagnostic_interventions) if side.record else []
    return [_unsure("INTERVENTION", subject, expected=[], actual=done)] if done else []


def _gradient(subject: str, side: Side) -> list[Finding]:
    """A grad-enabled forward is one whose tensors say so (VER-7); a no-grad pass cannot stand in for it."""
    if side.record is None or side.scores is not side.record.scores_grad:
        return []
    quiet, graded = side.record.scores, side.record.scores_grad
    if quiet is not None and graded is not None and quiet.file == graded.file:
        return [_unsure("GRAD_NOT_ENABLED", subject, expected="a file of its own", actual=graded.file)]
    facts = side.record.grad
    if facts is not None and facts.calls and facts.requires_grad and facts.grad_fn:
        return []
    actual = None if facts is None else facts.model_dump(mode="json")
    return [_unsure("GRAD_NOT_ENABLED", subject, expected={"requires_grad": True}, actual=actual)]


def _pair_faults(subject: str, row: Comparison, left: Side, right: Side) -> list[Finding]:
    a, b = left.record, right.record
    if a is None or b is None or left.scores is None or right.scores is None:
        return []
    shapes = (a.dtype, a.lengths, a.mask), (b.dtype, b.lengths, b.mask)
    pairs = [
        ("UNBOUND/tokens", a.tokens_sha256, b.tokens_sha256),
        ("UNBOUND/checkpoint", dict(a.checkpoint), dict(b.checkpoint)),
        ("UNBOUND/shape", [shapes[0][0], list(a.lengths)], [shapes[1][0], list(b.lengths)]),
    ]
    found = [_unsure(code, subject, expected=x, actual=y) for code, x, y in pairs if x != y]
    if shapes[0] != shapes[1] and not found:
        found = [_unsure("UNBOUND/shape", subject, actual="the masks differ")]
    found += _identity(subject, row, left, right)
    if _one_process(left, right):
        found.append(_unsure("UNBOUND/process", subject, actual=f"both sides: {left.name}"))
    return found or _treatment(subject, row, a, b)


def _identity(subject: str, row: Comparison, left: Side, right: Side) -> list[Finding]:
    """Each side is of the role that its run had, held known weights, and across stacks the roles differ."""
    found, records = [], [(side, side.record) for side in (left, right) if side.record is not None]
    for side, record in records:
        if not record.checkpoint and _same_checkpoint(records):
            found.append(_unsure("UNBOUND/checkpoint", subject, expected="digests of the weights", actual={}))
        if side.run is not None and side.run.role != record.role:
            found.append(_unsure("UNBOUND/process", subject, expected=side.run.role, actual=record.role))
    roles = {record.role for _, record in records}
    if row.kind == "cross_stack" and len(roles) == 1 and not _one_process(left, right):
        found.append(_unsure("UNBOUND/process", subject, actual="both sides are of one role"))
    return found


def _same_checkpoint(records: list[tuple[Side, WorkerRecord]]) -> bool:
    return len({tuple(sorted(record.checkpoint.items())) for _, record in records}) == 1


def _one_process(left: Side, right: Side) -> bool:
    """Two paths of one trainer may share a process; the two sides of a comparison may not."""
    return left.run is not None and right.run is not None and left.run.name == right.run.name


def _treatment(subject: str, row: Comparison, a: WorkerRecord, b: WorkerRecord) -> list[Finding]:
    if row.treatment == "none":
        return []
    if not a.batches or not b.batches or a.batches == b.batches:
        return [_unsure("NO_TREATMENT", subject, expected=row.treatment, actual="the batches do not differ")]
    if [_total(step) for step in a.batches] == [_total(step) for step in b.batches]:
        return [
            note("NO_TREATMENT/vacuous", subject, expected=row.treatment, actual="equal tokens in every step")
        ]
    return []


def _total(step: tuple[object, ...]) -> int:
    return sum(getattr(entry, "tokens", 0) for entry in step)


def _difference(subject: str, left: Side, right: Side, parity: Parity) -> list[Finding]:
    if parity.valid_tokens == 0:
        return [_unsure("VACUOUS", subject)]
    found = []
    if parity.nonfinite:
        found.append(finding("NONFINITE", Status.FAIL, subject, expected=0, actual=parity.nonfinite))
    if parity.mismatches:
        found.append(
            finding(
                "PARITY_MISMATCH", Status.FAIL, subject,
                what=f"{parity.mismatches} of {parity.valid_tokens} valid tokens differ in their bytes",
                expected={"mismatches": 0}, actual=figures(parity),
                evidence={"left": left.name, "right": right.name},
            )
        )  # fmt: skip
    return found


def figures(parity: Parity) -> dict[str, object]:
    """The figures of a comparison as plain data: tokens, mismatches, first (request, position), ulp."""
    first = parity.first_mismatch
    return {
        "validTokens": parity.valid_tokens,
        "mismatches": parity.mismatches,
        "firstMismatch": {"request": first[0], "position": first[1]} if first else None,
        "maxUlp": parity.max_ulp,
        "nonfinite": parity.nonfinite,
    }


def _scores(side: Side) -> Scores:
    if side.record is None or side.scores is None or side.payload is None:
        raise ValueError("a side without scores")
    return Scores(
        payload=side.payload,
        dtype=side.record.dtype,
        lengths=side.record.lengths,
        mask=side.record.flat_mask,
    )
