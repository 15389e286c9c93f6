"""RECORDs of wheels as evidence: canonical JSON in one zstd frame (docs/adr/0010)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tic_manifest.errors import RefusedError
from tic_manifest.formats.canonical import canonical_bytes
from tic_manifest.formats.packed import pack, unpack
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.base import Sha256Hex
from tic_manifest.model.wheels import WheelRecord, WheelRecords

MAX_BYTES = 24 << 20
"""Four times what 150 wheels take; reading takes some times as much memory."""


def records_bytes(wheels: Iterable[WheelRecord]) -> bytes:
    """The packed document of wheels, in the order of their sha256."""
    ordered = tuple(sorted(wheels, key=lambda one: one.sha256))
    return pack(canonical_bytes(WheelRecords(schema_="tic/wheel-records/v1", wheels=ordered)))


def read_records(packed: bytes, where: str) -> Mapping[Sha256Hex, WheelRecord]:
    """Wheels by sha256. Raises RefusedError: SCHEMA, also where a wheel stands twice; JSON_*."""
    made = read_model(unpack(packed, MAX_BYTES, where), WheelRecords, where)
    found = {one.sha256: one for one in made.wheels}
    if len(found) != len(made.wheels):
        raise RefusedError("SCHEMA", "a wheel stands twice", where=where)
    return found
