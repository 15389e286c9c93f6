"""Findings, checks, and the report of a judging command (contract, sections 1 to 3)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

from pydantic import JsonValue

from tic_manifest import errors
from tic_manifest.model.base import Value
from tic_manifest.model.codes import meaning


class Status(StrEnum):
    """Status of a check or a finding."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    NOT_RUN = "not_run"


class State(StrEnum):
    """Whether a check counts. Out of scope is unverified, never passed."""

    REQUIRED = "required"
    OUT_OF_SCOPE = "out_of_scope"


class Outcome(StrEnum):
    """Outcome of a command."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    REFUSED = "refused"


EXIT_OF = {
    Outcome.PASS: errors.EXIT_PASS,
    Outcome.FAIL: errors.EXIT_FAIL,
    Outcome.INCONCLUSIVE: errors.EXIT_INCONCLUSIVE,
    Outcome.REFUSED: errors.EXIT_REFUSED,
}


class Finding(Value):
    """Something that needs saying. A passed check gives none; a note is `status: pass, note: true`."""

    code: str
    status: Status
    subject: str
    what: str = ""
    expected: JsonValue = None
    actual: JsonValue = None
    evidence: dict[str, JsonValue] = {}
    remedy: str = ""
    note: bool = False
    refused: bool = False
    """Set when the finding makes the outcome `refused` (exit 4), whatever else was found."""


class Check(Value):
    """One row of what was judged; `reason` says why it was not run or could not be decided."""

    id: str
    state: State = State.REQUIRED
    status: Status
    subject: str = ""
    reason: str = ""


class Report(Value):
    """What a judging command says; rendered as text, JSON, markdown, JUnit, SARIF."""

    schema_version: Literal["1"] = "1"
    command: str
    outcome: Outcome
    exit_code: int
    partial: bool = False
    subjects: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    checks: tuple[Check, ...] = ()


def finding(code: str, status: Status, subject: str, **fields: object) -> Finding:
    """A finding whose code is in the registry; `what` defaults to the code's meaning.

    Raises KeyError for a code that the registry does not know: that is a bug, not bad input.
    """
    fields.setdefault("what", meaning(code))
    return Finding.model_validate({"code": code, "status": status, "subject": subject, **fields})


def note(code: str, subject: str, **fields: object) -> Finding:
    """A finding that blocks nothing."""
    return finding(code, Status.PASS, subject, note=True, **fields)


def outcome_of(checks: Iterable[Check], findings: Iterable[Finding] = ()) -> Outcome:
    """Precedence refused > fail > inconclusive > pass; no required check at all is inconclusive."""
    rows = [check for check in checks if check.state is State.REQUIRED]
    said = [one for one in findings if not one.note]
    if any(one.refused for one in said):
        return Outcome.REFUSED
    seen = {row.status for row in rows}
    if Status.FAIL in seen:
        return Outcome.FAIL
    if not rows or seen & {Status.INCONCLUSIVE, Status.NOT_RUN}:
        return Outcome.INCONCLUSIVE
    return Outcome.PASS


def report(
    command: str,
    checks: Iterable[Check],
    findings: Iterable[Finding],
    *,
    subjects: Iterable[str] = (),
    partial: bool = False,
) -> Report:
    """Roll checks and findings up into a report; findings keep their order, exact repeats are dropped."""
    rows, said = tuple(checks), tuple({one.model_dump_json(): one for one in findings}.values())
    outcome = outcome_of(rows, said)
    return Report(
        command=command,
        outcome=outcome,
        exit_code=EXIT_OF[outcome],
        partial=partial,
        subjects=tuple(subjects),
        findings=said,
        checks=rows,
    )


def check_of(check_id: str, findings: Iterable[Finding], *, subject: str = "") -> Check:
    """The row of a check that was run: the worst status of its findings, `pass` where there is none."""
    order = [Status.FAIL, Status.INCONCLUSIVE, Status.NOT_RUN]
    seen = {one.status for one in findings if not one.note}
    status = next((one for one in order if one in seen), Status.PASS)
    return Check(id=check_id, status=status, subject=subject)
