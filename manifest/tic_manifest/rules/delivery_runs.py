"""How the measured workers ended, and whether they could be measured at all."""

from __future__ import annotations

from collections.abc import Sequence

from tic_manifest.model.receipt import ProbeBody, ValidateBody, WorkerRun
from tic_manifest.model.recipe import Worker
from tic_manifest.model.verdict import Check, Finding, Status, check_of, finding
from tic_manifest.rules.dossier import Dossier

SHUTDOWN, NATIVE, ASKED = "workers.shutdown", "workers.native", "workers.asked"
STAGES = (("probe", ("input", "probe")), ("validate", ("validate",)))


def judge_runs(dossier: Dossier) -> tuple[list[Check], list[Finding]]:
    """Clean shutdown of every run, and a host of the image's own platform.

    A worker that aborts at exit after its whole output is said here and nowhere else: the exit does not
    judge the scores, nor they the exit (rules/parity.md RCP-4).
    """
    asked = _as_asked(dossier)
    row = check_of(ASKED, asked, subject="workers")
    if not _bodies(dossier):
        row = row.model_copy(update={"status": Status.NOT_RUN, "reason": "no worker was run"})
    checks, found = _ended(dossier)
    return [row, *checks], [*asked, *found]


def _ended(dossier: Dossier) -> tuple[list[Check], list[Finding]]:
    away = [body.stage for body in (dossier.probe, dossier.validate) if body is not None and body.emulated]
    if away:
        return _emulated(dossier, away)
    if not dossier.runs:
        return [Check(id=SHUTDOWN, status=Status.NOT_RUN, subject="workers", reason="no worker was run")], []
    runs = [run for body in _bodies(dossier).values() for run in body.runs]
    found = [_exit(run) for run in runs if run.exit_code != 0 or run.signal or run.timed_out]
    return [check_of(SHUTDOWN, found, subject="workers")], found


def _bodies(dossier: Dossier) -> dict[str, ProbeBody | ValidateBody]:
    named = {"probe": dossier.probe, "validate": dossier.validate}
    return {stage: body for stage, body in named.items() if body is not None and not body.emulated}


def _as_asked(dossier: Dossier) -> list[Finding]:
    """Each run is the recipe's: its command, role and needs, once, and none of them left out."""
    found: list[Finding] = []
    bodies = _bodies(dossier)
    for stage, kinds in STAGES:
        if stage in bodies:
            runs = bodies[stage].runs
            wanted = {name: one for name, one in dossier.lock.recipe.workers.items() if one.stage in kinds}
            found += [
                _other(run, wanted.get(run.name)) for run in runs if not _is_asked(run, wanted.get(run.name))
            ]
            found += _counted([run.name for run in runs], list(wanted))
    return found


def _is_asked(run: WorkerRun, worker: Worker | None) -> bool:
    asked = worker and (worker.role, worker.command, worker.needs)
    return (run.role, run.command, run.needs) == asked


def _other(run: WorkerRun, worker: Worker | None) -> Finding:
    asked = worker and [worker.role, list(worker.command), list(worker.needs)]
    ran = [run.role, list(run.command), list(run.needs)]
    return finding(
        "STALE", Status.FAIL, run.name, what="a run is not the recipe's", expected=asked, actual=ran
    )


def _counted(names: list[str], wanted: list[str]) -> list[Finding]:
    twice = sorted({name for name in names if names.count(name) > 1})
    return [
        *(finding("STALE", Status.FAIL, name, what="a run stands twice") for name in twice),
        *(
            finding("EVIDENCE_MISSING", Status.INCONCLUSIVE, name, expected="a run", actual=None)
            for name in wanted
            if name not in names
        ),
    ]


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
