"""What every renderer says of a report, and in which order: the worst first, nothing left out."""

from __future__ import annotations

import json
import math

from pydantic import JsonValue

from tic_manifest.model.verdict import Check, Finding, Report, State, Status
from tic_manifest.render.escape import printable

STATUS_WORDS = {
    Status.PASS: "pass",
    Status.FAIL: "fail",
    Status.INCONCLUSIVE: "inconclusive",
    Status.NOT_RUN: "not run",
}
STATE_WORDS = {State.REQUIRED: "required", State.OUT_OF_SCOPE: "out of scope"}
UNVERIFIED = "unverified: out of scope"
_ORDER = (Status.FAIL, Status.INCONCLUSIVE, Status.NOT_RUN, Status.PASS)


def problems(report: Report) -> tuple[Finding, ...]:
    """Every finding that is no note: refused first, then fail, inconclusive, not run; else in their order."""
    said = [one for one in report.findings if not one.note]
    return tuple(sorted(said, key=lambda one: (not one.refused, _ORDER.index(one.status))))


def notes(report: Report) -> tuple[Finding, ...]:
    """The findings that block nothing."""
    return tuple(one for one in report.findings if one.note)


def unexplained(report: Report) -> tuple[Check, ...]:
    """Required checks that are not `pass` and that no finding speaks for."""
    said = problems(report)
    return tuple(row for row in undecided(report) if not any(speaks_for(one, row) for one in said))


def undecided(report: Report) -> list[Check]:
    """Required checks that are not `pass`."""
    return [one for one in report.checks if one.state is State.REQUIRED and one.status is not Status.PASS]


def everything(report: Report) -> tuple[Finding, ...]:
    """Problems, then unexplained checks in the shape of findings; empty only where the outcome is pass."""
    rows = (*problems(report), *(as_finding(row) for row in unexplained(report)))
    if rows or report.exit_code == 0:
        return rows
    said = nothing(report)
    return (Finding(code="check/outcome", status=Status.INCONCLUSIVE, subject=report.command, what=said),)


def nothing(report: Report) -> str:
    """Why a report without a problem is no pass."""
    return f"outcome {report.outcome.value} (exit {report.exit_code}); no required check was decided"


def as_finding(row: Check) -> Finding:
    """A check that no finding speaks for, as a finding with the pseudo-code `check/ID`."""
    what = row.reason or f"this check is {STATUS_WORDS[row.status]}; no reason was recorded"
    return Finding(code=f"check/{row.id}", status=row.status, subject=row.subject, what=what)


def speaks_for(said: Finding, row: Check) -> bool:
    """Whether a finding belongs to a check: same subject, and the same name or the same status."""
    if row.subject not in ("", said.subject):
        return False
    named = said.code.partition("/")[0].lower() == row.id.replace("-", "_").lower()
    return named or said.status is row.status


def word_of(said: Finding) -> str:
    """The status of a finding in words, or `refused` where it makes the outcome so, or `note`."""
    return "note" if said.note else "refused" if said.refused else STATUS_WORDS[said.status]


def status_of(row: Check) -> str:
    """The status of a check in words; out of scope is unverified whatever was seen."""
    return UNVERIFIED if row.state is State.OUT_OF_SCOPE else STATUS_WORDS[row.status]


def extras(report: Report) -> list[tuple[str, list[str]]]:
    """What a report of one command says beyond the common fields, each with its lines; never blank."""
    names = [name for name in type(report).model_fields if name not in Report.model_fields]
    data = report.model_dump(mode="json")
    return [(name.replace("_", " "), _extra(data[name])) for name in names]


def _extra(value: JsonValue) -> list[str]:
    if isinstance(value, dict):
        return [f"{value_text(one)}: {printable(key)}" for key, one in value.items()] or ["none"]
    if isinstance(value, list) and not value:
        return ["none"]
    return value_lines(value)


def reason_of(report: Report, row: Check) -> str:
    """Why a check is as it is: its reason, else the codes that speak for it; empty where it passed."""
    if row.reason or row.status is Status.PASS:
        return row.reason
    codes = dict.fromkeys(one.code for one in problems(report) if speaks_for(one, row))
    return "see " + ", ".join(codes) if codes else "no reason was recorded"


def plain(value: JsonValue) -> JsonValue:
    """The value with numbers that JSON cannot write as null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [plain(one) for one in value]
    return {key: plain(one) for key, one in value.items()} if isinstance(value, dict) else value


def value_text(value: JsonValue) -> str:
    """A JSON value on one line, safe to print: strings as they are, null as `unknown`, the rest as JSON."""
    if value is None:
        return "unknown"
    if isinstance(value, str):
        return printable(value) if value else '""'
    return printable(json.dumps(plain(value), ensure_ascii=False))


def value_lines(value: JsonValue) -> list[str]:
    """A JSON value as lines: a list of plain values gives a line for each, anything else one line."""
    if isinstance(value, list) and len(value) > 1 and not any(isinstance(one, list | dict) for one in value):
        return [value_text(one) for one in value]
    return [value_text(value)]


def fields(said: Finding) -> list[tuple[str, JsonValue]]:
    """The labelled parts of a finding that say something: expected, actual, evidence by key, to do."""
    rows: list[tuple[str, JsonValue]] = [("expected", said.expected), ("actual", said.actual)]
    shown = [row for row in rows if row[1] is not None]
    shown += [(f"evidence {key}", value) for key, value in said.evidence.items()]
    return [*shown, ("to do", said.remedy)] if said.remedy else shown


def place(said: Finding) -> tuple[str, int] | None:
    """File and line that the evidence names, when it is a path inside the repository; line 1 by default."""
    file, line = said.evidence.get("file"), said.evidence.get("line")
    if not isinstance(file, str) or not file or file != printable(file):
        return None
    if file.startswith(("/", "~")) or "\\" in file or ":" in file or ".." in file.split("/"):
        return None
    good = isinstance(line, int) and not isinstance(line, bool) and line > 0
    return file, line if good and isinstance(line, int) else 1
