"""An observation as the rules read it: the processes that count, and their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from tic_manifest.model.probe import Imports, Inside, Module, ProbeReport
from tic_manifest.model.probe_parts import File, Mapped, Process, Variable
from tic_manifest.model.verdict import Finding

MAX_FINDINGS = 200
"""Findings of one code that are listed; the last one says how many more there are."""


@dataclass(frozen=True)
class View:
    """A report with the processes that are judged: those that hold the model, else every one."""

    report: ProbeReport

    @property
    def role(self) -> str:
        """The role, as findings name it."""
        return self.report.role or "process"

    @property
    def processes(self) -> tuple[Process, ...]:
        """Every view of the judged processes, over all snapshots."""
        seen = [p for s in self.report.snapshots for p in s.processes if p.title is not None]
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

    def inside(self, process: Process) -> tuple[Inside, ...]:
        """The views that the process gave of itself."""
        known = process.status.get("ns_pids")
        pids = {process.pid, *(known if isinstance(known, list) else [])}
        return tuple(v for v in self.report.inside if v.pid in pids and v.start_ticks == process.start_ticks)

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
