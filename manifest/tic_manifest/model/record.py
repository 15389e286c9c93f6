"""What a worker of our own writes beside its scores: `record.json`. Claims, each checked against bytes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from tic_manifest.model.base import Name, PersonValue, Sha256Hex

SCHEMA = "tic/worker-record/v1"

Count = Annotated[int, Field(ge=0)]


class ScoreSet(PersonValue):
    """One file of scores: `count` values of `dtype`, little-endian, requests in framework order.

    `requires_grad` and `grad_fn` are read from the tensor that held the scores; null where there was none.
    """

    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
    sha256: Sha256Hex
    dtype: Literal["float32", "float64", "bfloat16", "float16"]
    count: Count
    quantity: str
    raw: bool
    path: str
    """How they came about: `decode`, `prefill`, `no_grad`, `grad_enabled`, ..."""
    requires_grad: bool | None = None
    grad_fn: str | None = None


class BatchEntry(PersonValue):
    """`tokens` of `request` that one step of the engine computed together with the others of its list."""

    request: str
    tokens: Count


class WorkerRecord(PersonValue):
    """A record; `lengths` and `mask` (one 0 or 1 per value) give the shape of every score set."""

    schema_: Literal["tic/worker-record/v1"] = Field(alias="schema")
    role: Name
    pid: Count
    checkpoint: dict[str, Sha256Hex]
    tokens_sha256: Sha256Hex
    lengths: tuple[Count, ...]
    mask: tuple[Literal[0, 1], ...]
    scores: dict[Name, ScoreSet]
    packing: str = ""
    batches: tuple[tuple[BatchEntry, ...], ...] = ()
    backends: dict[str, str] = {}
    intervention: str | None = None
    update: dict[str, JsonValue] | None = None
    details: dict[str, JsonValue] = {}
