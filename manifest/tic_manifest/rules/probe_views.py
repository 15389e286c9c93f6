"""One process seen twice: what it says of itself from inside against what the kernel says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from tic_manifest.model.probe import Inside, LinkMap
from tic_manifest.model.probe_parts import Linker, Process
from tic_manifest.model.verdict import Finding, Status, finding, note
from tic_manifest.rules.probe_environment import READ_AT_START, Views, views_of
from tic_manifest.rules.probe_view import View

LISTED = 100


def environment(view: View) -> list[Finding]:
    """ENV_VIEWS_DIFFER: notes about variables that the four views of a process do not agree on."""
    last = {(p.pid, p.start_ticks): p for p in view.processes if view.inside(p)}
    return [one for process in last.values() for one in _environment(view, process)]


def _environment(view: View, process: Process) -> Iterator[Finding]:
    views = views_of(view, process)
    base: dict[str, object] = {"role": view.role, "pid": process.pid, "title": process.title}
    if views.overwritten:
        base["at_exec"] = "lost in part: the process wrote its title over it"
    late: dict[str, JsonValue] = {}
    for name in views.names():
        kinds = _kinds(views, name)
        if "late" in kinds and len(kinds) == 1:
            late[name] = views.effective(name)
        elif kinds:
            evidence = {**base, "differs": list(kinds)}
            yield note("ENV_VIEWS_DIFFER", name, actual=views.of(name), evidence=evidence)
    if late:
        evidence = {**base, "more": max(0, len(late) - LISTED)}
        shown = dict(list(late.items())[:LISTED])
        yield note("ENV_VIEWS_DIFFER", "set after start", actual=shown, evidence=evidence)


def _kinds(views: Views, name: str) -> list[str]:
    """How the views of a variable differ: `python-libc`, `no effect` (read at the start), `late`."""
    late = views.libc if views.libc is not None else views.python
    found = []
    if views.python is not None and views.libc is not None and views.python.get(name) != views.libc.get(name):
        found.append("python-libc")
    if views.exec is None or late is None or views.exec.get(name) == late.get(name):
        return found
    if views.overwritten and name not in views.exec:
        return found
    return [*found, "no effect" if READ_AT_START.match(name) else "late"]


def disagreements(view: View) -> list[Finding]:
    """VIEWS_DISAGREE: the same field from inside and from outside, with both values."""
    return [
        one
        for process in _last(view).values()
        for inside in view.inside(process)[-1:]
        for one in (*_objects(view, process, inside), *_extensions(view, process, inside),
                    *_program(view, process, inside), *_counters(view, process, inside))
    ]  # fmt: skip


def _last(view: View) -> dict[tuple[int, int | None], Process]:
    return {(p.pid, p.start_ticks): p for p in view.processes if p.mapped}


def _mapped(view: View, process: Process) -> dict[str, str | None]:
    """Every file that any look from outside saw mapped in a process, with its hash."""
    rows = [row.file for p, row, _ in view.mapped() if (p.pid, p.start_ticks) == _key(process)]
    rows += [row.file for s in view.report.snapshots for p in s.processes for row in p.mapped
             if (p.pid, p.start_ticks) == _key(process)]  # fmt: skip
    rows += [row.file for row in view.report.appeared if row.pid == process.pid]
    return {view.report.files[n].path: view.report.files[n].sha256 for n in rows}


def _key(process: Process) -> tuple[int, int | None]:
    return process.pid, process.start_ticks


def _objects(view: View, process: Process, inside: Inside) -> Iterator[Finding]:
    """Objects of the dynamic linker's list that no memory map has."""
    if isinstance(inside.link_map, LinkMap) and inside.link_map.links_followed:
        mapped = _mapped(view, process)
        named = {name.removesuffix(" (deleted)") for name in mapped}
        for path in inside.link_map.objects:
            if path.startswith("/") and path not in named:
                yield _says(view, process, path, "loaded, says the dynamic linker", "not mapped", "library")


def _extensions(view: View, process: Process, inside: Inside) -> Iterator[Finding]:
    """Extension modules whose file is not mapped under its name, and neither are its bytes."""
    mapped = _mapped(view, process)
    hashes = {sha256 for sha256 in mapped.values() if sha256}
    for module in inside.modules:
        file = module.file or ""
        if file.endswith(".so") and module.on_disk and file not in mapped and module.sha256 not in hashes:
            yield _says(view, process, module.name, file, "not mapped", "module")


def _program(view: View, process: Process, inside: Inside) -> Iterator[Finding]:
    """The interpreter that Python names, and the program that the kernel runs."""
    said = inside.python.get("program")
    if isinstance(said, str) and process.exe and said != process.exe.removesuffix(" (deleted)"):
        yield _says(view, process, "program", said, process.exe, "program")


def _counters(view: View, process: Process, inside: Inside) -> Iterator[Finding]:
    """Objects ever added: the later look from outside cannot have fewer than the process had."""
    if isinstance(process.linker, Linker) and isinstance(inside.link_map, LinkMap):
        counts: Mapping[str, int] = {"inside": inside.link_map.adds, "outside": process.linker.adds}
        if counts["outside"] < counts["inside"]:
            yield _says(view, process, "objects added", counts["inside"], counts["outside"], "dynamic linker")


def _says(
    view: View, process: Process, subject: str, inside: JsonValue, outside: JsonValue, field: str
) -> Finding:
    evidence: dict[str, object] = {
        "role": view.role, "pid": process.pid, "title": process.title, "field": field,
    }  # fmt: skip
    return finding(
        "VIEWS_DISAGREE", Status.FAIL, subject, expected="one answer from inside and from outside",
        actual={"inside": inside, "outside": outside}, evidence=evidence,
    )  # fmt: skip
