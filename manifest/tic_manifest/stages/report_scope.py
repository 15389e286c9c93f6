"""Sections "Outcome and scope" and "Immutable experiment" of the report."""

from __future__ import annotations

from tic_manifest.model.document import Entry, Facts, Remark, Section, facts, listed, not_run, said, unknown
from tic_manifest.model.verdict import Check, Outcome, Status
from tic_manifest.stages.report_context import (
    Context,
    argv,
    artifact_line,
    compact,
    no_record,
    of_check,
    per_record,
    summary,
)
from tic_manifest.stages.report_identity import identities

NOBODY = "nobody approved it"


def outcome_and_scope(context: Context, outcome: Outcome) -> Section:
    """Outcome, what was measured, and the checklist that a person approved."""
    blocks = (
        _outcome(context, outcome),
        _measured(context),
        _checklist(context),
        Remark(
            text="Out-of-scope checks are unverified, not passed; finishing the short run does not complete "
            "missing required checks."
        ),
    )
    return Section(heading="Outcome and scope", blocks=blocks)


def _outcome(context: Context, outcome: Outcome) -> Facts:
    open_rows = [one for one in context.required if one.status is not Status.PASS]
    return facts(
        "",
        ("Outcome for the requested scope", said(outcome.value)),
        ("Reasons", _rows(context, open_rows, said("every required check is pass"))),
        ("Requested scope", listed([one.id for one in context.required], not_run("no check is required"))),
    )


def _rows(context: Context, checks: list[Check], empty: Entry) -> Entry:
    return listed([summary(context, one) for one in checks], empty)


def _measured(context: Context) -> Facts:
    records = context.records
    samples = [f"run {name}: requests: {len(record.lengths)}" for name, record in records.items()]
    dtypes = [f"run {name}: {record.dtype} scores" for name, record in records.items()]
    return facts(
        "",
        ("Model / layers", _model(context)),
        ("Independent samples", listed(samples, no_record(context, "samples"))),
        ("Valid tokens", _tokens(context)),
        ("Dtype", listed(dtypes, no_record(context, "a dtype"))),
        ("Topology", _topology(context)),
        ("Graph / cache paths", _graph(context)),
        ("Update count", _updates(context)),
        ("Untested conditions", _untested(context)),
    )


def _model(context: Context) -> Entry:
    lines = [*per_record(context, "model"), *per_record(context, "backends", "model")]
    return listed(lines, no_record(context, "model and layers"))


def _tokens(context: Context) -> Entry:
    lines = [
        f"{one.id}: {one.valid_tokens} valid tokens"
        for one in context.statuses
        if one.valid_tokens is not None
    ]
    return listed(lines, not_run("no comparison was measured"))


def _topology(context: Context) -> Entry:
    lines = per_record(context, "topology")
    workers = context.recipe_row.topology
    if lines:
        return said("", *lines)
    return said(
        "parallel sizes unknown: no worker record names them", f"workers of the recipe: {workers or 'none'}"
    )


def _graph(context: Context) -> Entry:
    keys = ("enforce_eager", "engine", "mode", "cache")
    lines = [f"{key}: {line}" for key in keys for line in per_record(context, key)]
    return listed(lines, no_record(context, "graph or cache paths"))


def _updates(context: Context) -> Entry:
    """One `update` of a record is one optimizer step of that run; nothing else is counted."""
    lines = [
        f"run {name}: 1 optimizer step"
        for name, record in context.records.items()
        if isinstance((record.model_extra or {}).get("update"), dict)
    ]
    return listed(lines, not_run("no worker record holds an optimizer step"))


def _untested(context: Context) -> Entry:
    rows = [one for one in context.judged.checks if one.status is Status.NOT_RUN]
    rows += [one for one in context.out_of_scope if one not in rows]
    return _rows(context, rows, said("none: every check was run"))


def _checklist(context: Context) -> Facts:
    row = context.recipe_row
    return facts(
        "Human-approved acceptance checklist",
        ("Acceptance checklist", said("", artifact_line(row.checklist))),
        ("Approval", approval(context)),
        ("Required checks", _rows(context, context.required, not_run("no check is required"))),
        ("Out-of-scope checks (unverified)", _rows(context, context.out_of_scope, said("none"))),
        ("Recipe revision", said("", f"recipe digest: {row.script.digest}")),
        ("Two-update stop condition", of_check(context, "status.theta0_2")),
        ("Quality coverage", of_check(context, "status.quality")),
        ("Resume coverage", of_check(context, "acceptance.resume")),
        ("Target-repository submission requirements", of_check(context, "acceptance.submission")),
    )


def approval(context: Context) -> Entry:
    """Who approved, when, and by which file; a self-declared name is said to be one."""
    row, given = context.recipe_row, context.dossier.approval
    if given is None or row.approval is None:
        return not_run(f"{NOBODY} (no approval file in the evidence)")
    status = of_check(context, "approval")
    words = f"{status.text}; self-declared, not signed"
    return said(
        words, f"approved by: {given.approved_by}", f"at: {given.approved_at}", artifact_line(row.approval)
    )


def immutable_experiment(context: Context) -> Section:
    """What was run, on which bytes, and whether they are those that are delivered."""
    blocks = (_sources(context), _inputs(context), identities(context), _workload(context), _budgets(context))
    return Section(heading="Immutable experiment", blocks=blocks)


def _sources(context: Context) -> Facts:
    return facts(
        "",
        (
            "Source commits",
            listed([_commit(one) for one in context.dossier.lock.lock.pull_requests], unknown("none")),
        ),
        ("Dirty patch hashes", _patches(context)),
        ("Loaded libraries", said("see the four identities below")),
        ("Image digest", image_digests(context)),
        ("GPU", _gpu(context)),
    )


def _commit(pull: object) -> str:
    name, head, tree, base = (getattr(pull, key) for key in ("name", "head", "head_tree", "base"))
    return f"{name}: head commit {head}, head tree {tree}, base commit {base}"


def _patches(context: Context) -> Entry:
    """A source without a patch is one whose wheel was built from the very tree of the pinned head."""
    built = {row.name: row for row in context.pulls()}
    if not any(row.wheel for row in built.values()):
        return not_run("no build receipt names the trees that wheels were built from")
    lines = []
    for name, row in built.items():
        same = row.wheel is not None and row.wheel.tree == row.tree
        told = "none: the wheel was built from the tree of the head" if same else "not shown to be clean"
        lines.append(f"{name}: {told}")
    return said("", *lines)


def image_digests(context: Context) -> Entry:
    """Every digest of the image with the kind of document it names."""
    row = context.image_row
    lines = [f"platform manifest digest: {row.platform_digest}"]
    lines.append(
        f"image index digest: {row.index_digest}" if row.index_digest else "image index digest: none"
    )
    return said("", *lines, f"config digest: {row.config_digest}", f"platform: {row.platform}")


def _gpu(context: Context) -> Entry:
    hosts = {stage: receipt.host for stage, receipt in context.dossier.receipts.items()}
    if not hosts:
        return not_run("no receipt names a host")
    lines = [
        f"{stage}: {host.machine}, {host.cpu_model}, kernel {host.kernel}" for stage, host in hosts.items()
    ]
    return said("unknown: receipts name no GPU; their hosts are", *lines)


def _inputs(context: Context) -> Facts:
    return facts(
        "",
        ("Checkpoint / policy identity", _checkpoint(context)),
        ("Input bundle digest", _bundle(context)),
        ("Score semantics", _semantics(context)),
        ("Resolved config", said("", artifact_line(context.recipe_row.resolved))),
        ("Commands", _commands(context)),
        ("Resource budget", _resources(context)),
        ("Artifacts", _artifacts(context)),
    )


def _checkpoint(context: Context) -> Entry:
    files = {
        f"{file}: sha256:{sha256}"
        for record in context.records.values()
        for file, sha256 in record.checkpoint.items()
    }
    return listed(sorted(files), no_record(context, "a checkpoint"))


def _bundle(context: Context) -> Entry:
    lines = [f"run {name}: tokens sha256:{one.tokens_sha256}" for name, one in context.records.items()]
    return listed(lines, no_record(context, "its tokens"))


def _semantics(context: Context) -> Entry:
    lines = []
    for name, record in context.records.items():
        quantity = compact((record.model_extra or {}).get("quantity"))
        sampling = (record.model_extra or {}).get("sampling")
        told = f", sampling {compact(sampling)}" if sampling is not None else ""
        lines.append(f"run {name}: {quantity}, {record.dtype}, {record.byte_order} endian{told}")
    return listed(lines, no_record(context, "its scores"))


def _commands(context: Context) -> Entry:
    lines = [f"run {name}: {argv(run.command)}" for name, run in context.dossier.runs.items()]
    build = context.dossier.build
    return listed([*([f"build: {argv(build.command)}"] if build else []), *lines], not_run("nothing was run"))


def _resources(context: Context) -> Entry:
    workers = context.dossier.lock.recipe.workers
    lines = [
        f"run {name}: at most {one.timeout_seconds} s, shared memory {one.shm_mib} MiB"
        for name, one in workers.items()
    ]
    return listed(lines, unknown("the recipe names no worker"))


def _artifacts(context: Context) -> Entry:
    found = [context.dossier.artifact(name) for name in sorted(context.dossier.files)]
    return listed([artifact_line(one) for one in found if one], not_run("there is no evidence file"))


def _workload(context: Context) -> Facts:
    return facts(
        "Recipe work",
        ("Training context", of_check(context, "acceptance.training_context")),
        ("Rollout length distribution", _lengths(context)),
        ("Concurrency", listed(per_record(context, "concurrency"), no_record(context, "concurrency"))),
        ("Packing / token batch", _packing(context)),
        (
            "Hardware / interconnect",
            said("interconnect unknown: no receipt names one; hardware as under GPU"),
        ),
        *_dtypes(context),
        (
            "Quantization granularity",
            listed(per_record(context, "quantization"), no_record(context, "quantization")),
        ),
        (
            "Scale / update rules",
            listed(per_record(context, "scale_rules"), no_record(context, "scale rules")),
        ),
    )


def _lengths(context: Context) -> Entry:
    lines = []
    for name, record in context.records.items():
        valid = [sum(row) for row in record.mask]
        if valid:
            span = f"{min(valid)} to {max(valid)} valid tokens"
            lines.append(f"run {name}: requests: {len(valid)}; {span} each, {sum(valid)} in all")
    return listed(lines, no_record(context, "lengths"))


def _packing(context: Context) -> Entry:
    lines = []
    for name, record in context.records.items():
        totals = [sum(entry.tokens for entry in step) for step in record.batches]
        largest = (
            f"{len(totals)} recorded batches, at most {max(totals)} tokens" if totals else "no recorded batch"
        )
        lines.append(f"run {name}: packing {record.packing or 'unknown'}, {largest}")
    return listed(lines, no_record(context, "packing"))


def _dtypes(context: Context) -> tuple[tuple[str, Entry], ...]:
    names = ("master", "deployment", "activation", "KV", "accumulation", "gradient")
    return tuple(
        (
            f"{name[0].upper()}{name[1:]} dtype",
            listed(per_record(context, "dtypes", name.lower()), no_record(context, f"the {name} dtype")),
        )
        for name in names
    )


def _budgets(context: Context) -> Facts:
    rows = {row.id: row for row in context.dossier.lock.recipe.acceptance}
    lines = [
        f"{name}: limit {row.limit} ({row.rationale})" for name, row in rows.items() if row.limit is not None
    ]
    names = ("quality", "throughput", "memory")
    budgets = [
        (f"{name.capitalize()} budget defined before testing", _budget(context, name)) for name in names
    ]
    return facts(
        "Budgets",
        *budgets,
        ("Other limits of the checklist", listed(lines, said("none"))),
    )


def _budget(context: Context, name: str) -> Entry:
    row = next((one for one in context.dossier.lock.recipe.acceptance if one.id == name), None)
    if row is None or row.limit is None:
        return unknown(
            "the checklist names no limit; unknown budgets stay unaccepted even when measurements exist"
        )
    return said("", f"limit {row.limit}: {row.rationale}")
