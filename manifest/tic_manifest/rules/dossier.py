"""A dossier: all evidence of one delivery, read once into values. What is not there stays None or empty.

Names of evidence files: `lock.json`, `receipts/STAGE.json`, `runs/WORKER/FILE`, `build.log`, `approval.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tic_manifest.errors import RefusedError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.formats.lock import LoadedLock, read_lock
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.receipt import (
    Approval,
    Artifact,
    BuildBody,
    GateBody,
    ProbeBody,
    Receipt,
    ValidateBody,
    WorkerRun,
)
from tic_manifest.model.record import WorkerRecord
from tic_manifest.rules.validation import Side

LOCK, APPROVAL, BUILD_LOG = "lock.json", "approval.json", "build.log"
STAGES = ("gate", "build", "probe", "validate")
EVIDENCE_OF_RUN = ("record.json", "probe.json")


@dataclass(frozen=True, kw_only=True)
class Dossier:
    """Evidence as values; `files` are the raw bytes by name, each already checked against its digest."""

    files: Mapping[str, bytes]
    lock: LoadedLock
    receipts: Mapping[str, Receipt]
    approval: Approval | None

    @property
    def gate(self) -> GateBody | None:
        """What the gate saw."""
        body = self.receipts["gate"].body if "gate" in self.receipts else None
        return body if isinstance(body, GateBody) else None

    @property
    def build(self) -> BuildBody | None:
        """What the builder did."""
        body = self.receipts["build"].body if "build" in self.receipts else None
        return body if isinstance(body, BuildBody) else None

    @property
    def probe(self) -> ProbeBody | None:
        """The runs of the probe."""
        body = self.receipts["probe"].body if "probe" in self.receipts else None
        return body if isinstance(body, ProbeBody) else None

    @property
    def validate(self) -> ValidateBody | None:
        """The runs of final validation."""
        body = self.receipts["validate"].body if "validate" in self.receipts else None
        return body if isinstance(body, ValidateBody) else None

    @property
    def runs(self) -> dict[str, WorkerRun]:
        """Every worker run of probe and validation by name."""
        bodies = [body for body in (self.probe, self.validate) if body is not None]
        return {run.name: run for body in bodies for run in body.runs}

    def artifact(self, name: str) -> Artifact | None:
        """An evidence file by digest and size."""
        data = self.files.get(name)
        return None if data is None else Artifact(name=name, digest=digest_of(data), size=len(data))

    def output(self, run: WorkerRun, name: str) -> bytes | None:
        """An output of a run, if the evidence holds the very bytes that the receipt names."""
        data = self.files.get(f"runs/{run.name}/{name}")
        named = {one.name: one.digest for one in run.outputs}
        return data if data is not None and named.get(name) == digest_of(data) else None


def read_dossier(files: Mapping[str, bytes]) -> Dossier:
    """Read evidence. Raises RefusedError for a document that is malformed or of another stage."""
    if LOCK not in files:
        raise RefusedError("SCHEMA", "the evidence holds no lock", where=LOCK)
    receipts = {stage: _receipt(files, stage) for stage in STAGES if f"receipts/{stage}.json" in files}
    approval = read_model(files[APPROVAL], Approval, APPROVAL) if APPROVAL in files else None
    return Dossier(files=files, lock=read_lock(files[LOCK], LOCK), receipts=receipts, approval=approval)


def _receipt(files: Mapping[str, bytes], stage: str) -> Receipt:
    name = f"receipts/{stage}.json"
    receipt = read_model(files[name], Receipt, name)
    if receipt.body.stage != stage:
        raise RefusedError(
            "SCHEMA", "a receipt of another stage", where=name, expected=stage, actual=receipt.body.stage
        )
    if getattr(receipt.body, "emulated", False) and getattr(receipt.body, "runs", ()):
        raise RefusedError("SCHEMA", "a stage that ran nothing natively has no runs", where=name)
    return receipt


def side(dossier: Dossier, spec: str) -> Side:
    """One side of a comparison, given as RUN/SCORES, as far as the evidence has it."""
    name, _, scores_name = spec.partition("/")
    run = dossier.runs.get(name)
    raw = dossier.output(run, "record.json") if run else None
    record = read_model(raw, WorkerRecord, f"runs/{name}/record.json") if raw is not None else None
    scores = record.score_files().get(scores_name) if record else None
    payload = dossier.output(run, scores.file) if run and scores else None
    return Side(name=spec, run=run, record=record, scores=scores, payload=payload)


def evidence_names(runs: Mapping[str, WorkerRun], records: Mapping[str, WorkerRecord]) -> dict[str, Artifact]:
    """Which outputs of which runs travel as evidence: records, observations, and the scores they name."""
    named: dict[str, Artifact] = {}
    for run in runs.values():
        record = records.get(run.name)
        wanted = {*EVIDENCE_OF_RUN, *({one.file for one in record.score_files().values()} if record else ())}
        named |= {f"runs/{run.name}/{one.name}": one for one in run.outputs if one.name in wanted}
    return named
