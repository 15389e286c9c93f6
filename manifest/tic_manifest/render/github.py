"""GitHub Actions: annotations as workflow commands, and the job summary.

A runner shows at most ten annotations of a type per step (GitHub, workflow limits) and takes at most 1 MiB of
summary per step; what is beyond that is said with its number and stands in the summary.
"""

from __future__ import annotations

from collections.abc import Iterator

from tic_manifest.model.verdict import Finding, Report, Status
from tic_manifest.render import markdown, view
from tic_manifest.render.escape import printable

SHOWN_PER_TYPE = 10
SUMMARY_BYTES = 1 << 20
_MESSAGE = 4000
"""Characters of one annotation: the parts that fit whole; a part is never cut inside."""


def render(report: Report, *, color: bool = False) -> str:
    """Workflow commands, one a line: errors, warnings, notices; then the outcome as a plain line."""
    said = view.everything(report)
    errors = [one for one in said if one.status is Status.FAIL or one.refused]
    warnings = [one for one in said if one not in errors]
    kinds = (("error", errors), ("warning", warnings), ("notice", list(view.notes(report))))
    lines = [line for kind, group in kinds for line in _annotations(kind, group)]
    ending = f"tic-manifest {report.command}: {report.outcome.value} (exit {report.exit_code})"
    return "\n".join([*lines, printable(ending)]) + "\n"


def summary(report: Report, room: int = SUMMARY_BYTES) -> str:
    """Markdown for the job summary, at most `room` bytes; what is left out is counted.

    Empty where not even the outcome fits: a summary beyond the limit is not shown at all.
    """
    whole = markdown.render(report)
    if len(whole.encode()) <= room:
        return whole
    said, kept = view.everything(report), list[str]()
    bare = report.model_copy(update={"findings": (), "checks": ()})
    left = room - len(markdown.compose(bare, [_left_out(report, len(said))]).encode())
    for part in map(markdown.finding, said):
        left -= len(part.encode()) + 2
        if left < 0:
            break
        kept.append(part)
    text = markdown.compose(bare, [*kept, _left_out(report, len(said) - len(kept))])
    return text if len(text.encode()) <= room else ""


def _left_out(report: Report, findings: int) -> str:
    return f"{findings} more findings and {len(report.checks)} checks: see `--output json`."


def _annotations(kind: str, group: list[Finding]) -> Iterator[str]:
    room = SHOWN_PER_TYPE if len(group) <= SHOWN_PER_TYPE else SHOWN_PER_TYPE - 1
    for one in group[:room]:
        yield f"::{kind} {_properties(one)}::{_data(_message(one))}"
    if left := len(group) - room if len(group) > room else 0:
        yield f"::{kind} title={left} more::" + _data(f"{left} more of this kind stand in the job summary")


def _properties(said: Finding) -> str:
    pairs = {"title": f"{said.code} {said.subject}".strip()}
    if found := view.place(said):
        pairs = {"file": found[0], "line": str(found[1]), **pairs}
    return ",".join(f"{name}={_property(text)}" for name, text in pairs.items())


def _message(said: Finding) -> str:
    lines, room = [printable(said.what or said.code)], _MESSAGE
    for name, value in view.fields(said):
        if name.startswith("evidence "):
            continue
        line = f"{name}: {view.value_text(value)}"
        room -= len(line)
        lines.append(line if room >= 0 else f"{name}: long, see the job summary")
    return "\n".join([f"{view.word_of(said)}: {lines[0]}", *lines[1:]])


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")
