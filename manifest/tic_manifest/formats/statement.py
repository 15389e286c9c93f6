"""In-toto Statements, DSSE envelopes and sigstore bundles: bytes to values and back (contract, section 6).

Received bytes are kept: a Statement's digest is that of its bytes as they came, never of a re-encoding.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tic_manifest.errors import RefusedError
from tic_manifest.formats.canonical import canonical_bytes, digest_of
from tic_manifest.formats.strict_json import case_variants, load_json, read_model
from tic_manifest.model.base import Digest
from tic_manifest.model.delivery import (
    BUNDLE_TYPE,
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    STATEMENT_V1,
    Delivery,
    Statement,
    Subject,
    SubjectDigest,
)

MAX_STATEMENT_BYTES = 16 << 20
_STATEMENT_KEYS = ("_type", "subject", "predicateType", "predicate")
_BUNDLE_TYPES = (BUNDLE_TYPE, "application/vnd.dev.sigstore.bundle+json;version=0.3")


@dataclass(frozen=True, kw_only=True)
class ReadStatement:
    """A Statement of ours with the digest of its bytes."""

    value: Statement
    digest: Digest
    raw: bytes


@dataclass(frozen=True, kw_only=True)
class Signature:
    """One signature of an envelope; `key_id` is a hint and proves nothing."""

    key_id: str
    raw: bytes


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """A DSSE envelope: what was signed and by which signatures."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...]
    bundle: bytes = b""
    """The sigstore bundle that it came in; empty for a bare envelope."""

    def signed_bytes(self) -> bytes:
        """The pre-authentication encoding, which is what a signature is made over (DSSE v1.0.2)."""
        return pae(self.payload_type, self.payload)


@dataclass(frozen=True, kw_only=True)
class Signed:
    """A signed Statement in both forms: sigstore bundle and bare DSSE envelope, as bytes."""

    bundle: bytes
    envelope: bytes


def pae(payload_type: str, payload: bytes) -> bytes:
    """`DSSEv1 LEN(type) type LEN(payload) payload`, lengths in bytes as decimal ASCII."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def make_statement(delivery: Delivery, subjects: Sequence[tuple[str, Digest]]) -> Statement:
    """A Statement v1; `subjects` are (name, digest) of platform manifest and image index."""
    return Statement(
        type_=STATEMENT_V1,
        subject=tuple(
            Subject(name=name, digest=SubjectDigest(sha256=digest.removeprefix("sha256:")))
            for name, digest in subjects
        ),
        predicate_type=PREDICATE_TYPE,
        predicate=delivery,
    )


def statement_bytes(statement: Statement) -> bytes:
    """The canonical bytes of a Statement."""
    return canonical_bytes(statement)


def is_delivery(raw: bytes, where: str) -> bool:
    """Whether a Statement has our predicate type. Raises RefusedError for what is no Statement."""
    data = load_json(raw, where, max_bytes=MAX_STATEMENT_BYTES)
    if not isinstance(data, dict):
        raise _schema(where, "a Statement is an object", "an object", type(data).__name__)
    variants = case_variants(data, _STATEMENT_KEYS)
    if variants:
        raise RefusedError(
            "JSON_CASE_VARIANT", "a key of a Statement differs by letter case alone", where=where,
            actual=", ".join(ascii(key)[1:-1] for key in variants),
        )  # fmt: skip
    said = data.get("predicateType")
    if not isinstance(said, str):
        raise _schema(where, "$.predicateType is not text", "text", type(said).__name__)
    return said.rpartition("/")[0] == PREDICATE_TYPE.rpartition("/")[0]


def read_statement(raw: bytes, where: str) -> ReadStatement:
    """A Statement with our predicate. Raises RefusedError: SCHEMA, SCHEMA_VERSION, JSON_*."""
    data = load_json(raw, where, max_bytes=MAX_STATEMENT_BYTES)
    said = data.get("predicateType") if isinstance(data, dict) else None
    if isinstance(said, str) and said != PREDICATE_TYPE and is_delivery(raw, where):
        raise RefusedError(
            "SCHEMA_VERSION", "the predicate type is of another version", where=where,
            expected=PREDICATE_TYPE, actual=said, remedy="use a release that knows the version",
        )  # fmt: skip
    _check_predicate_version(data, where)
    return ReadStatement(value=read_model(raw, Statement, where), digest=digest_of(raw), raw=raw)


def _check_predicate_version(data: Any, where: str) -> None:
    predicate = data.get("predicate") if isinstance(data, dict) else None
    said = predicate.get("schema") if isinstance(predicate, dict) else None
    if isinstance(said, str) and said.startswith("tic/delivery/") and said != "tic/delivery/v1":
        raise RefusedError(
            "SCHEMA_VERSION", "the schema version is not known", where=where, expected="tic/delivery/v1",
            actual=said, remedy="use a release of tic-manifest that knows the version",
        )  # fmt: skip


def envelope_bytes(envelope: Envelope) -> bytes:
    """The JSON of a DSSE envelope."""
    return canonical_bytes(_envelope_data(envelope))


def bundle_bytes(envelope: Envelope, hint: str) -> bytes:
    """A sigstore bundle v0.3 that holds the envelope and a hint at the public key, no certificate, no log."""
    return canonical_bytes(
        {
            "mediaType": BUNDLE_TYPE,
            "verificationMaterial": {"publicKey": {"hint": hint}, "tlogEntries": []},
            "dsseEnvelope": _envelope_data(envelope),
        }
    )


def read_envelope(raw: bytes, where: str) -> Envelope:
    """A bare DSSE envelope. Raises RefusedError SCHEMA, JSON_*."""
    return _envelope(load_json(raw, where, max_bytes=2 * MAX_STATEMENT_BYTES), where)


def read_bundle(raw: bytes, where: str) -> Envelope:
    """The DSSE envelope of a sigstore bundle. Certificates and log entries are not looked at here."""
    data = load_json(raw, where, max_bytes=2 * MAX_STATEMENT_BYTES)
    known = ("mediaType", "verificationMaterial", "dsseEnvelope", "messageSignature")
    if not isinstance(data, dict) or case_variants(data, known):
        raise _schema(where, "not a sigstore bundle", "an object with the keys of a bundle", ascii(data)[:80])
    if data.get("mediaType") not in _BUNDLE_TYPES:
        raise _schema(where, "$.mediaType is not that of a bundle", BUNDLE_TYPE, ascii(data.get("mediaType")))
    return replace(_envelope(data.get("dsseEnvelope"), where), bundle=raw)


def _envelope_data(envelope: Envelope) -> dict[str, Any]:
    return {
        "payload": base64.b64encode(envelope.payload).decode(),
        "payloadType": envelope.payload_type,
        "signatures": [
            {"keyid": one.key_id, "sig": base64.b64encode(one.raw).decode()}
            if one.key_id
            else {"sig": base64.b64encode(one.raw).decode()}
            for one in envelope.signatures
        ],
    }


def _envelope(data: Any, where: str) -> Envelope:
    known = ("payload", "payloadType", "signatures")
    if not isinstance(data, dict) or case_variants(data, known) or not all(key in data for key in known):
        raise _schema(where, "not a DSSE envelope", "payload, payloadType and signatures", ascii(data)[:80])
    if data["payloadType"] != STATEMENT_TYPE:
        raise _schema(where, "the envelope holds no Statement", STATEMENT_TYPE, ascii(data["payloadType"]))
    signatures = data["signatures"]
    if not isinstance(signatures, list) or not signatures or len(signatures) > 64:
        raise _schema(where, "$.signatures", "1 to 64 signatures", ascii(signatures)[:80])
    return Envelope(
        payload_type=STATEMENT_TYPE,
        payload=_base64(data["payload"], where),
        signatures=tuple(_signature(one, where) for one in signatures),
    )


def _signature(data: Any, where: str) -> Signature:
    if not isinstance(data, dict) or case_variants(data, ("sig", "keyid")):
        raise _schema(where, "not a DSSE signature", "sig and keyid", ascii(data)[:80])
    key_id = data.get("keyid") or ""
    if not isinstance(key_id, str):
        raise _schema(where, "keyid is not text", "text", type(key_id).__name__)
    return Signature(key_id=key_id, raw=_base64(data.get("sig"), where))


def _base64(text: Any, where: str) -> bytes:
    try:
        # DSSE readers must take both alphabets (DSSE protocol.md, "Parameters").
        plain = str(text).replace("-", "+").replace("_", "/") if isinstance(text, str) else "*"
        return base64.b64decode(plain, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _schema(where, "not base64", "base64", str(error)) from error


def _schema(where: str, what: str, expected: str, actual: str) -> RefusedError:
    return RefusedError("SCHEMA", what, where=where, expected=expected, actual=actual)
