"""The dual-path contract: for each cross-stack comparison, what both sides really were."""

from __future__ import annotations

from tic_manifest.model.delivery import ValidationStatus
from tic_manifest.model.document import Entry, Facts, facts, listed, not_run, said, unknown
from tic_manifest.model.recipe import Comparison
from tic_manifest.model.record import TensorFacts, WorkerRecord
from tic_manifest.stages.report_context import Context, compact, extra, of_check
from tic_manifest.stages.report_scope import image_digests


def dual_paths(context: Context) -> tuple[Facts, ...]:
    """One block per cross-stack comparison; where the recipe asks for none, one block that says so."""
    found = tuple(_path(context, row, measured) for row, measured in context.compared("cross_stack"))
    missing = facts(
        "Dual-path contract", ("Cross-stack rows", not_run("the recipe asks for no cross-stack comparison"))
    )
    return found or (missing,)


def _path(context: Context, row: Comparison, measured: ValidationStatus | None) -> Facts:
    sides = _sides(context, row)
    return facts(
        f"Dual-path contract: {row.id}",
        ("Status", of_check(context, f"validation.{row.id}")),
        ("Sides", said("", f"left: {row.left}", f"right: {row.right}", f"treatment: {row.treatment}")),
        ("Score files, captured before updates and loss transforms", _files(sides)),
        ("Model geometry", _each(sides, "the model's geometry", lambda one: extra(one, "model"))),
        ("Frozen policy / checkpoint identity", _checkpoints(sides)),
        ("Source / image digest", image_digests(context)),
        ("Dtype", _each(sides, "a dtype", lambda one: one.dtype)),
        ("Topology", _each(sides, "a topology", lambda one: extra(one, "topology"))),
        ("Model / grad modes", _grad_modes(row, sides)),
        ("Output requires_grad", _requires_grad(row, sides)),
        ("Actual backends", _each(sides, "its backends", lambda one: extra(one, "backends"))),
        ("Raw logprob mismatch count", _count(measured)),
        ("First mismatch", _first(measured)),
        ("Scope limitation", said("", row.scope_limitation)),
    )


Sides = list[tuple[str, WorkerRecord | None]]


def _sides(context: Context, row: Comparison) -> Sides:
    return [(side, context.records.get(side.partition("/")[0])) for side in (row.left, row.right)]


def _each(sides: Sides, what: str, read: object) -> Entry:
    """`SIDE: VALUE` of both sides; a side that does not say is named as unknown."""
    values = [
        (side, read(record) if record is not None and callable(read) else None) for side, record in sides
    ]
    if all(value is None for _, value in values):
        return unknown(f"the records of both sides do not name {what}")
    return said("", *(f"{side}: {compact(value)}" for side, value in values))


def _checkpoints(sides: Sides) -> Entry:
    lines = [
        f"{side}: {file} sha256:{sha256}"
        for side, record in sides
        if record is not None
        for file, sha256 in sorted(record.checkpoint.items())
    ]
    return listed(lines, not_run("no record of either side is in the evidence"))


def _files(sides: Sides) -> Entry:
    """The bytes that were compared, by digest; that they were captured in time is the worker's own word."""
    lines = []
    for side, record in sides:
        found = record.score_files().get(side.partition("/")[2]) if record is not None else None
        if found is not None:
            lines.append(f"{side}: {found.file} sha256:{found.sha256}, {found.count} values")
    return listed(lines, not_run("no score file of either side is in the evidence"))


def _facts_of(side: str, record: WorkerRecord | None) -> TensorFacts | None:
    if record is None:
        return None
    return record.grad if side.partition("/")[2] == "scores_grad" else record.no_grad


def _grad_modes(row: Comparison, sides: Sides) -> Entry:
    """The path that was asked for by the name of the score file; what the tensors say stands beside it."""
    lines = []
    for side, record in sides:
        asked = (
            "grad-enabled forward"
            if side.partition("/")[2] == "scores_grad"
            else "scores without a graph asked for"
        )
        told = _facts_of(side, record)
        ran = "calls unknown" if told is None else f"{told.calls} forward passes"
        lines.append(f"{side}: {asked}, {ran}")
    return said("", *lines)


def _requires_grad(row: Comparison, sides: Sides) -> Entry:
    lines = []
    for side, record in sides:
        told = _facts_of(side, record)
        if told is None:
            lines.append(f"{side}: unknown (the record does not say)")
        else:
            graph = ", ".join(told.grad_fn) or "none"
            lines.append(f"{side}: {str(told.requires_grad).lower()}, grad_fn {graph}")
    return said("", *lines)


def _count(measured: ValidationStatus | None) -> Entry:
    if measured is None or measured.valid_tokens is None:
        return not_run("no token was compared")
    return said("", f"{measured.mismatches} of {measured.valid_tokens} valid tokens")


def _first(measured: ValidationStatus | None) -> Entry:
    if measured is None or measured.valid_tokens is None:
        return not_run("no token was compared")
    return said("", measured.first_mismatch) if measured.first_mismatch else said("none")
