"""Receipts: our record of one stage, bound to lock, platform manifest and the run id of one delivery."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from tic_manifest.model.base import Digest, GitTree, Name, Value
from tic_manifest.model.gate import GateFacts

SCHEMA = "tic/receipt/v1"

RunId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Time = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]


class Artifact(Value):
    """A file of evidence, by digest; `size` in bytes."""

    name: str
    digest: Digest
    size: int


class Host(Value):
    """The machine a stage ran on: kernels are chosen by CPU model and flags."""

    machine: str
    cpu_model: str
    cpu_flags: tuple[str, ...]
    kernel: str
    engine: str = ""


class GateBody(Value):
    """Facts only; `rules.gate.judge` derives checks and findings from them again, purely."""

    stage: Literal["gate"] = "gate"
    facts: GateFacts


class BuiltWheel(Value):
    """A wheel built from a head: the tree it was built from, and what came out."""

    name: Name
    tree: GitTree
    file: str
    digest: Digest
    size: int


class Differing(Value):
    """A path that two builds of one lock hold in different ways; `layer` counts from 1."""

    path: str
    layer: int
    kind: str
    """`content`, `mode`, `kind`, `only earlier` or `only later`: words for people."""


class Rebuild(Value):
    """An earlier build of the same lock by the same builder, which a build without cache repeated.

    `differing` are the first of `count` paths; `only_pyc` says that every one of them is byte code.
    """

    index_digest: Digest
    platform_digest: Digest
    config_digest: Digest
    layers: tuple[Digest, ...]
    diff_ids: tuple[Digest, ...]
    differing: tuple[Differing, ...] = ()
    count: int = 0
    only_pyc: bool = False


class BuildBody(Value):
    """What the builder did. `hermetic` is measured from the build's own network mode."""

    stage: Literal["build"] = "build"
    index_digest: Digest
    config_digest: Digest
    layers: tuple[Digest, ...]
    base_platform_digest: Digest
    wheels: tuple[BuiltWheel, ...]
    hermetic: bool
    builder: str
    command: tuple[str, ...]
    log: Artifact
    again: Rebuild | None = None
    """The earlier build that this one repeated; None where it was the first, or with another builder."""


class WorkerRun(Value):
    """One run of a worker in the image: how it ended and what it left, every file by digest.

    `signal` is set where the process was ended by one; `timed_out` where our time limit did it.
    """

    name: Name
    role: Name
    command: tuple[str, ...]
    needs: tuple[Name, ...]
    exit_code: int | None
    signal: int | None = None
    timed_out: bool = False
    started_at: Time
    finished_at: Time
    log_tail: tuple[str, ...] = ()
    outputs: tuple[Artifact, ...] = ()


class ProbeBody(Value):
    """The runs of the probe; each observation file is one of the outputs."""

    stage: Literal["probe"] = "probe"
    runs: tuple[WorkerRun, ...]
    emulated: bool = False


class ValidateBody(Value):
    """The runs of final validation; scores and records are among the outputs."""

    stage: Literal["validate"] = "validate"
    runs: tuple[WorkerRun, ...]
    emulated: bool = False


class Receipt(Value):
    """One stage of one delivery."""

    schema_: Literal["tic/receipt/v1"] = Field(alias="schema")
    run_id: RunId
    lock_digest: Digest
    platform_digest: Digest | None
    started_at: Time
    finished_at: Time
    tool_version: str
    host: Host
    body: Annotated[GateBody | BuildBody | ProbeBody | ValidateBody, Field(discriminator="stage")]
    notes: dict[str, JsonValue] = {}


class Approval(Value):
    """What `approve` writes: digests of what a person read, who and when. Self-declared unless signed."""

    schema_: Literal["tic/approval/v1"] = Field(alias="schema")
    recipe_digest: Digest
    checklist_digest: Digest
    resolved_digest: Digest
    approved_by: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    approved_at: Time
