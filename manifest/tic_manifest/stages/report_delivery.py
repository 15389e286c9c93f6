"""Section "Delivery manifest" of the report: the six rows, further pull requests below them."""

from __future__ import annotations

from pydantic import JsonValue

from tic_manifest.model.delivery import PullRequestRow
from tic_manifest.model.document import (
    Entry,
    Facts,
    Remark,
    Section,
    facts,
    grid,
    listed,
    not_run,
    said,
    unknown,
)
from tic_manifest.model.verdict import Status
from tic_manifest.stages.report_context import (
    WORDS,
    Context,
    argv,
    artifact_line,
    compact,
    of_check,
    of_checks,
    rows_of,
)
from tic_manifest.stages.report_identity import holders, loaded, specializations, sums
from tic_manifest.stages.report_scope import approval, image_digests

HEAD = ("Deliverable", "Review / source identity", "Build or acceptance evidence")
TITLES = {"vllm": "vLLM PR", "megatron": "Megatron PR", "verl": "verl PR"}
STATUS_TITLES = {
    "proxy": "Proxy",
    "full_zero_update": "full zero-update",
    "theta0_2": "\u03b80\u2013\u03b82",
    "quality": "quality",
    "performance": "performance",
}
RULE = (
    "Each PR is complete against the agreed base, not stacked on an unmerged feature branch; "
    "cross-repository dependency pins are expected. Every required runtime file outside the PRs must be a "
    "pinned existing dependency; an uncommitted production patch is a delivery gap. A changed base, build "
    "input or recipe requires reassessing affected evidence."
)
Row = tuple[str, tuple[Entry, ...]]


def delivery_manifest(context: Context) -> Section:
    """The table of the template, then which delivery manifest carries it."""
    blocks = (
        grid("", HEAD, _rows(context)),
        _carrier(context),
        Remark(text=RULE),
    )
    return Section(heading="Delivery manifest", blocks=blocks)


def _rows(context: Context) -> list[Row]:
    pulls = context.pulls()
    first = {key: next((one for one in pulls if one.row == key), None) for key in TITLES}
    named = [(TITLES[key], _pull_cells(context, key, row)) for key, row in first.items()]
    others = [one for one in pulls if one not in first.values()]
    further = [(f"{one.name} PR", _pull_cells(context, one.row, one)) for one in others]
    return [*named, _image(context), _recipe(context), _validation(context), *further]


def _pull_cells(context: Context, key: str, row: PullRequestRow | None) -> tuple[Entry, ...]:
    if row is None:
        missing = not_run(f"the recipe has no pull request for the row {key}")
        return missing, missing
    return _source(row), _built(context, key, row)


def _source(row: PullRequestRow) -> Entry:
    lines = [
        f"URL: {row.url}",
        f"target: {row.owner}/{row.repo}, branch {row.branch}, base SHA {row.base}",
        f"head SHA: {row.head}",
        f"head tree: {row.tree}",
        f"merge base: {row.merge_base or 'unknown'}",
    ]
    return said(_cell_words("gate", row.gate.status, row.gate.reason), *lines)


def _built(context: Context, key: str, row: PullRequestRow) -> Entry:
    lines = [*_wheel(row), *_special(context, key, row), *map(artifact_line, row.evidence)]
    return said(_cell_words("build", row.build.status, row.build.reason), *lines)


def _cell_words(name: str, status: Status, reason: str) -> str:
    return f"{name} {WORDS[status]}" + (f": {reason}" if reason else "")


def _wheel(row: PullRequestRow) -> list[str]:
    if row.wheel is None:
        return ["wheel: not run (no build receipt names it)"]
    return [
        f"wheel: {row.wheel.file}, wheel digest {row.wheel.digest}",
        f"built from tree: {row.wheel.tree}",
        f"native code: {row.wheel.native or 'unknown'}",
    ]


def _special(context: Context, key: str, row: PullRequestRow) -> list[str]:
    """What the template asks of one row alone: build command, installed identity, recipe and script paths."""
    if key == "vllm":
        return [_build_command(context), *_jit(context)]
    if key == "megatron":
        return _installed(context)
    if key == "verl":
        told = [f"recipe and image build script: {path}" for path in row.paths]
        return told or ["recipe and image build script paths: not run (no evidence names them)"]
    return []


def _build_command(context: Context) -> str:
    build = context.dossier.build
    return f"build command: {argv(build.command)}" if build else "build command: not run (no build receipt)"


def _jit(context: Context) -> list[str]:
    entry = specializations(context)
    compilers = [line for line in entry.lines if ": compiler " in line]
    made = len(entry.lines) - len(compilers)
    if not entry.lines:
        return [f"JIT inputs: {entry.text}"]
    return [
        f"JIT specializations: {made} lines above under their name",
        *(f"JIT: {one}" for one in compilers),
    ]


def _installed(context: Context) -> list[str]:
    """Model, primitive and adapter as the trainer that really ran names them."""
    lines = []
    for name, record in context.records.items():
        backends = (record.model_extra or {}).get("backends")
        if record.role == "trainer" and isinstance(backends, dict):
            lines += [f"run {name}: {key} {argv([str(value)])}" for key, value in sorted(backends.items())]
    return lines or ["installed model / primitive / adapter identity: not run (no trainer record names it)"]


def _image(context: Context) -> Row:
    row = context.image_row
    digests = image_digests(context).lines
    base = f"base platform manifest digest: {row.base_platform_digest or 'unknown (no build receipt)'}"
    index = [f"base image index digest: {row.base_index_digest}"] if row.base_index_digest else []
    pins = [f"pin: {one.name} {one.version} sha256:{one.sha256}" for one in row.pins]
    source = said("", base, *index, *digests, *(pins or ["dependency pins: none"]))
    return "Unified image", (source, _image_evidence(context))


def _image_evidence(context: Context) -> Entry:
    row = context.image_row
    log = artifact_line(row.build_log) if row.build_log else "build log: not run (none in the evidence)"
    lines = [log, *_role(context, "trainer"), *_role(context, "rollout"), *_mounts(context)]
    words = f"{_cell_words('build', row.build.status, row.build.reason)}; "
    return said(words + _cell_words("probe", row.probe.status, row.probe.reason), *lines)


def _role(context: Context, role: str) -> list[str]:
    """What the real worker imported and mapped, in sums; each file stands under its identity above."""
    row = context.image_row
    artifacts = row.trainer if role == "trainer" else row.rollout
    seen = [f"{role} imports / libraries: {line}" for line in sums(context, role)]
    return [
        *(f"{role} observation: {artifact_line(one)}" for one in artifacts),
        *holders(context, role),
        *(seen or [f"{role} worker imports / libraries: {loaded(context, role).text}"]),
    ]


def _mounts(context: Context) -> list[str]:
    """Mounts as the runs were started, then what the probe saw of mounts below loaded files."""
    started = [f"mount: {one}" for one in context.image_row.mounts]
    seen = [line for name, data in context.observations.items() for line in _covering(name, data)]
    missing = ["mounts over loaded files: not run (no observation is in the evidence)"]
    return [
        *(started or ["mounts of measured containers: not run (nothing was measured)"]),
        *(seen or missing),
    ]


def _covering(run: str, data: dict[str, JsonValue]) -> list[str]:
    """Mounts other than the root that lie below a file that the worker loaded: where sources could hide."""
    points = [
        f"{compact(row.get('mount_point'))} covers {compact(row.get('covers'))} loaded files"
        for row in rows_of(data, "mounts")
        if row.get("mount_point") != "/" and row.get("covers") not in (0, None)
    ]
    if not rows_of(data, "mounts"):
        return [f"run {run}: mounts unknown (its observation lists none)"]
    return [f"run {run}: mount {one}" for one in points] or [
        f"run {run}: no mount but / covers a loaded file"
    ]


def _recipe(context: Context) -> Row:
    row = context.recipe_row
    source = said(
        f"approval: {approval(context).text}",
        f"script SHA: recipe digest {row.script.digest}",
        f"resolved config: {row.resolved.digest}",
        f"acceptance checklist: {row.checklist.digest}",
        *approval(context).lines,
    )
    lines = [
        f"changes from reference recipe: {row.changes or 'unknown (the recipe names no reference)'}",
        f"dataset: {row.dataset or 'unknown (the recipe names none)'}",
        f"topology: {row.topology or 'unknown (the recipe names no worker)'}",
    ]
    return "Approved recipe", (source, said("", *lines))


def _validation(context: Context) -> Row:
    platform = f"platform manifest digest: {context.image.platform_digest}"
    commands = [
        f"run {name}: {argv(run.command)}"
        for name, run in context.dossier.runs.items()
        if context.dossier.validate and run in context.dossier.validate.runs
    ]
    artifacts = [artifact_line(one) for status in context.statuses for one in status.artifacts]
    source = said("", platform, *(commands or ["commands: not run"]), *dict.fromkeys(artifacts))
    return "Final validation", (source, said("each status is reported separately", *_statuses(context)))


def _statuses(context: Context) -> list[str]:
    lines = []
    for one in context.statuses:
        title = STATUS_TITLES[one.status_name]
        if not one.id:
            entry = of_check(context, f"status.{one.status_name}")
            lines.append(f"{title} status: {entry.text}")
            continue
        entry = of_check(context, f"validation.{one.id}")
        counted = (
            "no token was compared"
            if one.valid_tokens is None
            else f"{one.mismatches} of {one.valid_tokens} differ"
        )
        first = f", first mismatch at {one.first_mismatch}" if one.first_mismatch else ""
        lines.append(
            f"{title}, {one.id}: {entry.text}; {counted}{first}; scope limitation: {one.scope_limitation}"
        )
    return lines


def _carrier(context: Context) -> Facts:
    attached = context.attached
    if attached is None:
        missing = not_run("no delivery manifest is attached to the image")
        return facts(
            "Delivery manifest", ("Delivery manifest digest", missing), ("Lock digest", _lock(context))
        )
    statement, digest = attached
    return facts(
        "Delivery manifest",
        ("Delivery manifest digest", said("", f"delivery manifest digest: {digest}")),
        ("Supersedes", said("", statement.predicate.supersedes or "none: it is the first")),
        ("Run id and time", said("", statement.predicate.run_id, statement.predicate.created_at)),
        ("Lock digest", _lock(context)),
        ("Claims against evidence", of_check(context, "delivery.claims")),
        ("Receipts bound to lock, platform manifest and run", of_check(context, "delivery.bound")),
        ("Final clean build", of_checks(context, ("build.hermetic", "build.layers"))),
    )


def _lock(context: Context) -> Entry:
    return said("", f"lock digest: {context.dossier.lock.digest}")


def delivery_gaps(context: Context) -> Entry:
    """Runtime files without an owner: each is a delivery gap until it is a pinned dependency."""
    entry = loaded(context)
    if not entry.lines:
        return unknown(entry.reason or "no observation")
    return listed([line for line in entry.lines if ": orphan " in line], said("none was seen"))
