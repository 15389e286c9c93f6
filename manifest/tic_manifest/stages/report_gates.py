"""The two tables of the section "Verification": proxy upgrade gates, and gates."""

from __future__ import annotations

from tic_manifest.model.delivery import ValidationStatus
from tic_manifest.model.document import Entry, Grid, grid, listed, not_run, said
from tic_manifest.model.recipe import Comparison
from tic_manifest.model.verdict import Status
from tic_manifest.stages.report_context import (
    Context,
    argv,
    artifact_line,
    inside,
    of_check,
    of_checks,
)

UPGRADE_HEAD = (
    "Proxy upgrade gate",
    "Status (pass/fail/inconclusive/not run)",
    "Bound command / artifact and valid-token count",
    "Decision",
)
HEAD = ("Gate", "Command / artifact", "Result and count", "Scope limitation")
NO_CLAIM = "nothing is claimed beyond the result"
Pair = tuple[Comparison, ValidationStatus | None]
Row = tuple[str, tuple[Entry, ...]]


def upgrade_gates(context: Context) -> Grid:
    """The six rows; inference-only and cross-stack comparisons never share one."""
    proxies = [pair for pair in context.compared() if pair[0].status == "proxy"]
    inference = [pair for pair in proxies if pair[0].kind == "inference_only"]
    cross = [pair for pair in proxies if pair[0].kind == "cross_stack"]
    graded = [pair for pair in cross if _grad_enabled(pair[0])]
    quiet = [pair for pair in cross if pair not in graded]
    rows = [
        _unmeasured("Proxy feature/operator coverage", context, "acceptance.proxy_coverage"),
        _comparisons("Proxy inference BI and prefill/decode parity", context, inference),
        _comparisons("Proxy inference \u2194 native old-logprob recomputation", context, quiet),
        _comparisons("Proxy inference \u2194 actual grad-enabled actor forward", context, graded),
        _unmeasured("Backward / SFT / RL, if in proxy scope", context, "acceptance.backward"),
        _upgrade(context, [inference, quiet, graded]),
    ]
    return grid("", UPGRADE_HEAD, rows)


def _grad_enabled(row: Comparison) -> bool:
    """A side that is read from the grad-enabled forward's scores (worker record, `scores_grad`)."""
    return any(side.partition("/")[2] == "scores_grad" for side in (row.left, row.right))


def _unmeasured(label: str, context: Context, check_id: str) -> Row:
    status = of_check(context, check_id)
    return label, (status, not_run("no command and no artifact"), _decision(status))


def _comparisons(label: str, context: Context, pairs: list[Pair]) -> Row:
    if not pairs:
        status = not_run("the recipe asks for no such comparison")
        return label, (status, not_run("no command and no artifact"), _decision(status))
    status = of_checks(context, [f"validation.{row.id}" for row, _ in pairs])
    return label, (status, _bound(context, pairs), _decision(status))


def _bound(context: Context, pairs: list[Pair]) -> Entry:
    commands = [line for row, _ in pairs for line in _commands(context, row)]
    counted = [line for row, measured in pairs for line in _counted(row, measured)]
    return listed(list(dict.fromkeys([*commands, *counted])), not_run("no command and no artifact"))


def _commands(context: Context, row: Comparison) -> list[str]:
    names = dict.fromkeys(side.partition("/")[0] for side in (row.left, row.right))
    return [
        f"run {name}: {argv(context.dossier.runs[name].command)}"
        for name in names
        if name in context.dossier.runs
    ]


def _counted(row: Comparison, measured: ValidationStatus | None) -> list[str]:
    if measured is None or measured.valid_tokens is None:
        return [f"{row.id}: no token was compared"]
    counts = f"{row.id}: {measured.valid_tokens} valid tokens, {measured.mismatches} mismatches"
    return [counts, *(f"{row.id}: {artifact_line(one)}" for one in measured.artifacts)]


def _decision(status: Entry) -> Entry:
    """Only a pass blocks nothing; out of scope proves nothing either."""
    if status.missing == "unverified" or status.words.startswith("unverified"):
        return said("no escalation on it: unverified")
    return said("does not block" if status.words == "pass" else "blocks escalation")


def _upgrade(context: Context, groups: list[list[Pair]]) -> Row:
    checks = [context.check(f"validation.{row.id}") for pairs in groups for row, _ in pairs]
    good = all(groups) and all(one is not None and one.status is Status.PASS for one in checks)
    status = of_check(context, "status.full_zero_update")
    words = (
        "a person decides; nothing here starts it" if good else "no: forward comparisons are open or failed"
    )
    return "Upgrade to full-model BI work", (
        status,
        not_run("no full-model run is in the evidence"),
        said(words),
    )


def gates(context: Context) -> Grid:
    """The eleven rows of the second table."""
    rows = [
        _gate("Original failing replay", context, "acceptance.replay"),
        _gate("Operator / metadata regression", context, "acceptance.regression"),
        _layouts(context),
        _gate("Independent module VJP and one optimizer update", context, "acceptance.vjp"),
        _gate("Controlled proxy SFT (A/B/C paths)", context, "acceptance.sft"),
        _backward(context),
        _gate("\u03b80 / \u03b81 / \u03b82 parity", context, "status.theta0_2"),
        _gate("First post-checkpoint-resume export / parity", context, "acceptance.resume"),
        _gate("Model quality", context, "status.quality"),
        _shutdown(context),
        _final_image(context),
    ]
    return grid("", HEAD, rows)


def _gate(label: str, context: Context, check_id: str) -> Row:
    nothing = not_run("no command and no artifact")
    return label, (nothing, of_check(context, check_id), said(NO_CLAIM))


def _layouts(context: Context) -> Row:
    pairs = [pair for pair in context.compared("inference_only") if pair[0].treatment != "none"]
    label = "Engine and production layouts"
    if not pairs:
        return _gate(label, context, "acceptance.layouts")
    lines = [f"{row.id}: treatment {row.treatment}" for row, _ in pairs]
    limits = listed([f"{row.id}: {row.scope_limitation}" for row, _ in pairs], said("none was written down"))
    result = of_checks(context, [f"validation.{row.id}" for row, _ in pairs], *lines)
    return label, (_bound(context, pairs), result, limits)


def _backward(context: Context) -> Row:
    """An update that a worker recorded is shown as recorded; no check of this delivery judges it."""
    lines = []
    for name, record in context.records.items():
        own = dict(record.model_extra or {})
        changed, total = inside(own, "update", "tensors_changed"), inside(own, "update", "tensors_total")
        if isinstance(changed, int) and isinstance(total, int):
            lines.append(f"run {name}: 1 update recorded, {changed} of {total} tensors changed")
    commands = [
        f"run {name}: {argv(run.command)}"
        for name, run in context.dossier.runs.items()
        if run.role == "trainer"
    ]
    result = of_check(context, "acceptance.backward", *lines)
    told = "recorded by the worker, not compared with an independent reference" if lines else NO_CLAIM
    limit = said(told)
    return "Real backward/update", (listed(commands, not_run("no trainer was run")), result, limit)


def _shutdown(context: Context) -> Row:
    runs = context.dossier.runs
    commands = [f"run {name}: {argv(run.command)}" for name, run in runs.items()]
    codes = [f"run {name}: exit code {run.exit_code}, signal {run.signal}" for name, run in runs.items()]
    result = of_check(context, "acceptance.shutdown", *[one.replace("None", "none") for one in codes])
    limit = said("a short run; a sustained run is not run")
    return "Clean shutdown / sustained run", (listed(commands, not_run("no worker was run")), result, limit)


def _final_image(context: Context) -> Row:
    label = "Final immutable image, without development overlays"
    lines = [f"platform manifest digest: {context.image.platform_digest}"]
    lines += [f"image index digest: {context.image.index_digest}"] if context.image.index_digest else []
    result = of_checks(context, ("build.hermetic", "build.layers", "delivery.bound"))
    mounts = listed(
        [f"mount: {one}" for one in context.image_row.mounts], not_run("nothing was measured in it")
    )
    return label, (said("", *lines), result, mounts)
