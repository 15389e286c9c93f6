"""Source, installed wheel, loaded native libraries and JIT specializations, kept apart."""

from __future__ import annotations

from pydantic import JsonValue

from tic_manifest.model.document import Entry, Facts, facts, listed, not_run, said, unknown
from tic_manifest.model.verdict import Status
from tic_manifest.stages.report_context import Context, compact, inside, of_check, rows_of
from tic_manifest.stages.report_roles import roles

LISTED = 200
"""Files of one run that are named in a report; the rest is counted and stands in the observation."""


def identities(context: Context) -> Facts:
    """The four identities, and whether what was measured is what is delivered."""
    return facts(
        "Source, installed wheel, loaded native libraries and JIT specializations",
        (
            "Source",
            said("", *(f"{one.name}: tree {one.tree} of commit {one.head}" for one in context.pulls())),
        ),
        ("Installed wheel", _wheels(context)),
        ("Loaded native libraries", loaded(context)),
        ("JIT specializations", specializations(context)),
        ("Trainer beside rollout", roles(context)),
        ("Measured runtime and final delivered image are identical", same_image(context)),
    )


def _wheels(context: Context) -> Entry:
    pairs = [(one.name, one.wheel) for one in context.pulls() if one.wheel]
    lines = [
        f"{name}: {wheel.file} {wheel.digest} built from tree {wheel.tree}; {wheel.native}"
        for name, wheel in pairs
    ]
    return listed(lines, not_run("no build receipt names a wheel"))


def loaded(context: Context, role: str = "") -> Entry:
    """Per observed run: share of mapped bytes with an owner, then native files with hash and owner."""
    lines = [line for name in _runs(context, role) for line in _loaded(name, context.observations[name])]
    return listed(lines, not_run(_why_unobserved(context, role)))


def sums(context: Context, role: str) -> list[str]:
    """Per observed run: share of mapped bytes with an owner, native files, modules, failed imports."""
    lines = []
    for name in _runs(context, role):
        data = context.observations[name]
        natives = [row for row in rows_of(data, "files") if isinstance(row.get("elf"), dict)]
        modules = {
            compact(one.get("name")) for view in rows_of(data, "inside") for one in rows_of(view, "modules")
        }
        lines += [_share(name, data), f"run {name}: {len(natives)} native files, {len(modules)} modules"]
        lines += [f"run {name}: {one}" for one in _broken(data)]
    return lines


def _broken(data: dict[str, JsonValue]) -> list[str]:
    """Modules that are installed and whose import failed without ending the worker."""
    rows = [row for view in rows_of(data, "imports") for row in rows_of(view, "broken")]
    told = [f"import failed: {compact(row.get('module'))} in {compact(row.get('importer'))}" for row in rows]
    return list(dict.fromkeys(told))


def _runs(context: Context, role: str) -> list[str]:
    return [name for name in context.observations if role in ("", context.dossier.runs[name].role)]


def _why_unobserved(context: Context, role: str) -> str:
    who = f"the {role}" if role else "a worker"
    check = context.check("probe")
    known = check.reason if check is not None and check.status is Status.NOT_RUN else ""
    return known or f"no observation of {who} is in the evidence"


def _loaded(run: str, data: dict[str, JsonValue]) -> list[str]:
    natives = [row for row in rows_of(data, "files") if isinstance(row.get("elf"), dict)]
    named = sorted(f"run {run}: {_file(row)}" for row in natives)
    more = len(named) - LISTED
    return [
        _share(run, data),
        *named[:LISTED],
        *([f"run {run}: {more} more native files stand in its probe.json"] if more > 0 else []),
        *(f"run {run}: orphan {compact(row.get('path'))}" for row in rows_of(data, "ownership", "orphans")),
    ]


def _share(run: str, data: dict[str, JsonValue]) -> str:
    owned, total = inside(data, "ownership", "owned_bytes"), inside(data, "ownership", "mapped_bytes")
    if not isinstance(owned, int) or not isinstance(total, int) or not total:
        return f"run {run}: share of mapped bytes with an owner unknown"
    return f"run {run}: {owned} of {total} mapped bytes have an owner ({_percent(owned, total)})"


def _percent(part: int, whole: int) -> str:
    """Rounded down, so that 100 % is only ever said of all of it."""
    return "100 %" if part == whole else f"{part * 10000 // whole / 100:.2f} %"


def _file(row: dict[str, JsonValue]) -> str:
    owners = ", ".join(_owner(one) for one in rows_of(row, "owners")) or "no owner"
    sha256, build_id = row.get("sha256"), inside(row, "elf", "build_id")
    return f"{compact(row.get('path'))} sha256:{compact(sha256)} build id {compact(build_id)}, {owners}"


def _owner(owner: dict[str, JsonValue]) -> str:
    return " ".join(
        compact(owner.get(key)) for key in ("kind", "name", "version") if owner.get(key) is not None
    )


def specializations(context: Context) -> Entry:
    """JIT artifacts by run, with hash and whether the run made them, and the compilers that were seen."""
    lines = [line for name, data in context.observations.items() for line in _jit(name, data)]
    return listed(lines, not_run(_why_unobserved(context, "")))


def _jit(run: str, data: dict[str, JsonValue]) -> list[str]:
    found = [
        row
        for row in rows_of(data, "jit", "artifacts")
        if compact(row.get("path")).endswith((".so", ".cubin"))
    ]
    named = [f"run {run}: {_artifact(row)}" for row in found]
    compilers = [f"run {run}: {_compiler(row)}" for row in rows_of(data, "jit", "compilers")]
    more = [f"run {run}: {len(named) - LISTED} more stand in its probe.json"] if len(named) > LISTED else []
    return [*(named[:LISTED] or [f"run {run}: no compiled artifact was found"]), *more, *compilers]


def _artifact(row: dict[str, JsonValue]) -> str:
    family, path, sha256, origin = (compact(row.get(key)) for key in ("family", "path", "sha256", "origin"))
    mapped = "mapped" if row.get("mapped") is True else "not mapped"
    return f"{family} {path} sha256:{sha256}, {origin.replace('_', ' ')}, {mapped}"


def _compiler(row: dict[str, JsonValue]) -> str:
    path, sha256, running = (compact(row.get(key)) for key in ("path", "sha256", "seen_running"))
    owners = ", ".join(map(_owner, rows_of(row, "owners"))) or "no owner"
    return f"compiler {path} sha256:{sha256}, {owners}, seen running {running}"


def holders(context: Context, role: str) -> list[str]:
    """The processes that hold the model, as the kernel and the process itself tell it."""
    return [
        f"run {name}: model held by {compact(row.get('title'))} (by {compact(row.get('by'))})"
        for name in _runs(context, role)
        for row in rows_of(context.observations[name], "holders")
    ]


def same_image(context: Context) -> Entry:
    """By digest: every measuring receipt names the platform manifest that is delivered."""
    delivered = context.image.platform_digest
    measured = {
        stage: receipt.platform_digest
        for stage, receipt in context.dossier.receipts.items()
        if stage in ("probe", "validate")
    }
    missing = [stage for stage in ("probe", "validate") if stage not in measured]
    if not measured:
        return not_run("neither probe nor validate left a receipt: both verifications are missing")
    lines = [f"{stage}: platform manifest digest {compact(digest)}" for stage, digest in measured.items()]
    lines.append(f"delivered: platform manifest digest {delivered}")
    lines += [f"missing verification: {stage} was not run" for stage in missing]
    if all(digest == delivered for digest in measured.values()):
        return said("yes, by digest" if not missing else "yes for what was run, by digest", *lines)
    return said("no", *lines)


def bound(context: Context) -> Entry:
    """The check that binds every receipt to lock, platform manifest and run."""
    entry = of_check(context, "delivery.bound")
    return entry if entry.text else unknown("no check binds the receipts")
