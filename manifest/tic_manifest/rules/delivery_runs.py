"""How the measured workers ended, and whether they could be measured at all."""

from __future__ import annotations

from collections.abc import Sequence

from tic_manifest.model.receipt import WorkerRun
from tic_manifest.model.verdict import Check, Finding, Status, check_of, finding
from tic_manifest.rules.dossier import Dossier

SHUTDOWN, NATIVE = "workers.shutdown", "workers.native"


def judge_runs(dossier: Dossier) -> tuple[list[Check], list[Finding]]:
    """Clean shutdown of every run, and a host of the image's own platform.

    A worker that aborts at exit after its whole output is said here and nowhere else: the exit does not
    judge the scores, nor they the exit (rules/parity.md RCP-4).
    """
    away = [body.stage for body in (dossier.probe, dossier.validate) if body is not None and body.emulated]
    if away:
        return _emulated(dossier, away)
    if not dossier.runs:
        return [Check(id=SHUTDOWN, status=Status.NOT_RUN, subject="workers", reason="no worker was run")], []
    found = [_exit(run) for run in dossier.runs.values() if run.exit_code != 0]
    return [check_of(SHUTDOWN, found, subject="workers")], found


def _exit(run: WorkerRun) -> Finding:
    actual = {"exitCode": run.exit_code, "signal": run.signal, "timedOut": run.timed_out}
    tail = list(run.log_tail[-12:])
    return finding(
        "WORKER_EXIT", Status.INCONCLUSIVE, run.name, what="a worker left its output, then did not end well",
        expected={"exitCode": 0}, actual=actual, evidence={"log": tail},
    )  # fmt: skip


def _emulated(dossier: Dossier, stages: Sequence[str]) -> tuple[list[Check], list[Finding]]:
    receipt = dossier.receipts[stages[0]]
    said = finding(
        "PLATFORM_EMULATED", Status.INCONCLUSIVE, "workers", expected=dossier.lock.recipe.platform,
        actual=receipt.host.machine, evidence={"stages": list(stages)},
    )  # fmt: skip
    return [check_of(NATIVE, [said], subject="workers")], [said]
