"""The six rows of the delivery manifest as lines for a terminal: one block a row, nothing cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tic_manifest.model.delivery import Cell, ImageRow, PullRequestRow, RecipeRow, Row, ValidationRow
from tic_manifest.render.escape import printable

TITLES = {"vllm": "vLLM PR", "megatron": "Megatron PR", "verl": "verl PR"}


def rows_text(rows: Sequence[Row]) -> str:
    """Every row with its identities and the status of its evidence."""
    return "".join(
        f"{head}\n{''.join(f'  {line}{chr(10)}' for line in lines)}" for head, lines in map(_row, rows)
    )


def _row(row: Row) -> tuple[str, list[str]]:
    if isinstance(row, PullRequestRow):
        return printable(f"{TITLES.get(row.row, row.row)}  {row.url}"), _shown(_pull(row))
    if isinstance(row, ImageRow):
        return "Unified image", _shown(_image(row))
    if isinstance(row, RecipeRow):
        return "Approved recipe", _shown(_recipe(row))
    return "Final validation", _shown(_validation(row))


def _shown(lines: Iterable[tuple[str, object]]) -> list[str]:
    return [printable(f"{name}: {value}") for name, value in lines if value is not None]


def _cell(cell: Cell) -> str:
    return f"{cell.status.value}{f' ({cell.reason})' if cell.reason else ''}"


def _pull(row: PullRequestRow) -> Iterable[tuple[str, object]]:
    yield "target", f"{row.owner}/{row.repo}:{row.branch}"
    yield "base commit", row.base
    yield "head commit", row.head
    yield "head tree", row.tree
    if row.wheel:
        yield "wheel", f"{row.wheel.file} {row.wheel.digest}"
        yield "native code", row.wheel.native
    yield "gate", _cell(row.gate)
    yield "build", _cell(row.build)


def _image(row: ImageRow) -> Iterable[tuple[str, object]]:
    yield "base platform manifest digest", row.base_platform_digest
    yield "final platform manifest digest", row.platform_digest
    yield "image index digest", row.index_digest
    yield "pinned dependencies", len(row.pins)
    yield "build log", row.build_log.digest if row.build_log else "not run"
    yield "trainer observed", ", ".join(one.digest for one in row.trainer) or "not run"
    yield "rollout observed", ", ".join(one.digest for one in row.rollout) or "not run"
    yield "build", _cell(row.build)
    yield "probe", _cell(row.probe)


def _recipe(row: RecipeRow) -> Iterable[tuple[str, object]]:
    yield "recipe digest", row.script.digest
    yield "resolved configuration digest", row.resolved.digest
    yield "acceptance checklist digest", row.checklist.digest
    yield "approved by", row.approved_by or "nobody"
    yield "approval", _cell(row.approved)


def _validation(row: ValidationRow) -> Iterable[tuple[str, object]]:
    for one in row.statuses:
        if not one.id:
            yield one.status_name, _cell(one.result)
            continue
        count = (
            ""
            if one.valid_tokens is None
            else f", {one.mismatches} of {one.valid_tokens} valid tokens differ"
        )
        first = f", first at {one.first_mismatch}" if one.first_mismatch else ""
        yield f"  {one.id}", f"{_cell(one.result)}{count}{first}"
