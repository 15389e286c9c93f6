"""What appeared in a process between its snapshots: libraries, modules, executable memory without a file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tic_manifest.model.probe_parts import Maps, Process, Snapshot
from tic_manifest.model.verdict import Finding, note
from tic_manifest.rules.probe_view import View

LISTED = 50


def appeared(view: View) -> list[Finding]:
    """APPEARED_BETWEEN: one note for two snapshots, or two views from inside, of one judged process."""
    return [*_outside(view), *_inside(view)]


def _outside(view: View) -> Iterator[Finding]:
    judged = {(p.pid, p.start_ticks): p for p in view.processes}
    for before, after in pairwise(s for s in view.report.snapshots if s.label != "last_seen"):
        for pid, start in judged:
            one, two = _find(before, pid, start), _find(after, pid, start)
            if one and two and (found := _new(view, one, two)):
                evidence: dict[str, object] = {"role": view.role, "pid": pid, "title": two.title, **found}
                counts = {
                    key: value if isinstance(value, int) else len(value) for key, value in found.items()
                }
                yield note(
                    "APPEARED_BETWEEN",
                    f"{before.label} to {after.label}",
                    actual=counts,
                    evidence=_cut(evidence),
                )


def _find(snapshot: Snapshot, pid: int, start: int | None) -> Process | None:
    return next((p for p in snapshot.processes if (p.pid, p.start_ticks) == (pid, start)), None)


def _new(view: View, one: Process, two: Process) -> dict[str, int | list[str]]:
    """Files that execute and did not before, JIT artifacts apart; growth of executable memory in bytes."""
    known = {row.file for row in one.mapped if row.exec_bytes}
    files = [view.report.files[row.file] for row in two.mapped if row.exec_bytes and row.file not in known]
    made = sorted(f.path for f in files if any(owner.kind == "jit" for owner in f.owners))
    libraries = sorted({f.path for f in files} - set(made))
    grown = _anonymous(two) - _anonymous(one)
    found: dict[str, int | list[str]] = {
        "libraries": libraries, "jit_artifacts": made, "anonymous_executable_bytes": grown
    }  # fmt: skip
    return {key: value for key, value in found.items() if value}


def _anonymous(process: Process) -> int:
    return process.maps.anonymous_executable.bytes if isinstance(process.maps, Maps) else 0


def _inside(view: View) -> Iterator[Finding]:
    """Modules that were new in a view; the first view of a process has none before it."""
    labels: dict[tuple[int, object], str] = {}
    for inside in view.insides():
        key = (inside.pid, inside.start_ticks)
        before = labels.get(key)
        labels[key] = inside.label
        if before and inside.modules_appeared:
            modules = list(inside.modules_appeared)
            evidence: dict[str, object] = {"role": view.role, "pid": inside.pid, "modules": modules}
            yield note(
                "APPEARED_BETWEEN", f"{before} to {inside.label}",
                actual={"modules": len(inside.modules_appeared)}, evidence=_cut(evidence),
            )  # fmt: skip


def _cut(evidence: dict[str, object]) -> dict[str, object]:
    """At most so many names of a kind; the counts stand beside them."""
    return {key: value[:LISTED] if isinstance(value, list) else value for key, value in evidence.items()}
