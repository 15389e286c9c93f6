"""What the sections of the report are filled from, and the few ways in which they ask for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from tic_manifest.errors import RefusedError
from tic_manifest.formats.strict_json import load_json, read_model
from tic_manifest.model.base import Digest
from tic_manifest.model.delivery import (
    ImageRow,
    PullRequestRow,
    RecipeRow,
    Statement,
    ValidationRow,
    ValidationStatus,
)
from tic_manifest.model.document import Entry, not_run, said, unknown, unverified
from tic_manifest.model.oci import JudgedImage
from tic_manifest.model.receipt import Artifact, WorkerRun
from tic_manifest.model.recipe import Comparison
from tic_manifest.model.record import WorkerRecord
from tic_manifest.model.verdict import Check, Finding, State, Status
from tic_manifest.rules.delivery import Judged
from tic_manifest.rules.dossier import Dossier

WORDS = {
    Status.PASS: "pass",
    Status.FAIL: "fail",
    Status.INCONCLUSIVE: "inconclusive",
    Status.NOT_RUN: "not run",
}
NOTHING_MEASURES = "no run of this delivery measures it"
_ORDER = (Status.FAIL, Status.INCONCLUSIVE, Status.NOT_RUN, Status.PASS)


@dataclass(frozen=True, kw_only=True)
class Context:
    """Evidence of one delivery, judged.

    `attached` is the delivery manifest with the digest of its bytes, when there is one. `records` and
    `observations` are by run: a worker's own words, and what the probe agent saw of it.
    """

    dossier: Dossier
    judged: Judged
    image: JudgedImage
    attached: tuple[Statement, Digest] | None
    records: Mapping[str, WorkerRecord]
    observations: Mapping[str, dict[str, JsonValue]]

    def check(self, check_id: str) -> Check | None:
        """A check by its id."""
        return next((one for one in self.judged.checks if one.id == check_id), None)

    @property
    def required(self) -> list[Check]:
        """The checks that count."""
        return [one for one in self.judged.checks if one.state is State.REQUIRED]

    @property
    def out_of_scope(self) -> list[Check]:
        """The checks that are unverified, whatever was seen."""
        return [one for one in self.judged.checks if one.state is State.OUT_OF_SCOPE]

    def findings(self, check: Check) -> list[Finding]:
        """Findings that say what a check is about: same subject, or the check's own name as subject."""
        names = {check.subject, check.id} - {""}
        return [one for one in self.judged.findings if not one.note and one.subject in names]

    def pulls(self) -> list[PullRequestRow]:
        """Every row of a pull request, in the order of the delivery manifest."""
        return [row for row in self.judged.rows if isinstance(row, PullRequestRow)]

    @property
    def image_row(self) -> ImageRow:
        """The row of the unified image."""
        return next(row for row in self.judged.rows if isinstance(row, ImageRow))

    @property
    def recipe_row(self) -> RecipeRow:
        """The row of the approved recipe."""
        return next(row for row in self.judged.rows if isinstance(row, RecipeRow))

    @property
    def statuses(self) -> tuple[ValidationStatus, ...]:
        """Statuses of final validation and their comparisons."""
        return next(row for row in self.judged.rows if isinstance(row, ValidationRow)).statuses

    def compared(self, *kinds: str) -> list[tuple[Comparison, ValidationStatus | None]]:
        """Comparisons of the recipe (of some kinds), each with what was measured."""
        measured = {one.id: one for one in self.statuses if one.id}
        wanted = self.dossier.lock.recipe.validation.comparisons
        return [(row, measured.get(row.id)) for row in wanted if not kinds or row.kind in kinds]


def make_context(
    dossier: Dossier, judged: Judged, image: JudgedImage, attached: tuple[Statement, Digest] | None
) -> Context:
    """Read records and observations of every run. What cannot be read is left out, and shown as unknown."""
    runs = dossier.runs.values()
    records = {run.name: record for run in runs if (record := _record(dossier, run)) is not None}
    seen = {run.name: data for run in runs if (data := _observation(dossier, run)) is not None}
    return Context(
        dossier=dossier, judged=judged, image=image, attached=attached, records=records, observations=seen
    )


def _record(dossier: Dossier, run: WorkerRun) -> WorkerRecord | None:
    raw = dossier.output(run, "record.json")
    try:
        return read_model(raw, WorkerRecord, f"runs/{run.name}/record.json") if raw is not None else None
    except RefusedError:
        return None


def _observation(dossier: Dossier, run: WorkerRun) -> dict[str, JsonValue] | None:
    raw = dossier.output(run, "probe.json")
    try:
        data = load_json(raw, f"runs/{run.name}/probe.json", max_bytes=256 << 20) if raw is not None else None
    except RefusedError:
        return None
    return data if isinstance(data, dict) else None


def of_check(context: Context, check_id: str, *lines: str) -> Entry:
    """Status of a check with reason or codes, and lines of evidence; `not_run` where there is none."""
    check = context.check(check_id)
    if check is None:
        return (
            said("not run: no check of this delivery decides it", *lines)
            if lines
            else not_run(NOTHING_MEASURES)
        )
    return of_status(check, _codes(context, check), lines)


def of_checks(context: Context, ids: Iterable[str], *lines: str) -> Entry:
    """The worst of several checks, each named with its own status."""
    found = [one for name in ids if (one := context.check(name)) is not None]
    if not found:
        return not_run(NOTHING_MEASURES)
    if all(one.state is State.OUT_OF_SCOPE for one in found):
        return said("unverified: out of scope", *lines)
    counted = [one for one in found if one.state is State.REQUIRED]
    worst = min(counted, key=lambda one: _ORDER.index(one.status)).status
    return said(WORDS[worst], *(summary(context, one) for one in found), *lines)


def of_status(check: Check, codes: str, lines: tuple[str, ...]) -> Entry:
    """A check as an entry: out of scope is unverified, not run has its reason."""
    reason = check.reason or codes
    if check.state is State.OUT_OF_SCOPE:
        gap = unverified(f"out of scope; {reason}" if reason else "out of scope")
        return said(gap.text, *lines) if lines else gap
    if check.status is Status.NOT_RUN:
        gap = not_run(reason or "no reason was recorded")
        return said(gap.text, *lines) if lines else gap
    words = WORDS[check.status]
    return said(f"{words}: {reason}" if reason and check.status is not Status.PASS else words, *lines)


def summary(context: Context, check: Check) -> str:
    """A check on one line: id, status, and its reason or the codes that say it."""
    status = "unverified" if check.state is State.OUT_OF_SCOPE else WORDS[check.status]
    why = check.reason or _codes(context, check)
    return f"{check.id}: {status}" + (f" ({why})" if why and check.status is not Status.PASS else "")


def _codes(context: Context, check: Check) -> str:
    return ", ".join(dict.fromkeys(one.code for one in context.findings(check)))


def artifact_line(artifact: Artifact) -> str:
    """An artifact by name, digest and size."""
    return f"{artifact.name}: {artifact.digest} ({artifact.size} bytes)"


def argv(command: Iterable[str]) -> str:
    """A command as a JSON list, so that no shell reads it otherwise."""
    return json.dumps(list(command), ensure_ascii=False)


def compact(value: JsonValue) -> str:
    """A plain value on one line; null is unknown."""
    if isinstance(value, str):
        return value
    return "unknown" if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)


def inside(data: JsonValue, *path: str) -> JsonValue:
    """The value at a path of keys, or None where any step is not there."""
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def rows_of(data: JsonValue, *path: str) -> list[dict[str, JsonValue]]:
    """The objects of a list at a path; empty where it is no list."""
    found = inside(data, *path)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def extra(record: WorkerRecord, *path: str) -> JsonValue:
    """A key of the worker's own in its record."""
    own: JsonValue = dict(record.model_extra or {})
    return inside(own, *path)


def per_record(context: Context, *path: str, role: str = "") -> list[str]:
    """`run NAME: VALUE` for every record that holds the path; a worker's own words."""
    found = [
        (name, extra(record, *path))
        for name, record in context.records.items()
        if not role or record.role == role
    ]
    return [f"run {name}: {compact(value)}" for name, value in found if value is not None]


def no_record(context: Context, what: str) -> Entry:
    """Why no record says something."""
    if not context.records:
        return not_run("no worker record is in the evidence")
    return unknown(f"no worker record names {what}")
