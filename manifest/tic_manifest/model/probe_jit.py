"""The JIT ledger of an observation: specializations, families, what was made again (docs/probe-agent.md)."""

from __future__ import annotations

from typing import Literal

from tic_manifest.model.base import Sha256Hex
from tic_manifest.model.probe_parts import Count, Facts, Observed


class Rederived(Observed):
    """An entry made again with an empty cache; hashes are those of the new artifact."""

    verdict: Literal["same", "differs", "not_run"]
    reason: str | None
    by: str | None
    sha256: Sha256Hex | None
    code_sha256: Sha256Hex | None


class JitEntry(Observed):
    """One specialization of one kernel.

    `origin`: image (lies in a layered file system), this_run, left_over (older, on another file system),
    elsewhere (read from a folder that no cache setting names), gone, unknown. `loaded`: None where what
    processes hold is not known. `code_sha256`: hash of the code sections. `foreign`, `stale`: reasons.
    `records`: artifacts and sources that a wheel ships, against its RECORD.
    """

    family: str
    kernel: str | None
    key: str | None
    specialization: Facts
    inputs: dict[str, Sha256Hex]
    artifact: str | None
    sha256: Sha256Hex | None
    code_sha256: Sha256Hex | None
    compiler: str | None
    origin: Literal["image", "this_run", "left_over", "elsewhere", "gone", "unknown"]
    loaded: bool | None
    foreign: tuple[str, ...]
    stale: tuple[str, ...]
    error: str | None
    paths: dict[str, str] = {}
    made_from: str | None = None
    sources: tuple[str, ...] = ()
    file_sha256: Sha256Hex | None = None
    records: dict[str, Literal["match", "differs", "unhashed"]] = {}
    rederived: Rederived | None = None


class JitFamily(Observed):
    """One JIT compiler: read, on disk only, not readable, or not there; `reason`: why it is not `read`."""

    family: str
    state: Literal["read", "disk_only", "unread", "absent"]
    reason: str
    entries: Count
    files: Count
