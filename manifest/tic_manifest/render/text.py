"""Plain text: outcome first, then what is wrong and what to do, then notes, then every check."""

from __future__ import annotations

import re

from tic_manifest.model.verdict import Check, Finding, Outcome, Report
from tic_manifest.render import view
from tic_manifest.render.escape import printable

_COLORS = {"pass": 32, "fail": 31, "refused": 31, "inconclusive": 33, "not_run": 33, "note": 36}
_RUNNER_COMMAND = re.compile(r"##(?=\[|vso\[)")
"""CI runners take `##[...]` and `##vso[...]` anywhere in a line of a log as a command."""


def render(report: Report, *, color: bool = False) -> str:
    """The report as lines; no line is cut or wrapped, so that digests and commands can be copied."""
    parts = [_head(report, color)]
    parts += [_finding(one, color) for one in view.problems(report)]
    if said := view.notes(report):
        parts.append([_paint("notes", "note", color), *(f"  {_title(one)}: {_note(one)}" for one in said)])
    parts.append(_checks(report))
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _head(report: Report, color: bool) -> list[str]:
    outcome = _paint(report.outcome.value, report.outcome.value, color)
    lines = [f"{_safe(report.command)}: {outcome} (exit {report.exit_code})"]
    lines += [f"  subject: {_safe(one)}" for one in report.subjects]
    lines += [f"  {name}: {_safe(line)}" for name, rows in view.extras(report) for line in rows]
    if report.partial:
        lines.append("  partial: only a part was judged")
    if report.outcome is not Outcome.PASS and not view.problems(report) and not view.unexplained(report):
        lines.append(f"  {view.nothing(report)}")
    return lines


def _finding(said: Finding, color: bool) -> list[str]:
    word, kind = view.word_of(said), "refused" if said.refused else said.status.value
    lines = [f"{_paint(word, kind, color)}  {_title(said)}", f"  what: {_safe(said.what)}"]
    for name, value in view.fields(said):
        shown = [_safe(one) for one in view.value_lines(value)]
        many = len(shown) > 1
        lines.append(f"  {_safe(name)}:" if many else f"  {_safe(name)}: {shown[0]}")
        lines += [f"    - {one}" for one in shown] if many else []
    return lines


def _note(said: Finding) -> str:
    """What a note says, and of what, on one line."""
    of = ", ".join(_safe(line) for line in view.value_lines(said.actual)) if said.actual is not None else ""
    return f"{_safe(said.what)}: {of}" if of else _safe(said.what)


def _title(said: Finding) -> str:
    return _safe(f"{said.code}  {said.subject}" if said.subject else said.code)


def _checks(report: Report) -> list[str]:
    """The table of checks; the last column is free, the others as wide as their longest cell."""
    if not report.checks:
        return ["checks: none"]
    rows = [("status", "state", "check", "subject", "reason"), *(_row(report, one) for one in report.checks)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return ["checks", *("  " + _pad(row, widths) for row in rows)]


def _row(report: Report, one: Check) -> tuple[str, ...]:
    status = "unverified" if view.status_of(one) == view.UNVERIFIED else view.status_of(one)
    cells = (status, view.STATE_WORDS[one.state], one.id, one.subject or "-", view.reason_of(report, one))
    return tuple(_safe(cell) for cell in cells)


def _pad(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
    return "  ".join([*cells, row[-1]]).rstrip()


def _paint(word: str, kind: str, color: bool) -> str:
    return f"\x1b[{_COLORS[kind]}m{word}\x1b[0m" if color else word


def _safe(text: str) -> str:
    return _RUNNER_COMMAND.sub(r"#\\x23", printable(text))
