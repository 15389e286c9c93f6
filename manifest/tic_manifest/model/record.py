"""What a worker writes beside its scores: `record.json`. A worker's own words, each checked against bytes.

A worker is a program of the recipe: keys of its own are kept beside these and never judged.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from tic_manifest.model.base import Name, PersonValue, Sha256Hex

Count = Annotated[int, Field(ge=0)]
Dtype = Literal["float32", "float64", "bfloat16", "float16"]


class ScoreFile(PersonValue):
    """One file of scores: `shape` is [requests, positions], row by row, little-endian."""

    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
    sha256: Sha256Hex
    shape: tuple[Count, Count]
    count: Count


class TensorFacts(PersonValue):
    """What the tensors that held the scores say of themselves, over `calls` forward passes."""

    calls: Count
    requires_grad: bool
    any_requires_grad: bool
    grad_fn: tuple[str, ...]


class BatchEntry(PersonValue):
    """`tokens` of `request` that one step computed together with the others of its list."""

    request: str
    tokens: Count
    padded_to: Count | None = None


class WorkerRecord(PersonValue):
    """A record; `mask` has one 0 or 1 per request and position and gives the shape of every score file."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    schema_: Literal["tic/worker-record/v1"] = Field(alias="schema")
    role: Name
    pid: Count
    checkpoint: dict[str, Sha256Hex]
    tokens_sha256: Sha256Hex
    mask: tuple[tuple[Literal[0, 1], ...], ...]
    dtype: Dtype
    byte_order: Literal["little"]
    scores: ScoreFile | None = None
    """None in the record of a worker that scores nothing: the one that makes the policy."""
    scores_grad: ScoreFile | None = None
    no_grad: TensorFacts | None = None
    grad: TensorFacts | None = None
    packing: str = ""
    batches: tuple[tuple[BatchEntry, ...], ...] = ()
    diagnostic_interventions: tuple[JsonValue, ...] = ()

    @property
    def lengths(self) -> tuple[int, ...]:
        """Positions per request, in framework order."""
        return tuple(len(row) for row in self.mask)

    @property
    def flat_mask(self) -> bytes:
        """One byte per value, request after request."""
        return bytes(one for row in self.mask for one in row)

    def score_files(self) -> dict[str, ScoreFile]:
        """Score files by the names that comparisons use."""
        named = {"scores": self.scores, "scores_grad": self.scores_grad}
        return {name: one for name, one in named.items() if one is not None}
