"""An observation as the rules read it: the processes that count, and their files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from tic_manifest.model.host import HostPolicy
from tic_manifest.model.probe import Imports, Inside, Module, ProbeReport
from tic_manifest.model.probe_parts import File, Mapped, Owner, Process, Variable
from tic_manifest.model.verdict import Finding

PYTHON = re.compile(r"/(python[0-9.]*|libpython[0-9.]+[a-z]*\.so[0-9.]*)$")
START = "start"
"""The snapshot that nobody waits for: what was there before the model. It is compared, not judged."""
MEMORY = "memory"
"""The label of a view that the agent read from the memory of a process."""
MAX_FINDINGS = 200
"""Findings of one code that are listed; the last one says how many more there are."""


@dataclass(frozen=True)
class View:
    """A report with the processes that are judged: those that hold the model, else every one."""

    report: ProbeReport
    policy: HostPolicy = field(default_factory=HostPolicy)

    @property
    def role(self) -> str:
        """The role, as findings name it."""
        return self.report.role or "process"

    @property
    def processes(self) -> tuple[Process, ...]:
        """Every view of the judged processes, over the snapshots that a mark or a caller asked for."""
        judged = [s for s in self.report.snapshots if s.label != START]
        seen = [p for s in judged for p in s.processes if p.title is not None]
        chosen = {(h.pid, h.start_ticks) for h in self.report.holders}
        return tuple(p for p in seen if not chosen or (p.pid, p.start_ticks) in chosen)

    def mapped(self) -> Iterator[tuple[Process, Mapped, File]]:
        """Each mapped file of each judged process."""
        for process in self.processes:
            for row in process.mapped:
                yield process, row, self.report.files[row.file]

    def loaded_files(self) -> tuple[File, ...]:
        """Files that judged processes mapped at a snapshot or between two."""
        pids = {p.pid for p in self.processes}
        numbers = {row.file for _, row, _ in self.mapped()}
        numbers |= {row.file for row in self.report.appeared if row.pid in pids}
        return tuple(self.report.files[n] for n in sorted(numbers))

    def by_path(self) -> dict[str, File]:
        """Mapped files by path, memory that only looks like a file left out."""
        return {file.path: file for file in self.loaded_files() if not file.runtime}

    def sizes(self) -> dict[str, int]:
        """Mapped bytes of each file: the most that one process mapped of it."""
        pids = {p.pid for p in self.processes}
        rows = [(row.file, row.bytes) for _, row, _ in self.mapped()]
        rows += [(row.file, row.bytes) for row in self.report.appeared if row.pid in pids]
        sizes: dict[str, int] = {}
        for number, size in rows:
            file = self.report.files[number]
            if not file.runtime:
                sizes[file.path] = max(size, sizes.get(file.path, 0))
        return sizes

    def inside(self, process: Process) -> tuple[Inside, ...]:
        """The views that the process gave of itself."""
        known = process.status.get("ns_pids")
        pids = {process.pid, *(known if isinstance(known, list) else [])}
        return tuple(v for v in self.report.inside if v.pid in pids and v.start_ticks == process.start_ticks)

    def is_python(self, process: Process) -> bool:
        """Whether a process executes a Python interpreter; its title counts for nothing."""
        files = [self.report.files[row.file].path for row in process.mapped if row.exec_bytes]
        return any(PYTHON.search(path) for path in files)

    def insides(self) -> tuple[Inside, ...]:
        """Inside views of all judged processes, each once."""
        found = {id(v): v for p in self.processes for v in self.inside(p)}
        return tuple(found.values())

    def modules(self) -> tuple[Module, ...]:
        """Modules of the judged processes."""
        return tuple(m for v in self.insides() for m in v.modules)

    def imports(self) -> tuple[Imports, ...]:
        """Import scans of the judged processes."""
        pids = {v.pid for v in self.insides()}
        return tuple(i for i in self.report.imports if isinstance(i, Imports) and i.pid in pids)

    def variable(self, name: str) -> tuple[str, ...]:
        """Values of an environment variable at exec, over the judged processes."""
        rows = [v for p in self.processes if isinstance(p.environ, tuple) for v in p.environ]
        return tuple(dict.fromkeys(v.value for v in rows if _named(v, name) and v.value))


def _named(variable: Variable, name: str) -> bool:
    return variable.name == name


def bounded(findings: Iterable[Finding]) -> list[Finding]:
    """At most `MAX_FINDINGS`, exact repeats dropped; the last one says how many are not listed."""
    unique = {one.model_dump_json(): one for one in findings}
    shown = list(islice(unique.values(), MAX_FINDINGS))
    more = len(unique) - len(shown)
    if more:
        last = shown[-1]
        shown[-1] = last.model_copy(update={"evidence": {**last.evidence, "not_listed": more}})
    return shown


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """What judged processes loaded of one wheel: number of modules, (path, sha256) of native libraries."""

    modules: int
    native: tuple[tuple[str, str | None], ...]
    differing: tuple[str, ...]

    @property
    def files(self) -> int:
        """Loaded files in all."""
        return self.modules + len(self.native)


def loaded_of(view: View, wheel: str) -> Loaded:
    """Loaded files of the distribution that a wheel file installs, by its name and version."""
    key = _wheel_key(wheel)
    modules = {m.file: m.owners for m in view.modules() if m.file and _owned(m.owners, key)}
    native = {f.path: f for f in view.loaded_files() if _owned(f.owners, key)}
    owners = {**modules, **{path: file.owners for path, file in native.items()}}
    return Loaded(
        modules=len(modules.keys() - native.keys()),
        native=tuple((path, native[path].sha256) for path in sorted(native)),
        differing=tuple(sorted(path for path, rows in owners.items() if _owned(rows, key, "differs"))),
    )


def _wheel_key(wheel: str) -> tuple[str, str]:
    name, version = wheel.split("-")[:2] if wheel.count("-") >= 4 else (wheel, "")
    return _normal(name), version


def _normal(name: str) -> str:
    """A project name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _owned(owners: Iterable[Owner], key: tuple[str, str], record: str | None = None) -> bool:
    return any(
        owner.kind == "wheel"
        and (_normal(owner.name or ""), owner.version) == key
        and record in (None, owner.record)
        for owner in owners
    )
