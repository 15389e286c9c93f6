"""A delivery judged from its evidence: everything is computed again, no recorded verdict is believed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from tic_manifest.formats.canonical import digest_of, plain
from tic_manifest.formats.lock import checklist_digest, resolved_digest
from tic_manifest.model.base import Digest
from tic_manifest.model.delivery import Row, Statement
from tic_manifest.model.oci import JudgedImage
from tic_manifest.model.recipe import Recipe
from tic_manifest.model.verdict import Check, Finding, State, Status, check_of, finding, note
from tic_manifest.rules.delivery_build import judge_build
from tic_manifest.rules.delivery_gate import judge_gate
from tic_manifest.rules.delivery_probe import judge_probe
from tic_manifest.rules.delivery_runs import judge_runs
from tic_manifest.rules.dossier import Dossier, read_dossier, side
from tic_manifest.rules.rows import STATUSES, rows
from tic_manifest.rules.sbom import CHECK as SBOM
from tic_manifest.rules.sbom import judge_sbom
from tic_manifest.rules.validation import Compared, judge_all

UNMEASURED = "no run of this delivery measures it"
BY_DEFAULT_OUT = frozenset({"build.reproducible", SBOM})
"""No rebuild (issue 2, item 7), or no SBOM beside the evidence, blocks nothing and is printed."""
NEVER_OUT = frozenset({"delivery.bound", "build.layers", "workers.asked"})
"""What the evidence is about at all: no recipe and no checklist leaves these out."""
BY_SHORT_NAME = frozenset({"validation", "status"})
SHORT = frozenset({SBOM, "build.reproducible", "build.hermetic", "workers.shutdown"})
UNMEASURABLE = frozenset({"quality", "performance"})
"""Statuses that no comparison of bytes can decide."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What the evidence came to; `rows` are the only rows that follow from it."""

    checks: tuple[Check, ...]
    findings: tuple[Finding, ...]
    rows: tuple[Row, ...]


def judge_delivery(
    statement: Statement, evidence: Mapping[str, bytes], image: JudgedImage
) -> tuple[list[Check], list[Finding]]:
    """Judge a delivery manifest against its evidence and the image's own documents (the seam of `verify`).

    Raises RefusedError for evidence that is malformed.
    """
    dossier = read_dossier(evidence)
    judged = judge_evidence(dossier, image)
    claims = _claims(statement, dossier, judged)
    checks = [*judged.checks, check_of("delivery.claims", claims, subject="delivery manifest")]
    return checks, [*judged.findings, *claims]


def judge_evidence(dossier: Dossier, image: JudgedImage) -> Judged:
    """Every check that the evidence decides, the findings, and the rows that follow."""
    compared = _comparisons(dossier)
    parts = [
        _bound(dossier, image),
        judge_gate(dossier),
        judge_build(dossier, image),
        judge_probe(dossier),
        judge_runs(dossier),
        _measured(dossier, compared),
        _approval(dossier),
        judge_sbom(dossier),
    ]
    checks = _with_states(dossier.lock.recipe, [check for found, _ in parts for check in found])
    findings = [one for _, found in parts for one in found]
    made = rows(dossier, image.platform_digest, checks, compared)
    return Judged(checks=tuple(checks), findings=(*findings, *_not_run(checks)), rows=made)


def judge_comparisons(dossier: Dossier) -> tuple[list[Check], list[Finding]]:
    """The comparisons and statuses of final validation alone."""
    checks, findings = _measured(dossier, _comparisons(dossier))
    rows = _with_states(dossier.lock.recipe, checks, whole=False)
    return rows, [*findings, *_not_run(rows)]


def _comparisons(dossier: Dossier) -> dict[str, Compared]:
    wanted = dossier.lock.recipe.validation.comparisons if dossier.validate else ()
    if dossier.validate is not None and dossier.validate.emulated:
        wanted = ()
    return judge_all({row.id: (row, side(dossier, row.left), side(dossier, row.right)) for row in wanted})


def _bound(dossier: Dossier, image: JudgedImage) -> tuple[list[Check], list[Finding]]:
    """Every receipt names this lock, this platform manifest and one run id; so does the image's label."""
    found: list[Finding] = []
    for stage, receipt in dossier.receipts.items():
        name = f"receipt {stage}"
        if receipt.lock_digest != dossier.lock.digest:
            found.append(_stale(name, dossier.lock.digest, receipt.lock_digest))
        if stage != "gate" and receipt.platform_digest != image.platform_digest:
            found.append(_stale(name, image.platform_digest, receipt.platform_digest))
    built = dossier.build.index_digest if dossier.build else None
    if image.index_digest is not None and built not in {None, image.index_digest}:
        found.append(_stale("image index of the build's receipt", image.index_digest, built))
    label = image.config.labels.get("org.tic-manifest.lock")
    if label != dossier.lock.digest:
        found.append(_stale("label org.tic-manifest.lock of the config", dossier.lock.digest, label))
    ids = sorted({receipt.run_id for receipt in dossier.receipts.values()})
    if len(ids) > 1:
        found.append(finding("RUN_MIX", Status.FAIL, "receipts", expected="one run id", actual=ids))
    if not dossier.receipts:
        reason = "there is no receipt"
        return [Check(id="delivery.bound", status=Status.NOT_RUN, subject="receipts", reason=reason)], found
    return [check_of("delivery.bound", found, subject="receipts")], found


def _stale(subject: str, expected: Digest, actual: str | None) -> Finding:
    return finding("STALE", Status.FAIL, subject, expected=expected, actual=actual)


def _measured(dossier: Dossier, compared: Mapping[str, Compared]) -> tuple[list[Check], list[Finding]]:
    recipe = dossier.lock.recipe
    reason = "validation was not run" if dossier.validate is None else "the host is of another platform"
    checks = [
        compared[row.id].check if row.id in compared
        else Check(id=f"validation.{row.id}", status=Status.NOT_RUN, subject=row.id, reason=reason)
        for row in recipe.validation.comparisons
    ]  # fmt: skip
    checks += [_status(recipe, name, checks) for name in STATUSES]
    return checks, [one for row in compared.values() for one in row.findings]


def _status(recipe: Recipe, name: str, checks: list[Check]) -> Check:
    """One of the five statuses: the worst of its comparisons, `not_run` where it has none."""
    rows = [row for row in recipe.validation.comparisons if row.status == name and name not in UNMEASURABLE]
    seen = {check.status for check in checks if check.id in {f"validation.{row.id}" for row in rows}}
    order = [Status.FAIL, Status.INCONCLUSIVE, Status.NOT_RUN, Status.PASS]
    status = next((one for one in order if one in seen), Status.NOT_RUN)
    if status is Status.PASS and not any(row.kind == "cross_stack" for row in rows):
        return _undecided(name)
    reasons = {str(key): text for key, text in recipe.validation.not_run.items()}
    reason = reasons.get(name, UNMEASURED) if status is Status.NOT_RUN else ""
    return Check(id=f"status.{name}", status=status, subject="final validation", reason=reason)


def _undecided(name: str) -> Check:
    reason = "no comparison across stacks: inference alone says nothing of the trainer"
    return Check(id=f"status.{name}", status=Status.INCONCLUSIVE, subject="final validation", reason=reason)


def _approval(dossier: Dossier) -> tuple[list[Check], list[Finding]]:
    approval, recipe = dossier.approval, dossier.lock.recipe
    if approval is None:
        found = [finding("UNAPPROVED", Status.INCONCLUSIVE, "recipe", expected="an approval", actual=None)]
        return [check_of("approval", found, subject="recipe")], found
    pairs = {
        "recipe": (dossier.lock.lock.recipe_digest, approval.recipe_digest),
        "acceptance checklist": (checklist_digest(recipe), approval.checklist_digest),
        "resolved configuration": (resolved_digest(dossier.lock), approval.resolved_digest),
    }
    found = [
        finding("UNAPPROVED", Status.INCONCLUSIVE, name, expected=now, actual=then,
                what="what was approved is an earlier version")
        for name, (now, then) in pairs.items() if now != then
    ]  # fmt: skip
    said = note("SELF_DECLARED", "recipe", actual=approval.approved_by)
    return [check_of("approval", found, subject="recipe")], [*found, said]


def _with_states(recipe: Recipe, checks: Iterable[Check], *, whole: bool = True) -> list[Check]:
    """States from the checklist, then the policy; a checklist line that nothing measures is not run."""
    asked = {row.id: row.state for row in recipe.acceptance}
    out = set(recipe.policy.out_of_scope)
    done, known = [], set()
    for check in checks:
        names = _names(check)
        said = next((asked[name] for name in names if name in asked), None)
        unmeasured = check.id in BY_DEFAULT_OUT and check.status is Status.NOT_RUN
        hidden = unmeasured or set(names) & out
        state = said or (State.OUT_OF_SCOPE if hidden else check.state)
        known |= set(names)
        done.append(check.model_copy(update={"state": State.REQUIRED if check.id in NEVER_OUT else state}))
    return done + [
        Check(
            id=f"acceptance.{name}",
            state=state,
            status=Status.NOT_RUN,
            reason=UNMEASURED,
            subject="checklist",
        )
        for name, state in asked.items()
        if whole and name not in known
    ]


def _names(check: Check) -> list[str]:
    """How checklist and policy call a check: by its id, the measured ones by its last word as well."""
    first, _, last = check.id.rpartition(".")
    return [check.id, last] if first in BY_SHORT_NAME or check.id in SHORT else [check.id]


def _not_run(checks: Iterable[Check]) -> list[Finding]:
    return [
        finding("NOT_RUN", Status.NOT_RUN, check.id, actual=check.reason or None)
        for check in checks
        if check.status is Status.NOT_RUN and check.state is State.REQUIRED
    ]


def _claims(statement: Statement, dossier: Dossier, judged: Judged) -> list[Finding]:
    """What the delivery manifest says beyond, or other than, what follows from its evidence."""
    predicate = statement.predicate
    named = {entry.stage: entry.digest for entry in predicate.receipts}
    held = {stage: digest_of(dossier.files[f"receipts/{stage}.json"]) for stage in dossier.receipts}
    ids = {receipt.run_id for receipt in dossier.receipts.values()}
    place = _overclaimed(_plain_rows(judged.rows), _plain_rows(predicate.rows))
    wrong = [
        *([("rows", place)] if place else []),
        *([] if predicate.lock_digest == dossier.lock.digest else [("lock digest", predicate.lock_digest)]),
        *([] if named == held else [("receipts", ", ".join(sorted(named)))]),
        *([] if ids <= {predicate.run_id} else [("run id", predicate.run_id)]),
    ]
    return [
        finding("OVERCLAIM", Status.FAIL, what, actual=actual, expected="what follows", refused=True)
        for what, actual in wrong
    ]  # fmt: skip


def _plain_rows(made: tuple[Row, ...]) -> list[JsonValue]:
    return [dict(plain(row)) for row in made]  # type: ignore[arg-type]


def _overclaimed(derived: JsonValue, said: JsonValue, path: str = "rows") -> str:
    """Where the rows differ in a fact, or say `pass` where nothing passes; reasons are words, not claims.

    A row that says less than what follows claims nothing: rules grow stricter and clearer over versions.
    """
    if isinstance(derived, dict) and isinstance(said, dict):
        keys = sorted((derived.keys() | said.keys()) - {"reason"})
        return next(
            filter(None, (_overclaimed(derived.get(k), said.get(k), f"{path}.{k}") for k in keys)), ""
        )
    if isinstance(derived, list) and isinstance(said, list) and len(derived) == len(said):
        pairs = enumerate(zip(derived, said, strict=True))
        return next(filter(None, (_overclaimed(a, b, f"{path}[{i}]") for i, (a, b) in pairs)), "")
    if path.endswith(".status"):
        return path if said == Status.PASS and derived != Status.PASS else ""
    return "" if derived == said else path
