"""Readers of whole documents: each ends in a value or in the errors that it declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tic_manifest.errors import PersonError, RefusedError
from tic_manifest.formats.lock import read_lock
from tic_manifest.formats.oci import kind_of, parse_config, parse_index, parse_manifest
from tic_manifest.formats.policy import read_policy
from tic_manifest.formats.recipe import read_recipe
from tic_manifest.formats.statement import is_delivery, read_bundle, read_envelope, read_statement
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.receipt import Approval, Receipt
from tic_manifest.model.record import WorkerRecord


def _receipt(raw: bytes, where: str) -> Receipt:
    return read_model(raw, Receipt, where)


def _approval(raw: bytes, where: str) -> Approval:
    return read_model(raw, Approval, where)


def _record(raw: bytes, where: str) -> WorkerRecord:
    return read_model(raw, WorkerRecord, where)


def _kind(raw: bytes, where: str) -> object:
    return kind_of(raw)


MACHINE: dict[str, Callable[[bytes, str], Any]] = {
    "kind": _kind, "index": parse_index, "manifest": parse_manifest, "config": parse_config,
    "predicate": is_delivery, "statement": read_statement, "envelope": read_envelope, "bundle": read_bundle,
    "lock": read_lock, "receipt": _receipt, "approval": _approval, "record": _record,
}  # fmt: skip
PERSON: dict[str, Callable[[bytes, str], Any]] = {"policy": read_policy, "recipe": read_recipe}
NAMES = [*MACHINE, *PERSON]


def seed(name: str, raw: bytes) -> bytes:
    """An input for one reader."""
    return bytes([NAMES.index(name)]) + raw


def run_documents(data: bytes) -> None:
    """The first byte chooses the reader; whatever else it raises than its declared error is a finding."""
    if not data:
        return
    name, raw = NAMES[data[0] % len(NAMES)], data[1:]
    reader, declared = (MACHINE[name], RefusedError) if name in MACHINE else (PERSON[name], PersonError)
    try:
        reader(raw, name)
    except declared as error:
        "\n".join(error.lines()).encode("utf-8", "surrogateescape")
