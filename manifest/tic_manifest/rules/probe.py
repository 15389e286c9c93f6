"""One observation judged: each check says what it saw also where it passes."""

from __future__ import annotations

from collections.abc import Callable

from tic_manifest.model.host import HostPolicy
from tic_manifest.model.probe import CodeIdentity, ProbeReport
from tic_manifest.model.verdict import Check, Finding, Status, check_of
from tic_manifest.rules import (
    probe_between,
    probe_code,
    probe_files,
    probe_host,
    probe_jit,
    probe_libraries,
    probe_python,
    probe_running,
    probe_views,
    probe_worker,
)
from tic_manifest.rules.probe_environment import views_of
from tic_manifest.rules.probe_view import MEMORY, View, bounded

Rule = Callable[[View], list[Finding]]

CHECKS: dict[str, tuple[Rule, ...]] = {
    "worker": (probe_worker.worker_exit,),
    "holder": (probe_worker.holder_missing,),
    "ownership": (probe_files.unowned, probe_host.host_injected),
    "content": (probe_files.record_hash, probe_code.not_source, probe_running.not_source),
    "running": (probe_running.patched, probe_running.overridden, probe_running.not_compared),
    "executing": (probe_files.mapped_not_disk, probe_files.mapped_deleted, probe_files.changed_since),
    "overlays": (
        probe_files.mount_covers_source,
        probe_python.still_editable,
        probe_python.pth_unowned,
        probe_python.preload,
        probe_code.shadows,
        probe_code.ray_working_dir,
    ),
    "imports": (probe_python.silent_fallback,),
    "libraries": (
        probe_libraries.duplicates,
        probe_libraries.mixed_families,
        probe_libraries.cuda_majors,
        probe_libraries.order_dependent,
        probe_host.compat_driver,
        probe_python.undefined_symbols,
    ),
    "jit": (
        probe_worker.jit_at_run,
        probe_jit.made_now,
        probe_jit.foreign,
        probe_jit.mismatch,
        probe_jit.stale,
        probe_jit.no_effect,
        probe_jit.edited_sources,
    ),
    "snapshots": (probe_between.appeared,),
    "environment": (probe_views.environment,),
    "views": (probe_views.disagreements,),
    "ledger": (probe_worker.ledger,),
}
"""Check ids are `probe.ROLE.NAME`; each rule gives the findings of one code."""


def judge_observation(
    report: ProbeReport, policy: HostPolicy | None = None
) -> tuple[list[Check], list[Finding]]:
    """Checks and findings of one observation. Nothing that was not observed passes."""
    view = View(report, policy or HostPolicy())
    checks: list[Check] = []
    findings: list[Finding] = []
    for name, rules in CHECKS.items():
        found = [one for rule in rules for one in bounded(rule(view))]
        checks.append(_row(view, name, found))
        findings += found
    return checks, findings


def _row(view: View, name: str, found: list[Finding]) -> Check:
    """The check's row; without an observation it is `not_run`, unless something was found all the same."""
    row = check_of(f"probe.{view.role}.{name}", found, subject=view.role)
    lacking = unobserved(view, name)
    if lacking and row.status is Status.PASS:
        return row.model_copy(update={"status": Status.NOT_RUN, "reason": lacking})
    return row.model_copy(update={"reason": summary(view, name)})


def unobserved(view: View, name: str) -> str:
    """Why a check has nothing to judge; empty when it has."""
    if name == "ledger":
        return ""
    known = {
        "worker": (view.report.worker, "no worker was started: a running process was looked at"),
        "holder": (view.report.holders or view.report.policy, "no policy was named"),
        "views": (_seen_twice(view), "no judged process was seen from inside and from outside"),
        "environment": (_environments(view), "no judged process gave its environment from inside"),
        "imports": (view.imports(), "no judged process gave a view from inside"),
        "running": (probe_running.scans(view), "no judged process gave a view from inside"),
    }
    mapped = any(p.mapped for p in view.processes)
    seen, reason = known.get(name, (mapped, "no process was looked at while it was ready"))
    return "" if seen else reason


def summary(view: View, name: str) -> str:
    """What a check looked at, in one sentence with figures."""
    makers: dict[str, Callable[[View], str]] = {
        "worker": _worker,
        "holder": _holder,
        "ownership": _ownership,
        "content": _content,
        "executing": _executing,
        "running": probe_running.summary,
        "overlays": _overlays,
        "imports": _imports,
        "libraries": _libraries,
        "jit": _jit,
        "snapshots": _snapshots,
        "environment": _environment,
        "views": _views,
    }
    return makers[name](view) if name in makers else ""


def _worker(view: View) -> str:
    worker = view.report.worker
    return "" if worker is None else f"{probe_worker.how_it_ended(worker)}, {worker.seconds:.1f} s"


def _holder(view: View) -> str:
    rows = []
    for holder in view.report.holders:
        above = holder.ancestors if isinstance(holder.ancestors, tuple) else ()
        chain = " < ".join([holder.title, *(a.name or a.title for a in above)])
        rows.append(f"pid {holder.pid} by {holder.by}: {chain}")
    return "; ".join(dict.fromkeys(rows)) or "no process was seen to hold the model"


def _ownership(view: View) -> str:
    """Computed again from the rows: the sum that the agent wrote is for people only."""
    sizes = view.sizes()
    total = sum(sizes.values())
    if not total:
        return "no mapped file was seen"
    injected = probe_host.allowed_paths(view)
    orphans = [
        p for p, file in view.by_path().items() if p in sizes and not file.owners and p not in injected
    ]
    owned = total - sum(sizes[path] for path in orphans)
    scope = "processes that hold the model" if view.report.holders else "all processes"
    modules = {m.file: bool(m.owners) for m in view.modules() if m.file and m.on_disk}
    return (
        f"{owned} of {total} mapped bytes ({100 * owned / total:.4f} %) have an owner, "
        f"{len(orphans)} of {len(sizes)} mapped files and {list(modules.values()).count(False)} of "
        f"{len(modules)} module files have none ({scope})"
    )


def _content(view: View) -> str:
    owned = [m.owners for m in view.modules() if m.file and m.on_disk]
    owned += [f.owners for f in view.loaded_files()]
    known = [rows for rows in owned if any(o.record in ("match", "differs") for o in rows)]
    said = f"{len(known)} of {len(owned)} loaded files have a recorded hash, and were compared with it"
    compiled = [m.code for m in view.modules() if m.code]
    same = compiled.count("same")
    return said + (f"; byte code of {same} of {len(compiled)} modules is their source's" if compiled else "")


def _overlays(view: View) -> str:
    one = view.report
    twice = len({m.name for m in view.modules() if m.also})
    said = f"{len(one.distributions)} distributions, {len(one.pth)} .pth files, {len(one.mounts)} mounts"
    return said + (f", {twice} module names that two places answer to" if twice else "")


def _imports(view: View) -> str:
    scans = view.imports()
    sources, absent = sum(s.scanned for s in scans), sum(len(s.absent) for s in scans)
    return f"{sources} sources of loaded modules read, {absent} optional imports of what is not installed"


def _libraries(view: View) -> str:
    native = {f.path for _, row, f in view.mapped() if row.exec_bytes}
    return f"{len(native)} native libraries and programs"


def _executing(view: View) -> str:
    rows = [row.executing for _, row, _ in view.mapped() if row.exec_bytes]
    same = sum(row.verdict == "same" for row in rows)
    compared = sum(row.bytes for row in rows)
    return f"{same} of {len(rows)} executable mappings equal their files, {compared} bytes compared"


def _snapshots(view: View) -> str:
    labels = [s.label for s in view.report.snapshots]
    inside = list(dict.fromkeys(one.label for one in view.insides()))
    return f"from outside: {', '.join(labels)}; from inside: {', '.join(inside) or 'none'}"


def _environment(view: View) -> str:
    names = {name for p in view.processes for name in views_of(view, p).names()}
    return f"{len(names)} variables in {len(_environments(view))} processes, at exec and from inside"


def _environments(view: View) -> set[int]:
    """Processes whose environment is known at exec and from inside."""
    known = ((p.pid, views_of(view, p)) for p in view.processes)
    return {pid for pid, one in known if one.exec is not None and (one.libc or one.python) is not None}


def _views(view: View) -> str:
    return f"{len(_seen_twice(view))} processes from inside and from outside"


def _seen_twice(view: View) -> set[int]:
    """Processes that gave a view of their own; modules read from memory are none."""
    return {p.pid for p in view.processes if p.mapped and any(v.label != MEMORY for v in view.inside(p))}


def _jit(view: View) -> str:
    made = [a for a in view.report.jit.artifacts if a.path.endswith(".so")]
    mapped = sum(a.mapped for a in made)
    names = sorted({line for a in made if isinstance(a.code, CodeIdentity) for line in a.code.comment})
    said = ", ".join(names) or "none"
    return f"{len(made)} compiled libraries, {mapped} mapped; compilers named in them: {said}; " + (
        probe_jit.looked_at(view)
    )
