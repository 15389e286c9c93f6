"""Markdown, for pull request comments and job summaries. Everything from evidence is inert."""

from __future__ import annotations

from collections.abc import Iterable

from tic_manifest.model.verdict import Check, Finding, Report
from tic_manifest.render import view
from tic_manifest.render.markup import code, prose, table


def render(report: Report, *, color: bool = False) -> str:
    """The whole report as Markdown (GitHub's flavour)."""
    return compose(report, (finding(one) for one in view.problems(report)))


def compose(report: Report, middle: Iterable[str]) -> str:
    """Outcome, then the findings given as ready parts, then notes and checks."""
    parts = [_head(report), *middle, _notes(view.notes(report)), _checks(report)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(report: Report) -> str:
    lines = [f"## tic-manifest {prose(report.command)}: {report.outcome.value}", ""]
    lines.append(f"Exit code {report.exit_code}.")
    if report.partial:
        lines.append("Partial: only a part was judged.")
    if not view.problems(report) and not view.unexplained(report) and report.exit_code:
        lines.append(prose(view.nothing(report)) + ".")
    lines += ["", *(f"- subject {code(one)}" for one in report.subjects)]
    lines += [f"- {name} {code(line)}" for name, rows in view.extras(report) for line in rows]
    return "\n".join(lines).rstrip()


def finding(said: Finding) -> str:
    """One finding as a heading, what it says, and a table of expected, actual, evidence and remedy."""
    lines = [
        f"### {view.word_of(said)}: {code(said.code)} {code(said.subject) if said.subject else ''}".rstrip()
    ]
    lines += ["", prose(said.what or "no meaning was recorded")]
    rows = [[_label(name), _cell(view.value_lines(value))] for name, value in view.fields(said)]
    return "\n".join([*lines, "", *table(["part", "value"], rows)] if rows else lines)


def _label(name: str) -> str:
    return f"evidence {code(name[len('evidence ') :])}" if name.startswith("evidence ") else name


def _cell(lines: list[str]) -> str:
    return "<br>".join(code(one) for one in lines)


def _notes(said: tuple[Finding, ...]) -> str:
    rows = [[code(one.code), code(one.subject), prose(one.what)] for one in said]
    return "\n".join(["### Notes", "", *table(["code", "subject", "what"], rows)]) if rows else ""


def _checks(report: Report) -> str:
    if not report.checks:
        return "### Checks\n\nNone: nothing was judged."
    head = ["status", "state", "check", "subject", "reason"]
    return "\n".join(["### Checks", "", *table(head, [_check(report, one) for one in report.checks])])


def _check(report: Report, one: Check) -> list[str]:
    words = [view.status_of(one), view.STATE_WORDS[one.state]]
    return [*words, code(one.id), code(one.subject or "-"), prose(view.reason_of(report, one) or "-")]
