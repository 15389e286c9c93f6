"""Sections on corrections and retention, remaining work, and the experiment record."""

from __future__ import annotations

from typing import Any

import yaml

from tic_manifest.model.codes import lookup
from tic_manifest.model.delivery import ValidationStatus
from tic_manifest.model.document import Entry, Listing, Section, facts, listed, not_run, said
from tic_manifest.model.recipe import Comparison
from tic_manifest.model.verdict import Finding, Status
from tic_manifest.stages.report_context import Context, argv, of_check, per_record, summary
from tic_manifest.stages.report_delivery import delivery_gaps

PURPOSE = "frozen-policy old-logprob replay"
TARGET = "bitwise selected-token raw logprob"


def corrections(context: Context) -> Section:
    """What an earlier delivery manifest said otherwise, and what is kept."""
    files = context.dossier.files
    block = facts(
        "",
        ("Superseded claims, correcting artifact and reason", _superseded(context)),
        ("Original failure bundles", of_check(context, "acceptance.failure_bundles")),
        ("Checkpoints", _checkpoints(context)),
        (
            "Small receipts",
            listed(sorted(f"{name}: {len(files[name])} bytes" for name in files), not_run("none")),
        ),
        ("Storage budget / location", _location(context)),
        ("Missing eval steps", of_check(context, "status.quality")),
        ("Curves with a different policy lineage", said("none: this report holds no curve")),
    )
    return Section(heading="Evidence corrections and retention", blocks=(block,))


def _superseded(context: Context) -> Entry:
    if context.attached is None:
        return not_run("no delivery manifest is attached to the image")
    statement, digest = context.attached
    old = statement.predicate.supersedes
    if old is None:
        return said("none: the delivery manifest is the first of its image")
    return said(
        "the earlier delivery manifest is history; reason unknown: none is recorded",
        f"superseded delivery manifest digest: {old}",
        f"correcting delivery manifest digest: {digest}",
    )


def _checkpoints(context: Context) -> Entry:
    names = {file for record in context.records.values() for file in record.checkpoint}
    if not names:
        return not_run("no worker record names a checkpoint")
    return said("by digest under Checkpoint / policy identity; their bytes are not part of the evidence")


def _location(context: Context) -> Entry:
    total = sum(len(data) for data in context.dossier.files.values())
    there = "attached to the image by digest" if context.attached else "in the work folder, not attached"
    return said(
        f"{total} bytes of evidence, {there}; no budget is named by the recipe",
        f"platform manifest digest: {context.image.platform_digest}",
    )


def remaining(context: Context) -> Section:
    """Every required check that is not pass, the first thing to do about it, and what is still in place."""
    gaps = [one for one in context.required if one.status is not Status.PASS]
    block = facts(
        "",
        (
            "Concrete gaps",
            listed([summary(context, one) for one in gaps], said("none among the required checks")),
        ),
        ("Delivery gaps (files without an owner)", delivery_gaps(context)),
        ("Smallest next experiment", _next(context)),
        ("Production hooks / config restored", of_check(context, "acceptance.restored")),
        ("Raw evidence kept", _raw(context)),
        ("Historical or partial results", _historical(context)),
    )
    return Section(heading="Remaining work", blocks=(block,))


def _historical(context: Context) -> Entry:
    """Evidence of another lock, image or run is stale; this check says whether there is any."""
    check = context.check("delivery.bound")
    lines = [summary(context, check)] if check else []
    return said("never upgraded: what is not bound to this platform manifest counts for nothing", *lines)


def _next(context: Context) -> Entry:
    """The remedy of the first problem, a fail before an inconclusive one before one that was not run."""
    order = (Status.FAIL, Status.INCONCLUSIVE, Status.NOT_RUN)
    open_rows = [one for one in context.judged.findings if not one.note and one.status in order]
    if not open_rows:
        return said("none: no finding is open")
    first: Finding = min(open_rows, key=lambda one: order.index(one.status))
    todo = first.remedy or lookup(first.code).remedy
    return said("", f"{first.code} {first.subject}: {first.what}", f"to do: {todo}")


def _raw(context: Context) -> Entry:
    kept = [name for name in context.dossier.files if name.startswith("runs/")]
    if not kept:
        return not_run("no output of a run is in the evidence")
    return said(f"{len(kept)} outputs of {len(context.dossier.runs)} runs are in the evidence, by digest")


def experiment_record(context: Context) -> Section:
    """The YAML record: three variants that differ in one thing each."""
    text = (
        "# Train-inference consistency replay experiment record: each variant changes only one variable, "
        "everything else is fixed.\n"
    )
    body = yaml.safe_dump(_record(context), sort_keys=False, allow_unicode=False, width=1 << 20)
    return Section(heading="Experiment record (YAML)", blocks=(Listing(language="yaml", text=text + body),))


def _record(context: Context) -> dict[str, Any]:
    image = context.image_row
    return {
        "purpose": PURPOSE,
        "target": TARGET,
        "rollout": _rollout(context),
        "checkpoint": _checkpoint_line(context),
        "environment": _environment(context),
        "topology": {role: _topology(context, role) for role in ("trainer", "rollout")},
        "state": _state(context),
        "budget": _budget(context),
        "variants": _variants(context, image.platform_digest),
    }


def _rollout(context: Context) -> str:
    found = [name for name, run in context.dossier.runs.items() if run.role == "rollout"]
    return (
        f"output folder of run {found[0]}, by digest in its receipt"
        if found
        else "not run: no rollout was run"
    )


def _checkpoint_line(context: Context) -> str:
    files = {(file, sha) for record in context.records.values() for file, sha in record.checkpoint.items()}
    return (
        ", ".join(f"{file} sha256:{sha}" for file, sha in sorted(files))
        or "not run: no record names a checkpoint"
    )


def _environment(context: Context) -> dict[str, Any]:
    hosts = sorted({receipt.host.cpu_model for receipt in context.dossier.receipts.values()})
    return {
        "platform manifest digest": context.image.platform_digest,
        "sources": {one.name: one.head for one in context.pulls()},
        "patches": "see Dirty patch hashes",
        "GPU": "unknown: receipts name no GPU",
        "hosts": hosts or ["not run: no receipt names a host"],
    }


def _topology(context: Context, role: str) -> str:
    lines = per_record(context, "topology", role=role)
    return ", ".join(lines) or f"unknown: no {role} record names TP/PP/CP/EP/DP"


def _state(context: Context) -> str:
    lines = [line for key in ("sampling", "state") for line in per_record(context, key)]
    return ", ".join(lines) or "unknown: no record names RNG, buffers, caches or a reset policy"


def _budget(context: Context) -> dict[str, Any]:
    workers = context.dossier.lock.recipe.workers
    validate = {name: one for name, one in workers.items() if one.stage == "validate"}
    seconds = max((one.timeout_seconds for one in validate.values()), default=None)
    return {"max_runs": len(validate) or "unknown", "timeout_seconds": seconds or "unknown"}


def _variants(context: Context, digest: str) -> list[dict[str, Any]]:
    """A and B are the two sides of the first A/A comparison, C the treated side of the first A/C."""
    pairs = context.compared("inference_only")
    control = next((pair for pair in pairs if pair[0].treatment == "none"), None)
    treated = next((pair for pair in pairs if pair[0].treatment != "none"), None)
    return [
        _variant(context, "A", "none (A/A baseline)", control, "left"),
        _variant(context, "B", "none (A/A repeat)", control, "right"),
        _variant(context, "C", treated[0].treatment if treated else "packing reversed", treated, "right"),
    ]


def _variant(
    context: Context,
    name: str,
    change: str,
    pair: tuple[Comparison, ValidationStatus | None] | None,
    side: str,
) -> dict[str, Any]:
    if pair is None:
        reason = "not run: the recipe asks for no such comparison"
        return {
            "name": name,
            "change": change,
            "cmd": reason,
            "output": reason,
            "exit": None,
            "result": reason,
        }
    row, measured = pair
    run_name, _, scores = (row.left if side == "left" else row.right).partition("/")
    run = context.dossier.runs.get(run_name)
    return {
        "name": name,
        "change": change,
        "cmd": argv(run.command) if run else "not run",
        "output": _output(context, run_name, scores),
        "exit": run.exit_code if run else None,
        "result": _result(context, row, measured),
    }


def _output(context: Context, run_name: str, scores: str) -> str:
    record = context.records.get(run_name)
    found = record.score_files().get(scores) if record else None
    return f"{found.file} sha256:{found.sha256}" if found else "not run: no score file is in the evidence"


def _result(context: Context, row: Comparison, measured: ValidationStatus | None) -> str:
    entry = of_check(context, f"validation.{row.id}")
    if measured is None or measured.valid_tokens is None:
        return f"{row.id}: {entry.text}"
    return f"{row.id}: {entry.text}; {measured.mismatches} of {measured.valid_tokens} valid tokens differ"
