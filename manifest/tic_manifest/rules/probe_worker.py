"""The worker as a whole: how it ended, who held the model, what the report could not see."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from tic_manifest.model.probe import CodeIdentity, Compiler, Imports, JitArtifact
from tic_manifest.model.probe_parts import Failed, Maps, Process, Stream, WorkerEnd
from tic_manifest.model.verdict import Finding, Status, finding, note
from tic_manifest.rules.probe_view import START, View

TAIL = 20


def worker_exit(view: View) -> list[Finding]:
    """WORKER_EXIT: any end but exit code 0; what was observed before it stays observed."""
    worker = view.report.worker
    if worker is None or (worker.outcome == "exited" and worker.exit and worker.exit.code == 0):
        return []
    return [
        finding(
            "WORKER_EXIT",
            Status.INCONCLUSIVE,
            view.role,
            expected="exit code 0",
            actual=how_it_ended(worker),
            evidence={
                "ready": worker.ready,
                "seconds": worker.seconds,
                "stderr": list(_tail(worker.stderr)),
                "stdout": list(_tail(worker.stdout)),
            },
        )
    ]


def how_it_ended(worker: WorkerEnd) -> str:
    """One phrase: the outcome with exit code, signal or error."""
    if worker.outcome == "start_failed":
        return f"not started: {worker.error}"
    if worker.outcome in ("timeout", "ready_timeout"):
        limit = worker.limits["total" if worker.outcome == "timeout" else "ready"]
        return f"{worker.outcome} after {limit:g} s"
    if worker.exit is None:
        return worker.outcome
    if worker.exit.signal is not None:
        return f"{worker.outcome} by {worker.exit.signal}"
    return f"exit code {worker.exit.code}"


def _tail(stream: Stream | None) -> tuple[str, ...]:
    return stream.tail[-TAIL:] if stream else ()


def holder_missing(view: View) -> list[Finding]:
    """HOLDER_MISSING: a policy was named, and nobody was seen to hold it."""
    policy = view.report.policy
    if policy is None or view.report.holders:
        return []
    titles = [p.title for s in view.report.snapshots for p in s.processes]
    return [
        finding(
            "HOLDER_MISSING",
            Status.INCONCLUSIVE,
            view.role,
            expected=f"a process with at least half of {policy.samples} samples in its own memory",
            actual=list(titles),
            evidence={"policy_errors": list(policy.errors), "samples": policy.samples},
        )
    ]


def ledger(view: View) -> list[Finding]:
    """LEDGER_INCOMPLETE: every reason for which the report may not be whole."""
    return [
        finding("LEDGER_INCOMPLETE", Status.INCONCLUSIVE, view.role, actual=reason, evidence={"where": where})
        for where, reason in [*_report_gaps(view), *_process_gaps(view), *_unloaded(view), *_counted(view)]
    ]


def _report_gaps(view: View) -> Iterator[tuple[str, str]]:
    report = view.report
    if not any(s.label not in (START, "last_seen") for s in report.snapshots):
        yield "snapshots", "the worker never reached its ready mark, so no snapshot was taken"
    for text in (*report.notes, *report.owner_errors):
        yield "agent", text
    for place in report.jit.places:
        if place.cut_short:
            yield place.path, "the cache was not read to its end"
    for scan in report.imports:
        if not isinstance(scan, Imports):
            yield "imports", scan.error
        elif scan.not_scanned:
            yield "imports", f"{scan.not_scanned} sources of loaded modules could not be read"


def _process_gaps(view: View) -> Iterator[tuple[str, str]]:
    for process in view.processes:
        where = f"{process.title} ({process.pid})"
        if process.maps is not None:
            yield from ((where, reason) for reason in _map_gaps(process))
        if not view.inside(process) and (view.report.mode == "run" or view.is_python(process)):
            yield where, "the process gave no view from inside"
        if process.exited and process.maps is not None:
            yield where, "the process ended while it was read"
        for name, part in (("environ", process.environ), ("mounts", process.mounts)):
            if isinstance(part, Failed):
                yield where, f"{name}: {part.error}"
    for process, row, file in view.mapped():
        if row.exec_bytes and file.sha256 is None and file.hash_reason:
            yield f"{process.title} ({process.pid})", f"{file.path}: not hashed: {file.hash_reason}"
        if row.executing.verdict == "unverifiable" and row.exec_bytes:
            yield f"{process.title} ({process.pid})", f"{file.path}: not compared: {row.executing.reason}"


def _map_gaps(process: Process) -> Iterator[str]:
    if not isinstance(process.maps, Maps):
        yield f"memory map: {process.maps.error if process.maps else 'not read'}"
    elif process.maps.truncated or process.maps.malformed:
        yield f"memory map: {process.maps.malformed} lines malformed, truncated: {process.maps.truncated}"


def _unloaded(view: View) -> Iterator[tuple[str, str]]:
    """Objects that the dynamic linker removed and that no poll had seen."""
    for inside in view.insides():
        if isinstance(inside.link_map, Failed):
            yield f"{inside.label} ({inside.pid})", f"link map: {inside.link_map.error}"
        elif inside.link_map.subs:
            yield (
                f"{inside.label} ({inside.pid})",
                f"{inside.link_map.subs} native objects were unloaded before the view was taken",
            )


def _counted(view: View) -> Iterator[tuple[str, str]]:
    """The same from outside, for processes with no view of their own."""
    for process in view.processes:
        where = f"{process.title} ({process.pid})"
        if view.inside(process) or process.linker is None:
            continue
        if isinstance(process.linker, Failed):
            yield where, f"unloaded objects cannot be counted: {process.linker.error}"
        elif process.linker.subs:
            yield where, f"{process.linker.subs} native objects were unloaded before the process was read"


def jit_at_run(view: View) -> list[Finding]:
    """JIT_REBUILT_AT_RUN: a note that names what was compiled now, and by which compiler."""
    made = [a for a in view.report.jit.artifacts if a.origin == "this_run" and a.path.endswith(".so")]
    if not made:
        return []
    names = sorted({name for artifact in made for name in artifact.kernels})
    mapped = sum(artifact.mapped for artifact in made)
    actual = f"{len(made)} libraries, {mapped} mapped; kernels: {', '.join(names) or 'none named'}"
    compilers: list[JsonValue] = [_compiler(one) for one in view.report.jit.compilers if one.seen_running]
    evidence: dict[str, JsonValue] = {"libraries": [*map(_library, made)], "compilers": compilers}
    return [compiled_at_run(view, actual, evidence)]


def compiled_at_run(view: View, actual: str, evidence: dict[str, JsonValue]) -> Finding:
    """JIT_REBUILT_AT_RUN: a note, or a failure where the policy forbids it."""
    if view.policy.jit_at_runtime == "allow":
        return note("JIT_REBUILT_AT_RUN", view.role, actual=actual, evidence=evidence)
    return finding(
        "JIT_REBUILT_AT_RUN",
        Status.FAIL,
        view.role,
        expected="policy.jit_at_runtime: forbid",
        actual=actual,
        evidence=evidence,
    )


def _library(one: JitArtifact) -> dict[str, JsonValue]:
    code = one.code if isinstance(one.code, CodeIdentity) else None
    return {
        "path": one.path,
        "family": one.family,
        "kernels": list(one.kernels),
        "mapped": one.mapped,
        "sha256": one.sha256 if isinstance(one.sha256, str) else None,
        "text_sha256": code.text_sha256 if code else None,
        "says_compiler": list(code.comment) if code else [],
        "compiled_by": one.compiled_by.exe if one.compiled_by else None,
    }


def _compiler(one: Compiler) -> dict[str, JsonValue]:
    return {
        "path": one.path,
        "sha256": one.sha256 if isinstance(one.sha256, str) else None,
        "owners": [f"{owner.kind} {owner.name} {owner.version}" for owner in one.owners],
        "runs_seen": one.seen_running,
    }
