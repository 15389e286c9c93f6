"""The six rows of the delivery manifest, computed from evidence alone (report template, "Delivery manifest").

`assemble` writes them; `verify` computes them again and refuses a delivery manifest that says anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tic_manifest.formats.canonical import canonical_bytes
from tic_manifest.formats.lock import checklist_data, checklist_digest, recipe_data, resolved_digest
from tic_manifest.model.base import Digest
from tic_manifest.model.delivery import (
    Cell,
    ImageRow,
    Pin,
    PullRequestRow,
    RecipeRow,
    Row,
    ValidationRow,
    ValidationStatus,
    WheelFact,
)
from tic_manifest.model.lock import DebianRoot, LockedFile, LockedPullRequest
from tic_manifest.model.receipt import Artifact
from tic_manifest.model.recipe import PullRequest
from tic_manifest.model.verdict import Check, Status
from tic_manifest.rules.dossier import APPROVAL, BUILD_LOG, Dossier
from tic_manifest.rules.validation import Compared

ORDER = ("vllm", "megatron", "verl")
STATUSES = ("proxy", "full_zero_update", "theta0_2", "quality", "performance")
NOT_LOOKED = Cell(status=Status.NOT_RUN, reason="no evidence")


def rows(
    dossier: Dossier,
    platform: Digest,
    checks: Sequence[Check],
    compared: Mapping[str, Compared],
) -> tuple[Row, ...]:
    """The rows, in the order of the template; further pull requests follow the six."""
    cells = {check.id: Cell(status=check.status, reason=check.reason) for check in checks}
    pulls = [_pull(dossier, one, cells) for one in dossier.lock.lock.pull_requests]
    first = [row for key in ORDER for row in pulls if row.row == key][: len(ORDER)]
    others = [row for row in pulls if row not in first]
    image = _image(dossier, platform, cells)
    return (*first, image, _recipe(dossier, cells), _validation(dossier, platform, cells, compared), *others)


def _pull(dossier: Dossier, pull: LockedPullRequest, cells: Mapping[str, Cell]) -> PullRequestRow:
    built = {wheel.name: wheel for wheel in dossier.build.wheels} if dossier.build else {}
    wheel, asked = built.get(pull.name), dossier.lock.recipe.pull_requests[pull.name]
    fact = (
        WheelFact(file=wheel.file, digest=wheel.digest, tree=wheel.tree, native=_native(asked))
        if wheel
        else None
    )
    return PullRequestRow(
        name=pull.name, row=pull.row, url=pull.url, owner=pull.owner, repo=pull.repo, branch=pull.branch,
        base=pull.base, head=pull.head, tree=pull.head_tree, merge_base=pull.merge_base, wheel=fact,
        evidence=_present(dossier.artifact("receipts/gate.json"), dossier.artifact("receipts/build.json")),
        gate=cells.get(f"gate.{pull.name}", NOT_LOOKED), build=cells.get(f"build.{pull.name}", NOT_LOOKED),
    )  # fmt: skip


def _native(asked: PullRequest) -> str:
    given = asked.precompiled
    if given is None:
        return "built from the head"
    return f"precompiled: {given.wheel}, sha256 {given.sha256}, commit {given.commit}"


def _image(dossier: Dossier, platform: Digest, cells: Mapping[str, Cell]) -> ImageRow:
    build, lock = dossier.build, dossier.lock.lock
    observed = {run.role: run for run in (dossier.probe.runs if dossier.probe else ())}
    return ImageRow(
        platform=dossier.lock.recipe.platform,
        base_platform_digest=build.base_platform_digest if build else None,
        base_index_digest=None if isinstance(lock.base, DebianRoot) else lock.base.index_digest,
        platform_digest=platform,
        index_digest=build.index_digest if build else None,
        config_digest=build.config_digest if build else platform,
        pins=tuple(_pin(one) for one in _files(dossier)),
        build_log=dossier.artifact(BUILD_LOG),
        trainer=_observation(dossier, observed.get("trainer")),
        rollout=_observation(dossier, observed.get("rollout")),
        mounts=_mounts(dossier),
        build=cells.get("build.hermetic", NOT_LOOKED),
        probe=cells.get("probe", NOT_LOOKED),
    )


def _files(dossier: Dossier) -> tuple[LockedFile, ...]:
    lock = dossier.lock.lock
    debian = lock.base.packages if isinstance(lock.base, DebianRoot) else ()
    return (*debian, *lock.python.runtime)


def _pin(one: LockedFile) -> Pin:
    return Pin(name=one.name, version=one.version, sha256=one.sha256)


def _observation(dossier: Dossier, run: object) -> tuple[Artifact, ...]:
    name = getattr(run, "name", None)
    return _present(dossier.artifact(f"runs/{name}/probe.json")) if name else ()


def _mounts(dossier: Dossier) -> tuple[str, ...]:
    targets = {f"output of {need}:/in/{need}:ro" for run in dossier.runs.values() for need in run.needs}
    return (*sorted(targets), "output folder:/out:rw") if dossier.runs else ()


def _recipe(dossier: Dossier, cells: Mapping[str, Cell]) -> RecipeRow:
    recipe, approval = dossier.lock.recipe, dossier.approval
    checklist, script = canonical_bytes(checklist_data(recipe)), canonical_bytes(recipe_data(recipe))
    topology = ", ".join(f"{name}: {worker.role}" for name, worker in sorted(recipe.workers.items()))
    return RecipeRow(
        script=Artifact(name="recipe", digest=dossier.lock.lock.recipe_digest, size=len(script)),
        resolved=Artifact(
            name="resolved configuration", digest=resolved_digest(dossier.lock), size=len(dossier.lock.raw)
        ),
        checklist=Artifact(name="acceptance checklist", digest=checklist_digest(recipe), size=len(checklist)),
        approval=dossier.artifact(APPROVAL),
        approved_by=f"{approval.approved_by} (self-declared)" if approval else None,
        changes=recipe.reference_recipe,
        dataset=recipe.dataset,
        topology=topology or None,
        approved=cells.get("approval", NOT_LOOKED),
    )


def _validation(
    dossier: Dossier, platform: Digest, cells: Mapping[str, Cell], compared: Mapping[str, Compared]
) -> ValidationRow:
    entries: list[ValidationStatus] = []
    for name in STATUSES:
        entries.append(ValidationStatus(status_name=name, result=cells.get(f"status.{name}", NOT_LOOKED)))  # type: ignore[arg-type]
        entries += [
            _measured(dossier, row.id, compared[row.id], cells)
            for row in dossier.lock.recipe.validation.comparisons
            if row.status == name and row.id in compared
        ]
    return ValidationRow(platform_digest=platform, statuses=tuple(entries))


def _measured(dossier: Dossier, name: str, one: Compared, cells: Mapping[str, Cell]) -> ValidationStatus:
    row = next(row for row in dossier.lock.recipe.validation.comparisons if row.id == name)
    runs = [
        dossier.runs[side.partition("/")[0]]
        for side in (row.left, row.right)
        if side.partition("/")[0] in dossier.runs
    ]
    first = one.parity.first_mismatch if one.parity else None
    return ValidationStatus(
        status_name=row.status,
        id=row.id,
        command=runs[0].command if runs else (),
        artifacts=_present(*(dossier.artifact(f"runs/{run.name}/record.json") for run in runs)),
        valid_tokens=one.parity.valid_tokens if one.parity else None,
        mismatches=one.parity.mismatches if one.parity else None,
        first_mismatch=f"request {first[0]}, position {first[1]}" if first else None,
        scope_limitation=row.scope_limitation,
        result=cells.get(f"validation.{name}", NOT_LOOKED),
    )


def _present(*artifacts: Artifact | None) -> tuple[Artifact, ...]:
    return tuple(one for one in artifacts if one is not None)
