"""`assemble`: the delivery manifest, computed from receipts and runs, and the evidence beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tic_manifest.formats.canonical import canonical_bytes, digest_of
from tic_manifest.formats.lock import LoadedLock
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.base import Digest
from tic_manifest.model.delivery import (
    PREDICATE_TYPE,
    SBOM_FILE,
    SCHEMA,
    STATEMENT_V1,
    Delivery,
    ReceiptEntry,
    Statement,
    Subject,
    SubjectDigest,
)
from tic_manifest.model.oci import JudgedImage
from tic_manifest.model.receipt import Artifact, Receipt
from tic_manifest.model.record import WorkerRecord
from tic_manifest.ports import Clock, Runs, Work
from tic_manifest.rules.delivery import Judged, judge_evidence
from tic_manifest.rules.dossier import APPROVAL, BUILD_LOG, LOCK, evidence_names, read_dossier
from tic_manifest.rules.sbom import sbom_bytes


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """The delivery manifest that is attached now: what a new one supersedes."""

    digest: Digest
    raw: bytes
    statement: Statement


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """A delivery manifest and its evidence; `unchanged` where the one attached says the same already."""

    statement: bytes
    evidence: Mapping[str, bytes]
    judged: Judged
    unchanged: bool


def collect(
    lock: LoadedLock, receipts: Mapping[str, bytes], runs: Runs, work: Work, approval: bytes | None
) -> dict[str, bytes]:
    """Evidence by name: lock, receipts, build log, records, observations, scores, approval, SBOM."""
    files = {LOCK: lock.raw} | {f"receipts/{stage}.json": raw for stage, raw in receipts.items()}
    log = work.read("logs/build.log")
    files |= {BUILD_LOG: log} if log is not None else {}
    files |= {APPROVAL: approval} if approval is not None else {}
    sbom = sbom_bytes(read_dossier(files))
    return files | _outputs(files, runs) | ({SBOM_FILE: sbom} if sbom is not None else {})


def _outputs(files: Mapping[str, bytes], runs: Runs) -> dict[str, bytes]:
    dossier = read_dossier(files)
    records: dict[str, WorkerRecord] = {}
    for run in dossier.runs.values():
        named = {one.name: one for one in run.outputs}
        raw = runs.read(run.name, named["record.json"]) if "record.json" in named else None
        if raw is not None:
            records[run.name] = read_model(raw, WorkerRecord, f"runs/{run.name}/record.json")
    wanted = evidence_names(dossier.runs, records)
    read = {name: runs.read(name.split("/")[1], one) for name, one in wanted.items()}
    return {name: data for name, data in read.items() if data is not None}


def assemble(
    files: Mapping[str, bytes], image: JudgedImage, earlier: Earlier | None, clock: Clock, tool_version: str
) -> Assembled:
    """Compute the delivery manifest. Raises RefusedError for evidence that is malformed."""
    dossier = read_dossier(files)
    judged = judge_evidence(dossier, image)
    statement = Statement(
        type_=STATEMENT_V1,
        subject=tuple(_subject(*one) for one in _subjects(image)),
        predicate_type=PREDICATE_TYPE,
        predicate=Delivery(
            schema_=SCHEMA,
            run_id=next(iter(dossier.receipts.values())).run_id,
            lock_digest=dossier.lock.digest,
            supersedes=earlier.digest if earlier else None,
            created_at=clock.now(),
            tool_version=tool_version,
            rows=judged.rows,
            receipts=tuple(_entry(stage, receipt, files) for stage, receipt in dossier.receipts.items()),
            evidence=tuple(_artifact(name, files[name]) for name in sorted(files)),
        ),
    )
    if earlier is not None and _content(earlier.statement) == _content(statement):
        return Assembled(statement=earlier.raw, evidence=files, judged=judged, unchanged=True)
    return Assembled(statement=canonical_bytes(statement), evidence=files, judged=judged, unchanged=False)


def _subjects(image: JudgedImage) -> list[tuple[str, Digest]]:
    index = [("image index", image.index_digest)] if image.index_digest else []
    return [("platform manifest", image.platform_digest), *index]


def _subject(name: str, digest: Digest) -> Subject:
    return Subject(name=name, digest=SubjectDigest(sha256=digest.removeprefix("sha256:")))


def _entry(stage: str, receipt: Receipt, files: Mapping[str, bytes]) -> ReceiptEntry:
    raw = files[f"receipts/{stage}.json"]
    return ReceiptEntry(
        stage=receipt.body.stage, name=f"receipts/{stage}.json", digest=digest_of(raw), size=len(raw)
    )


def _artifact(name: str, data: bytes) -> Artifact:
    return Artifact(name=name, digest=digest_of(data), size=len(data))


def _content(statement: Statement) -> bytes:
    """What a delivery manifest says, without when it was said and what it replaces."""
    still = statement.predicate.model_copy(update={"created_at": "1970-01-01T00:00:00Z", "supersedes": None})
    return canonical_bytes(statement.model_copy(update={"predicate": still}))
