"""The delivery manifest: an in-toto Statement whose predicate holds the six rows of the template.

Rows hold facts and the digests of their evidence. A status in a row is what was computed when the row was
written; whoever judges computes it again from the evidence and believes none of it.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from tic_manifest.model.base import Digest, GitCommit, GitTree, Name, Sha256Hex, Value
from tic_manifest.model.receipt import Artifact, RunId, Time
from tic_manifest.model.verdict import Report, Status

SCHEMA: Final = "tic/delivery/v1"
PREDICATE_TYPE: Final = "https://tic-manifest.dev/delivery/v1"
STATEMENT_V1: Final = "https://in-toto.io/Statement/v1"
STATEMENT_V01 = "https://in-toto.io/Statement/v0.1"

STATEMENT_TYPE = "application/vnd.in-toto+json"
BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
DSSE_TYPE = "application/vnd.dsse.envelope.v1+json"
EVIDENCE_TYPE = "application/vnd.tic-manifest.evidence.v1"
SBOM_FILE = "sbom.cdx.json"
SBOM_TYPE = "application/vnd.cyclonedx+json"
EVIDENCE_LAYER = "application/octet-stream"

Number = Annotated[int, Field(ge=0)]
StatusName = Literal["proxy", "full_zero_update", "theta0_2", "quality", "performance"]


class Cell(Value):
    """Status of a row, or of a part of it, when it was written; `reason` where it is not `pass`."""

    status: Status
    reason: str = ""


class Pin(Value):
    """A pinned dependency: a file by name, version and sha256, or a document by digest."""

    name: str
    version: str
    sha256: Sha256Hex


class WheelFact(Value):
    """The wheel that was built from a head and what its native code comes from."""

    file: str
    digest: Digest
    tree: GitTree
    native: str = ""
    """`compiled from the head`, or the wheel that native code was taken from, with its sha256 and commit."""


class PullRequestRow(Value):
    """A pull request: review and source identity, then build evidence."""

    kind: Literal["pull_request"] = "pull_request"
    name: Name
    row: str
    url: str
    owner: str
    repo: str
    branch: str
    base: GitCommit
    head: GitCommit
    tree: GitTree
    merge_base: GitCommit | None = None
    paths: tuple[str, ...] = ()
    """For verl: where recipe and image build script lie in the head's tree."""
    wheel: WheelFact | None = None
    evidence: tuple[Artifact, ...] = ()
    gate: Cell
    build: Cell


class ImageRow(Value):
    """The unified image: labelled digests, pins, log, what the real workers imported, mounts."""

    kind: Literal["image"] = "image"
    platform: str
    base_platform_digest: Digest | None
    base_index_digest: Digest | None = None
    platform_digest: Digest
    index_digest: Digest | None
    config_digest: Digest
    pins: tuple[Pin, ...]
    build_log: Artifact | None
    trainer: tuple[Artifact, ...] = ()
    rollout: tuple[Artifact, ...] = ()
    mounts: tuple[str, ...] = ()
    """Every mount of a measured container, as `SOURCE_KIND:TARGET:ro|rw`; development sources never."""
    build: Cell
    probe: Cell


class RecipeRow(Value):
    """The approved recipe: digests of what a person approved, and whether a person did."""

    kind: Literal["recipe"] = "recipe"
    script: Artifact
    resolved: Artifact
    checklist: Artifact
    approval: Artifact | None
    approved_by: str | None = None
    changes: str | None = None
    """Changes from the reference recipe; null where none is named."""
    dataset: str | None = None
    topology: str | None = None
    approved: Cell


class ValidationStatus(Value):
    """One of the five statuses of final validation, or one comparison that belongs to it.

    `valid_tokens` and `mismatches` count selected tokens; null where nothing was measured.
    """

    status_name: StatusName
    id: str = ""
    command: tuple[str, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    valid_tokens: Number | None = None
    mismatches: Number | None = None
    first_mismatch: str | None = None
    scope_limitation: str = ""
    result: Cell


class ValidationRow(Value):
    """Final validation, tied to the platform manifest above; each status is reported separately."""

    kind: Literal["validation"] = "validation"
    platform_digest: Digest
    statuses: tuple[ValidationStatus, ...]


Row = Annotated[PullRequestRow | ImageRow | RecipeRow | ValidationRow, Field(discriminator="kind")]


class ReceiptEntry(Value):
    """A receipt that the rows were computed from, by digest."""

    stage: Literal["gate", "build", "probe", "validate"]
    name: str
    digest: Digest
    size: Number


class Delivery(Value):
    """The predicate. Rows stand in the order of the template; further pull requests follow as further rows.

    `evidence` names every file of the evidence artifact; `supersedes` is the digest of the Statement bytes of
    the delivery manifest that this one replaces.
    """

    schema_: Literal["tic/delivery/v1"] = Field(alias="schema")
    run_id: RunId
    lock_digest: Digest
    supersedes: Digest | None
    created_at: Time
    tool_version: str
    rows: Annotated[tuple[Row, ...], Field(min_length=4)]
    receipts: tuple[ReceiptEntry, ...]
    evidence: tuple[Artifact, ...]


class SubjectDigest(Value):
    """The digest set of a subject; sha256 alone is read."""

    sha256: Sha256Hex


class Subject(Value):
    """What a Statement is about."""

    name: Annotated[str, StringConstraints(max_length=4096)]
    digest: SubjectDigest


class Statement(Value):
    """An in-toto Statement with our predicate."""

    type_: Literal["https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1"] = Field(
        alias="_type"
    )
    subject: Annotated[tuple[Subject, ...], Field(min_length=1)]
    predicate_type: Literal["https://tic-manifest.dev/delivery/v1"]
    predicate: Delivery

    def names(self, digest: Digest) -> bool:
        """Whether a digest is among the subjects."""
        return any("sha256:" + one.digest.sha256 == digest for one in self.subject)


class VerifyReport(Report):
    """The report of `verify`: the depth that was reached, who signed, and what was not read."""

    depth: Literal["identity", "content", "files"]
    authenticity: str
    not_read: tuple[str, ...] = ()
    kinds: dict[str, str] = {}
    """Every digest of the report to the kind of document that it names."""
