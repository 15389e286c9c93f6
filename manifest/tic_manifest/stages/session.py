"""One delivery in a work folder: its lock, its run id, its receipts. Read by every stage after `lock`."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from tic_manifest.errors import UnavailableError
from tic_manifest.formats.canonical import canonical_bytes
from tic_manifest.formats.lock import LoadedLock, read_lock
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.receipt import Receipt
from tic_manifest.ports import Work

LOCK_FILE = "lock.json"
ORDER = ("gate", "lock", "build", "probe", "validate", "assemble")


@dataclass(frozen=True, kw_only=True)
class Session:
    """The delivery that a work folder holds. `run_id` is 32 hex digits, made once for a lock."""

    work: Work
    lock: LoadedLock
    run_id: str

    def folder(self) -> str:
        """Where this lock's receipts lie, relative to the work folder (contract, section 3)."""
        return f"receipts/{self.lock.digest}"

    def raw(self, stage: str) -> bytes | None:
        """The bytes of a stage's receipt."""
        return self.work.read(f"{self.folder()}/{stage}.json")

    def receipt(self, stage: str) -> Receipt | None:
        """A stage's receipt, if it was written for this lock in this delivery; else None.

        Raises RefusedError SCHEMA for a receipt that is malformed.
        """
        raw = self.raw(stage)
        if raw is None:
            return None
        receipt = read_model(raw, Receipt, f"{self.folder()}/{stage}.json")
        mine = receipt.lock_digest == self.lock.digest and receipt.run_id == self.run_id
        return receipt if mine and receipt.body.stage == stage else None

    def need(self, stage: str) -> Receipt:
        """As `receipt`. Raises UnavailableError STAGE_MISSING."""
        receipt = self.receipt(stage)
        if receipt is None:
            raise UnavailableError(
                "STAGE_MISSING", f"{stage} has left no receipt for this lock", where=str(self.work.root),
                expected=f"{self.folder()}/{stage}.json", remedy=f"run tic-manifest {stage} first",
            )  # fmt: skip
        return receipt

    def keep(self, receipt: Receipt) -> None:
        """Write a receipt whole, unless it is there already; the stage is finished once it is there."""
        raw = canonical_bytes(receipt)
        if self.raw(receipt.body.stage) != raw:
            self.work.write(f"{self.folder()}/{receipt.body.stage}.json", raw)

    def receipts(self) -> dict[str, bytes]:
        """The bytes of every receipt of this delivery, by stage in the order of the stages."""
        found = {stage: self.raw(stage) for stage in ORDER if self.receipt(stage) is not None}
        return {stage: raw for stage, raw in found.items() if raw is not None}


def open_session(work: Work, lock_file: bytes | None = None) -> Session:
    """The delivery of a work folder. Raises UnavailableError STAGE_MISSING where there is no lock."""
    raw = lock_file if lock_file is not None else work.read(LOCK_FILE)
    if raw is None:
        raise UnavailableError(
            "STAGE_MISSING", "there is no lock", where=str(work.root), expected=LOCK_FILE,
            remedy="run tic-manifest lock RECIPE first",
        )  # fmt: skip
    lock = read_lock(raw, LOCK_FILE)
    return Session(work=work, lock=lock, run_id=_run_id(work, f"receipts/{lock.digest}/run-id"))


def _run_id(work: Work, name: str) -> str:
    kept = work.read(name)
    if kept is not None and re.fullmatch(rb"[0-9a-f]{32}\n?", kept):
        return kept.decode().strip()
    made = secrets.token_hex(16)
    work.write(name, made.encode() + b"\n")
    return made
