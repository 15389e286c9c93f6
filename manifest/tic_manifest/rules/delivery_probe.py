"""The probe's observations judged again; each pull request followed from its head into a running process."""

from __future__ import annotations

from collections.abc import Mapping

from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.lock import LockedPullRequest
from tic_manifest.model.probe import ProbeReport
from tic_manifest.model.receipt import BuiltWheel, WorkerRun
from tic_manifest.model.verdict import Check, Finding, Status, check_of, finding
from tic_manifest.rules.dossier import Dossier
from tic_manifest.rules.probe import judge_observation
from tic_manifest.rules.probe_view import Loaded, View, loaded_of
from tic_manifest.rules.role_diff import judge_roles

OBSERVATION = "probe.json"
ORDER = (Status.FAIL, Status.INCONCLUSIVE, Status.NOT_RUN, Status.PASS)


def judge_probe(dossier: Dossier) -> tuple[list[Check], list[Finding]]:
    """The checks of every role, where each pull request was seen to run, and one row `probe` over all.

    Raises RefusedError for an observation that is malformed.
    """
    lacking = _not_run(dossier)
    if lacking:
        return [_overall(Status.NOT_RUN, lacking)], []
    checks: list[Check] = []
    findings: list[Finding] = []
    reports: dict[str, ProbeReport] = {}
    for run in _observed(dossier):
        raw = dossier.output(run, OBSERVATION)
        if raw is None:
            said = finding("PROBE_MISSING", Status.INCONCLUSIVE, run.name, expected=OBSERVATION, actual=None)
            rows, found = [check_of(f"probe.{run.role}", [said], subject=run.name)], [said]
        else:
            reports[run.name] = read_model(raw, ProbeReport, f"runs/{run.name}/{OBSERVATION}")
            rows, found = _own(dossier, run, reports[run.name])
        checks, findings = [*checks, *rows], [*findings, *found]
    absent = _absent(dossier)
    checks += [check_of(f"probe.{one.subject}", [one], subject=one.subject) for one in absent]
    findings += absent
    rows, found = _roles(dossier, reports)
    checks, findings = [*checks, *rows], [*findings, *found]
    checks += attributions(dossier, reports)
    return [_summed(checks), *checks], findings


def _roles(dossier: Dossier, reports: Mapping[str, ProbeReport]) -> tuple[list[Check], list[Finding]]:
    """What the roles have in other ways; an observation that vouches for another role takes no part."""
    recipe = dossier.lock.recipe
    wanted = [worker.role for worker in recipe.workers.values() if worker.stage == "probe"]
    own = {name: one for name, one in reports.items() if one.role == recipe.workers[name].role}
    return judge_roles(own, recipe.policy.roles, wanted)


def _own(dossier: Dossier, run: WorkerRun, report: ProbeReport) -> tuple[list[Check], list[Finding]]:
    """An observation judged, if it is of the role that this worker has: a copy vouches for nothing."""
    wanted = dossier.lock.recipe.workers[run.name].role
    if report.role == wanted:
        return judge_observation(report, dossier.lock.recipe.policy)
    said = finding(
        "STALE",
        Status.FAIL,
        run.name,
        what="an observation of another role",
        expected=wanted,
        actual=report.role,
    )
    return [check_of(f"probe.{wanted}", [said], subject=run.name)], [said]


def _absent(dossier: Dossier) -> list[Finding]:
    """Workers that the recipe wants probed and the receipt has no run of."""
    seen = {run.name for run in _observed(dossier)}
    workers = dossier.lock.recipe.workers
    missing = [name for name, worker in workers.items() if worker.stage == "probe" and name not in seen]
    return [
        finding("PROBE_MISSING", Status.INCONCLUSIVE, name, expected=OBSERVATION, actual=None)
        for name in missing
    ]


def _not_run(dossier: Dossier) -> str:
    if dossier.probe is None:
        return "probe was not run"
    if dossier.probe.emulated:
        return "the host is of another platform"
    wanted = any(worker.stage == "probe" for worker in dossier.lock.recipe.workers.values())
    return "" if wanted else "the recipe names no worker to probe"


def _observed(dossier: Dossier) -> list[WorkerRun]:
    """Runs of workers that the recipe wants probed; the others only made inputs."""
    workers = dossier.lock.recipe.workers
    runs = dossier.probe.runs if dossier.probe else ()
    return [run for run in runs if run.name in workers and workers[run.name].stage == "probe"]


def _overall(status: Status, reason: str) -> Check:
    return Check(id="probe", status=status, subject="workers", reason=reason)


def _summed(checks: list[Check]) -> Check:
    """The worst of all checks, with the names of those that are not pass."""
    status = next((one for one in ORDER if any(check.status is one for check in checks)), Status.NOT_RUN)
    worst = [check.id for check in checks if check.status is not Status.PASS]
    return _overall(status, f"not pass: {', '.join(worst)}" if worst else f"{len(checks)} checks")


def attributions(dossier: Dossier, reports: Mapping[str, ProbeReport]) -> list[Check]:
    """For each pull request: head, tree, wheel, and the files of that wheel that ran in each role."""
    wheels = {wheel.name: wheel for wheel in dossier.build.wheels} if dossier.build else {}
    return [_attribution(pull, wheels.get(pull.name), reports) for pull in dossier.lock.lock.pull_requests]


def _attribution(
    pull: LockedPullRequest, wheel: BuiltWheel | None, reports: Mapping[str, ProbeReport]
) -> Check:
    check = f"probe.attribution.{pull.name}"
    if wheel is None:
        return Check(id=check, status=Status.NOT_RUN, subject=pull.name, reason="no wheel was built from it")
    seen = {report.role or name: loaded_of(View(report), wheel.file) for name, report in reports.items()}
    seen = {role: loaded for role, loaded in seen.items() if loaded.files}
    if not seen:
        reason = f"no process that holds the model loaded a file of {wheel.file}"
        return Check(id=check, status=Status.NOT_RUN, subject=pull.name, reason=reason)
    wrong = any(loaded.differing for loaded in seen.values()) or wheel.tree != pull.head_tree
    ran = "; ".join(f"{role}: {_words(loaded)}" for role, loaded in sorted(seen.items()))
    reason = f"head {pull.head}, tree {wheel.tree}, wheel {wheel.file} {wheel.digest}; {ran}"
    return Check(id=check, status=Status.FAIL if wrong else Status.PASS, subject=pull.name, reason=reason)


def _words(loaded: Loaded) -> str:
    native = ", ".join(f"{path} sha256:{sha256}" for path, sha256 in loaded.native[:8])
    differ = f", {len(loaded.differing)} not as recorded" if loaded.differing else ""
    return f"{loaded.modules} modules{differ}, {len(loaded.native)} libraries{': ' if native else ''}{native}"
