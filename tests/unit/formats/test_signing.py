"""Signing a Statement and telling who signed (rules/image-verify.md S24, S25; contract, section 6)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from tic_manifest.errors import PersonError, RefusedError
from tic_manifest.formats.signing import read_public_key, sign_statement, signers_of
from tic_manifest.formats.statement import pae, read_bundle, read_envelope

PAYLOAD = b'{"_type":"https://in-toto.io/Statement/v1"}\n'


def pems(key: Any, passphrase: bytes | None = None) -> tuple[bytes, bytes]:
    hide = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hide)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private, public


KEYS = {
    "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}


@pytest.mark.parametrize("kind", KEYS)
def test_a_signature_is_by_its_key_and_by_no_other(kind: str) -> None:
    private, public = pems(KEYS[kind]())
    others = [read_public_key(pems(make())[1], "other", f"other {name}") for name, make in KEYS.items()]
    mine = read_public_key(public, "mine.pub", "mine")
    signed = sign_statement(PAYLOAD, private, None, "key.pem")
    for envelope in (read_bundle(signed.bundle, "bundle"), read_envelope(signed.envelope, "envelope")):
        assert envelope.payload == PAYLOAD
        assert signers_of([mine, *others], envelope) == {"mine"}


@pytest.mark.parametrize("kind", KEYS)
def test_one_changed_byte_of_payload_or_signature_is_no_signature(kind: str) -> None:
    private, public = pems(KEYS[kind]())
    key = read_public_key(public, "mine.pub")
    data = json.loads(sign_statement(PAYLOAD, private, None, "key.pem").envelope)
    for where in ("payload", "sig"):
        spoiled = json.loads(json.dumps(data))
        place = spoiled if where == "payload" else spoiled["signatures"][0]
        raw = bytearray(base64.b64decode(place[where]))
        raw[len(raw) // 2] ^= 1
        place[where] = base64.b64encode(bytes(raw)).decode()
        assert not signers_of([key], read_envelope(json.dumps(spoiled).encode(), "envelope"))


def test_the_encoding_that_is_signed_is_that_of_dsse() -> None:
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_a_key_without_a_name_is_named_by_its_fingerprint() -> None:
    key = read_public_key(pems(KEYS["p256"]())[1], "k.pub")
    assert key.name == f"key {key.fingerprint}" and len(key.fingerprint) == 71


def test_a_passphrase_is_needed_and_taken() -> None:
    private, public = pems(KEYS["ed25519"](), b"secret")
    signed = sign_statement(PAYLOAD, private, b"secret", "key.pem")
    assert signers_of([read_public_key(public, "k")], read_envelope(signed.envelope, "e"))
    for wrong in (None, b"other"):
        with pytest.raises(PersonError) as raised:
            sign_statement(PAYLOAD, private, wrong, "key.pem")
        assert "secret" not in "\n".join(raised.value.lines())


@pytest.mark.parametrize("make", [
    lambda: rsa.generate_private_key(65537, 2048), lambda: ec.generate_private_key(ec.SECP384R1()),
])  # fmt: skip
def test_other_kinds_of_keys_are_refused(make: Any) -> None:
    private, public = pems(make())
    with pytest.raises(PersonError):
        read_public_key(public, "k.pub")
    with pytest.raises(PersonError):
        sign_statement(PAYLOAD, private, None, "k.pem")


BAD = [b"{}", b'{"payload":"e30=","payloadType":"a/b","signatures":[{"sig":""}]}',
       b'{"payload":"*","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":""}]}',
       b'{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[]}',
       b'{"Payload":"e30=","payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":""}]}',
       b'{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[5]}']  # fmt: skip


@pytest.mark.parametrize("raw", BAD)
def test_what_is_no_envelope_is_refused(raw: bytes) -> None:
    with pytest.raises(RefusedError):
        read_envelope(raw, "envelope")
    with pytest.raises(RefusedError):
        read_bundle(raw, "bundle")
