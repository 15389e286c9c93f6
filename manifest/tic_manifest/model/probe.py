"""What the probe agent writes (`tic/probe-agent/v1`, docs/probe-agent.md): observations, no verdicts.

Keys are the agent's own. A part that could not be observed is `Failed` instead of its value.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from tic_manifest.model.base import Sha256Hex
from tic_manifest.model.probe_code import Operators, Running
from tic_manifest.model.probe_jit import JitEntry, JitFamily
from tic_manifest.model.probe_parts import (
    Count,
    Facts,
    Failed,
    File,
    Holder,
    Observed,
    Owner,
    Snapshot,
    Variable,
    WorkerEnd,
)


class Module(Observed):
    """One loaded module; `on_disk` is absent for built-in ones.

    `also`: files by which other entries of the search path answer to its name. `archive`: the file that it
    lies in where its own is not there. `code`: the byte code that was taken against its source, compiled.
    `live_differs`: live functions (`name:line`) whose code the source does not compile to.
    """

    name: str
    file: str | None = None
    origin: str | None = None
    loader: str | None = None
    cached: str | None = None
    search: tuple[str, ...] = ()
    on_disk: bool | None = None
    sha256: Sha256Hex | None = None
    owners: tuple[Owner, ...] = ()
    also: tuple[str, ...] = ()
    archive: str | None = None
    code: Literal["same", "differs", "unsure"] | None = None
    live_differs: tuple[str, ...] = ()


class LinkMap(Observed):
    """The dynamic linker's ledger: `subs` objects were unloaded, whatever they were.

    `links_followed`: objects are named as the memory map names them.
    """

    objects: tuple[str, ...]
    links_followed: bool = False
    count: Count
    adds: Count
    subs: Count


class Binding(Observed):
    """A key function and the mapped object that a lookup by name gives; None: nobody offers it."""

    name: str
    object: str | None


class Inside(Observed):
    """One process from inside. Only the last view of a process has `modules`.

    `environ` is Python's view, `environ_libc` the C library's; `symbols` were looked up, never called.
    """

    schema_: Literal["tic/probe-agent/v1"] = Field(alias="schema")
    kind: Literal["inside"]
    agent_version: str
    label: str
    pid: int
    start_ticks: int | Failed
    python: Facts
    modules: tuple[Module, ...]
    module_count: Count
    modules_appeared: tuple[str, ...]
    distribution_count: Count | None
    environ: tuple[Variable, ...] | Failed
    environ_libc: tuple[Variable, ...] | Failed | None = None
    symbols: tuple[Binding, ...] | Failed | None = None
    threads: Facts
    link_map: LinkMap | Failed
    parameters: Facts
    torch: Facts
    jit: Facts
    agent_effect: Facts
    running: Running | Failed | None = None
    operators: Operators | Failed | None = None


class MissingLibrary(Observed):
    """A broken edge: who needs what."""

    library: str
    needed_by: str


class UndefinedSymbol(Observed):
    """A symbol that no loaded or needed library defines; `words`: its C++ name, demangled.

    `other_version_in`: a library that has the name in another version.
    """

    symbol: str
    version: str | None
    needed_by: str
    other_version_in: str | None
    words: str | None


class BrokenImport(Observed):
    """An import that failed though its target is there, and whose failure was swallowed."""

    module: str
    importer: str
    file: str
    line: int
    where: Literal["module", "conditional", "function"]
    path: str | None = None
    missing: tuple[MissingLibrary, ...] = ()
    undefined: tuple[UndefinedSymbol, ...] = ()
    because: str | None = None


class Unloadable(Observed):
    """A library of a used wheel that cannot be loaded; `tried`: loaded code has an import of it."""

    path: str
    module: str | None
    distribution: Count
    missing: tuple[MissingLibrary, ...]
    tried: bool


class OrderDependent(Observed):
    """A needed library that is one file as it was loaded, and another by the search of who needs it."""

    library: str
    needed_by: str
    mapped: str
    mapped_sha256: Sha256Hex | None
    search: str
    search_sha256: Sha256Hex


class Imports(Observed):
    """The scan for swallowed import errors of one process."""

    pid: int
    label: str
    view_of_process: bool
    broken: tuple[BrokenImport, ...]
    absent: tuple[BrokenImport, ...]
    unloadable: tuple[Unloadable, ...]
    order: tuple[OrderDependent, ...] = ()
    scanned: Count
    not_scanned: Count
    errors: tuple[str, ...]


class Distribution(Observed):
    """An installed distribution as its folder says."""

    name: str
    version: str
    path: str
    site: str
    editable: str | None
    installer: str | None
    record_sha256: Sha256Hex | None
    error: str | None = None


class Pth(Observed):
    """A .pth file: code and folders that the interpreter takes up before the program."""

    path: str
    owners: tuple[Owner, ...]
    sha256: Sha256Hex | None = None
    code_lines: tuple[str, ...] = ()
    added_paths: tuple[str, ...] = ()
    error: str | None = None


class Mount(Observed):
    """A mount of the processes; `covers` counts loaded code below it that the image should ship."""

    mount_point: str
    root: str
    device: str
    fstype: str
    source: str
    read_only: bool
    covers: Count
    examples: tuple[str, ...]


class CodeIdentity(Observed):
    """Hash of the code section, and the compilers that the file itself names."""

    text_sha256: Sha256Hex | None
    comment: tuple[str, ...]


class CompiledBy(Observed):
    """A compiler run that was seen to write an artifact."""

    pid: int
    exe: str


class JitArtifact(Observed):
    """One file of a JIT's cache; `kernels` are the names by which the generated code calls it."""

    path: str
    family: str
    size: Count
    mtime_ns: int
    origin: Literal["this_run", "before_run"]
    mapped: bool
    sha256: Sha256Hex | Failed | None = None
    code: CodeIdentity | Failed | None = None
    compiled_by: CompiledBy | None = None
    kernels: tuple[str, ...] = ()


class JitPlace(Observed):
    """One cache folder."""

    family: str
    path: str
    files: Count
    listed: Count
    cut_short: bool


class Compiler(Observed):
    """A program that turns JIT sources into code."""

    path: str
    seen_running: Count
    configured_as: tuple[str, ...]
    sha256: Sha256Hex | Failed
    owners: tuple[Owner, ...]


class Jit(Observed):
    """Everything about JIT compilers: files, and the ledger of specializations."""

    places: tuple[JitPlace, ...] = ()
    artifacts: tuple[JitArtifact, ...] = ()
    compilers: tuple[Compiler, ...] = ()
    ledger: tuple[JitEntry, ...] = ()
    families: tuple[JitFamily, ...] = ()


class Share(Observed):
    """Files and bytes of one kind of owner."""

    files: Count
    bytes: Count


class Orphan(Observed):
    """A mapped file that nobody ships."""

    path: str
    bytes: Count
    sha256: Sha256Hex | None


class Ownership(Observed):
    """Mapped file bytes with an owner, out of all."""

    mapped_bytes: Count
    owned_bytes: Count
    files: Count
    by_kind: dict[str, Share]
    runtime: Share
    orphans: tuple[Orphan, ...]
    scope: Literal["holders", "all processes"]


class Appeared(Observed):
    """A file that was first seen mapped between two snapshots."""

    file: Count
    pid: int
    seconds: float
    bytes: Count


class Policy(Observed):
    """The checkpoint that marks the holder."""

    path: str
    files: tuple[Facts, ...]
    bytes: Count
    errors: tuple[str, ...]
    samples: Count


class ProbeReport(Observed):
    """One observation of one worker, or of a running process."""

    schema_: Literal["tic/probe-agent/v1"] = Field(alias="schema")
    kind: Literal["probe"]
    mode: Literal["run", "snapshot"]
    role: str | None
    agent: Facts
    host: Facts
    worker: WorkerEnd | None
    seen: tuple[Facts, ...]
    snapshots: tuple[Snapshot, ...]
    inside: tuple[Inside, ...]
    files: tuple[File, ...]
    holders: tuple[Holder, ...]
    policy: Policy | None
    distributions: tuple[Distribution, ...]
    debian: tuple[Facts, ...]
    pth: tuple[Pth, ...]
    mounts: tuple[Mount, ...]
    preload: Facts
    imports: tuple[Imports | Failed, ...]
    jit: Jit
    ownership: Ownership
    appeared: tuple[Appeared, ...]
    gone: tuple[str, ...]
    owner_errors: tuple[str, ...]
    notes: tuple[str, ...]

    @model_validator(mode="after")
    def _numbers_name_files(self) -> Self:
        """Every file number is one of `files`."""
        rows = [row.file for s in self.snapshots for p in s.processes for row in p.mapped]
        if max([*rows, *(row.file for row in self.appeared)], default=-1) >= len(self.files):
            raise ValueError("a file number outside the list of files")
        return self
