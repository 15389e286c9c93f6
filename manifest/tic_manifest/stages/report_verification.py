"""Sections "Symptom and localization", "Cause and change" and "Verification" of the report."""

from __future__ import annotations

from tic_manifest.model.delivery import ValidationStatus
from tic_manifest.model.document import (
    Block,
    Entry,
    Facts,
    Grid,
    Remark,
    Section,
    facts,
    grid,
    listed,
    not_run,
    said,
    unknown,
)
from tic_manifest.model.recipe import Comparison
from tic_manifest.model.verdict import Status
from tic_manifest.stages.report_context import (
    NOTHING_MEASURES,
    Context,
    argv,
    artifact_line,
    of_check,
    of_checks,
    summary,
)
from tic_manifest.stages.report_gates import gates, upgrade_gates
from tic_manifest.stages.report_paths import dual_paths

SEPARATE = (
    "Inference-only and cross-stack parity are separate results; a failed, missing, empty or stale forward "
    "comparison blocks escalation."
)
NATIVE = (
    "Native no-grad scoring semantics are kept; a pass of it does not prove grad-enabled forward parity. "
    "Scores are captured before updates and loss transforms."
)
Pair = tuple[Comparison, ValidationStatus | None]


def symptom(context: Context) -> Section:
    """What differs, where it starts, and what else could explain it."""
    block = facts(
        "",
        ("Per-request / token differences", _differences(context)),
        ("A/A results", _inference(context, control=True)),
        ("A/C results", _inference(context, control=False)),
        ("Side-isolation evidence", of_check(context, "acceptance.side_isolation")),
        ("Last equal / first unequal semantic boundary", of_check(context, "acceptance.boundary")),
        ("Identical-input operator comparison", of_check(context, "acceptance.operator_comparison")),
        ("Competing explanations", _unknown_where_equal(context)),
        ("Counterexamples", _unknown_where_equal(context)),
    )
    return Section(heading="Symptom and localization", blocks=(block,))


def _differences(context: Context) -> Entry:
    lines = [difference(row, measured) for row, measured in context.compared()]
    return listed(lines, not_run("the recipe asks for no comparison"))


def difference(row: Comparison, measured: ValidationStatus | None) -> str:
    """A comparison on one line: sides, mismatches of valid tokens, first mismatch."""
    sides = f"{row.id}: {row.left} against {row.right}"
    if measured is None or measured.valid_tokens is None:
        return f"{sides}: not run"
    first = f", first at {measured.first_mismatch}" if measured.first_mismatch else ""
    return f"{sides}: {measured.mismatches} of {measured.valid_tokens} valid tokens differ{first}"


def _inference(context: Context, *, control: bool) -> Entry:
    """A/A is a comparison without treatment, A/C one with a treatment; both of one side alone."""
    pairs = [pair for pair in context.compared("inference_only") if (pair[0].treatment == "none") is control]
    if not pairs:
        return not_run("the recipe asks for no such comparison")
    lines = [f"{difference(*pair)}; treatment: {pair[0].treatment}" for pair in pairs]
    return of_checks(context, [f"validation.{row.id}" for row, _ in pairs], *lines)


def _unknown_where_equal(context: Context) -> Entry:
    return unknown("the evidence of this delivery holds none; a comparison of bytes names no cause")


def cause(context: Context) -> Section:
    """Cause: unknown unless evidence establishes one; interventions apart from the repair."""
    block = facts(
        "",
        ("Violated arithmetic / metadata / state contract", unknown("evidence does not establish a cause")),
        ("Smallest triggering input", unknown("evidence does not establish a cause")),
        ("Actual repair", _repair(context)),
        ("Diagnostic interventions", _interventions(context)),
        (
            "Code changes",
            said("", *(f"{one.name}: {one.url}, head commit {one.head}" for one in context.pulls())),
        ),
        ("Preserved regression", of_check(context, "acceptance.regression")),
    )
    return Section(heading="Cause and change", blocks=(block,))


def _repair(context: Context) -> Entry:
    lines = [f"{one.name}: base commit {one.base} to head commit {one.head}" for one in context.pulls()]
    return said("what the pull requests change; whether it repairs a cause is not judged here", *lines)


def _interventions(context: Context) -> Entry:
    """A diagnostic change of a run; such a run can show a cause and never a pass."""
    if not context.records:
        return not_run("no worker record is in the evidence")
    lines = [
        f"run {name}: {argv([str(one) for one in record.diagnostic_interventions])}"
        for name, record in context.records.items()
        if record.diagnostic_interventions
    ]
    return listed(lines, said("none, as the worker records say"))


def verification(context: Context) -> Section:
    """Upgrade gates, gates, the dual-path contract of each cross-stack row, receipts of the policies."""
    blocks: tuple[Block, ...] = (
        _decision(context),
        upgrade_gates(context),
        Remark(text=SEPARATE),
        *dual_paths(context),
        Remark(text=NATIVE),
        gates(context),
        _policies(context),
        _shutdown(context),
    )
    return Section(heading="Verification", blocks=blocks)


def _decision(context: Context) -> Facts:
    training = [one for one in context.judged.checks if one.id.startswith(("status.", "acceptance."))]
    later = [one for one in training if one.status is Status.NOT_RUN]
    return facts(
        "",
        ("Proxy upgrade decision", _upgrade(context)),
        ("Later training gates", listed([summary(context, one) for one in later], said("none is open"))),
    )


def _upgrade(context: Context) -> Entry:
    """Escalation needs every forward comparison at pass; anything else blocks it."""
    wanted = [f"validation.{row.id}" for row, _ in context.compared()]
    found = [context.check(name) for name in wanted]
    blocking = [summary(context, one) for one in found if one is not None and one.status is not Status.PASS]
    if not found:
        return said("no escalation: no forward comparison was asked for")
    if blocking or None in found:
        return said("no escalation: these forward comparisons are open or failed", *blocking)
    return said("the forward comparisons allow it; a person decides")


def _policies(context: Context) -> Grid:
    """One receipt per policy; without two updates there is none, and no other run stands in for one."""
    reason = _theta_reason(context)
    head = ("Policy", "Input / mask identity", "Valid token count", "Original-byte mismatches",
            "Actual trainer-forward execution", "Update norm / count")  # fmt: skip
    rows = [(f"\u03b8{index}", tuple(reason for _ in head[1:])) for index in range(3)]
    return grid("Receipts of two-update RL", head, rows)


def _theta_reason(context: Context) -> Entry:
    measured = [one for one in context.statuses if one.status_name == "theta0_2" and one.id]
    entry = of_check(context, "status.theta0_2")
    if measured:
        return said(f"{entry.text}; one receipt per policy is not recorded", *(one.id for one in measured))
    return entry


def _shutdown(context: Context) -> Facts:
    lines = [f"run {name}: {ended(context, name)}" for name in context.dossier.runs]
    return facts(
        "Worker exit, checked at final shutdown",
        ("Exit of every run", listed(lines, not_run("no worker was run"))),
        ("Artifacts of the runs", _artifacts(context)),
    )


def ended(context: Context, name: str) -> str:
    """How a run ended: exit code, signal, time limit."""
    run = context.dossier.runs[name]
    if run.timed_out:
        return "ended by our time limit"
    if run.signal is not None:
        return f"ended by signal {run.signal}"
    return "exit code unknown" if run.exit_code is None else f"exit code {run.exit_code}"


def _artifacts(context: Context) -> Entry:
    lines = [artifact_line(one) for run in context.dossier.runs.values() for one in run.outputs]
    return listed(lines, not_run(NOTHING_MEASURES))
