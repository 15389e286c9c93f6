"""The one writer of JSON: RFC 8785 bytes plus one newline, so that equal values are equal bytes."""

from __future__ import annotations

import hashlib

import rfc8785
from pydantic import BaseModel

from tic_manifest.model.base import Digest


def plain(value: BaseModel) -> dict[str, object]:
    """The JSON object of a value, keys as in the document."""
    return value.model_dump(mode="json", by_alias=True)


def canonical_bytes(value: object) -> bytes:
    """RFC 8785 bytes of a value or of plain JSON data, and one newline (contract, section 1: lock)."""
    data = plain(value) if isinstance(value, BaseModel) else value
    return bytes(rfc8785.dumps(data)) + b"\n"  # type: ignore[arg-type]


def digest_of(data: bytes) -> Digest:
    """`sha256:<hex>` of bytes as stored."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def canonical_digest(value: object) -> Digest:
    """The digest of the canonical bytes of a value."""
    return digest_of(canonical_bytes(value))
