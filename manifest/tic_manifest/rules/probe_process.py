"""One process that runs already: what a worker started by us would add is out of scope, and is said."""

from __future__ import annotations

from tic_manifest.model.host import HostPolicy
from tic_manifest.model.probe import ProbeReport
from tic_manifest.model.probe_parts import Failed
from tic_manifest.model.verdict import Check, Finding, State, Status
from tic_manifest.rules.probe import judge_observation
from tic_manifest.rules.probe_view import View

OTHERS = ("worker", "holder", "running")
"""What only a started worker has, or a process that called the agent itself."""


def judge_process(report: ProbeReport, policy: HostPolicy | None = None) -> tuple[list[Check], list[Finding]]:
    """Checks and findings of a `snapshot` report. Rows about a run of a worker are out of scope."""
    view = View(report)
    checks, findings = judge_observation(report, policy)
    away = {f"probe.process.{name}" for name in (*OTHERS, "views", "environment")}
    if not any(view.is_python(p) for p in view.processes):
        away.add("probe.process.imports")
    return [_scoped(check, away) for check in checks], findings


def _scoped(check: Check, away: set[str]) -> Check:
    if check.id not in away or check.status is not Status.NOT_RUN:
        return check
    return check.model_copy(update={"state": State.OUT_OF_SCOPE})


def unreadable(report: ProbeReport) -> str:
    """Why the process could not be read at all; empty when it could."""
    for process in (p for s in report.snapshots for p in s.processes):
        if isinstance(process.maps, Failed):
            return process.maps.error
        if process.title is None:
            return process.error or "it ended while it was read"
    return ""
