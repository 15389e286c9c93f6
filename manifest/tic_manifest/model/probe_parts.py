"""Parts of an observation by the probe agent: files, processes, how a worker ended (docs/probe-agent.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from tic_manifest.model.base import Sha256Hex

Facts = dict[str, JsonValue]
Count = Annotated[int, Field(ge=0)]


class Observed(BaseModel):
    """The base: frozen, closed, strict."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Failed(Observed):
    """A part that the agent could not observe, and why."""

    error: str


class Owner(Observed):
    """Who ships a file; `record` compares its bytes with what the owner recorded."""

    kind: Literal["wheel", "dpkg", "jit", "generated", "agent", "worker", "output", "input", "runtime"]
    name: str | None = None
    version: str | None = None
    distribution: Count | None = None
    recorded_sha256: Sha256Hex | None = None
    record: Literal["match", "differs", "unhashed"] | None = None
    family: str | None = None
    origin: str | None = None
    by: str | None = None


class Elf(Observed):
    """Identity and dependencies of a mapped file; all empty for what is no ELF file."""

    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    build_id: str | None = None
    machine: str | None = None
    error: str | None = None


class File(Observed):
    """A file that some process mapped; sizes in bytes, times in nanoseconds of the epoch."""

    path: str
    root: str
    device: str
    inode: int
    deleted: bool
    runtime: bool
    owners: tuple[Owner, ...] = ()
    sha256: Sha256Hex | None = None
    size: Count | None = None
    mtime_ns: int | None = None
    ctime_ns: int | None = None
    elf: Elf | None = None
    late: bool = False
    late_bytes: Count = 0
    hash_reason: str | None = None
    changed_while_hashing: bool = False


class Executing(Observed):
    """Executable memory against the file that was hashed; `bytes` are those compared."""

    verdict: Literal["same", "differs", "unverifiable", "not_executable"]
    reason: str | None = None
    bytes: Count = 0
    offset: int | None = None


class KernelId(Observed):
    """The build id as the kernel reads it from mapped pages; a consistency check, never an identity."""

    build_id: str | None
    reason: str | None


class Mapped(Observed):
    """One file in one process; `file` is its place in the report's `files`."""

    file: Count
    segments: Count
    bytes: Count
    exec_bytes: Count
    perms: tuple[str, ...]
    executing: Executing
    identity: Literal["same", "inode-only", "differs", "gone", "deleted"] | None = None
    read_by: Literal["path", "map_files", "none"] | None = None
    kernel: KernelId | None = None


class Anonymous(Observed):
    """Executable memory without a file."""

    count: Count
    bytes: Count
    writable: Count
    names: tuple[str, ...]


class Maps(Observed):
    """How the memory map was read."""

    lines: Count
    malformed: Count
    truncated: bool
    anonymous_executable: Anonymous


class Variable(Observed):
    """An environment variable: in clear, hashed, or withheld."""

    name: str
    value: str | None = None
    sha256: Sha256Hex | None = None
    secret: bool = False


class Ancestor(Observed):
    """A process above; `name` is its first argument, whole where `title` is cut at 15 bytes."""

    pid: int
    title: str
    name: str | None
    start_ticks: int


class Region(Observed):
    """Memory in which samples of the policy were found."""

    bytes: Count
    perms: str
    name: str


class HolderEvidence(Observed):
    """What the search for the policy's own bytes found in one process."""

    maps_checkpoint: bool
    samples: Count
    found: Count
    holder: bool
    bytes_scanned: Count
    forms: tuple[str, ...] = ()
    cut_short: bool = False
    regions: tuple[Region, ...] = ()
    skipped: str | None = None
    error: str | None = None


class Linker(Observed):
    """The dynamic linker's counters, read from outside: `subs` objects were unloaded."""

    adds: Count
    subs: Count
    count: Count


class Process(Observed):
    """One process from outside. One that ended before it was read has only `pid`, `error` and `exited`."""

    pid: int
    exited: bool = False
    error: str | None = None
    pid_reused: bool = False
    title: str | None = None
    state: str | None = None
    parent: int | None = None
    group: int | None = None
    session: int | None = None
    start_ticks: int | None = None
    started_ns: int | Failed | None = None
    argv: tuple[str, ...] | Failed = ()
    exe: str | None = None
    cwd: str | None = None
    root: str | None = None
    namespaces: dict[str, str | None] = {}
    cgroup: tuple[str, ...] | Failed = ()
    status: Facts = {}
    ancestors: tuple[Ancestor, ...] | Failed = ()
    environ: tuple[Variable, ...] | Failed = ()
    mounts: tuple[Facts, ...] | Failed = ()
    maps: Maps | Failed | None = None
    mapped: tuple[Mapped, ...] = ()
    holder: HolderEvidence | None = None
    linker: Linker | Failed | None = None


class Snapshot(Observed):
    """All processes of the tree at one moment; `seconds` since the start, `took` to look."""

    label: str
    seconds: float
    took: float
    processes: tuple[Process, ...]


class Holder(Observed):
    """A process that holds the model, found in its memory or (without host memory) by its inside view."""

    pid: int
    start_ticks: int
    title: str
    argv: tuple[str, ...] | Failed
    ancestors: tuple[Ancestor, ...] | Failed
    holder: HolderEvidence | None
    snapshot: str
    by: Literal["memory", "inside"]
    parameter_bytes: Count | None


class Exit(Observed):
    """How a child ended; `status` is the exit code or the negative signal number."""

    pid: int
    seconds: float
    status: int
    code: int | None
    signal: str | None
    core_dumped: bool


class Stream(Observed):
    """Last lines of one output stream."""

    tail: tuple[str, ...]
    lines: Count
    bytes: Count
    ended: bool
    log: str
    log_truncated: bool


class WorkerEnd(Observed):
    """The run of the worker as a whole."""

    argv: tuple[str, ...]
    pid: int
    outcome: Literal["exited", "signaled", "timeout", "ready_timeout", "start_failed", "interrupted"]
    error: str | None
    exit: Exit | None
    ready: bool
    marks: dict[str, float]
    seconds: float
    adopted: tuple[Exit, ...]
    left_behind: tuple[int, ...]
    limits: dict[str, float]
    stdout: Stream | None = None
    stderr: Stream | None = None
