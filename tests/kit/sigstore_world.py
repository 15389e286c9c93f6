"""A throw-away sigstore: certificate authority, certificate log, transparency log, and bundles made with them.

Nothing is asked over a network: the keys are made here, and `trusted_root` is what a user would be given. Formats:
RFC 6962 (certificate log), C2SP signed notes (checkpoint), rekor's `dsse` entry 0.0.1, sigstore bundle v0.3.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import struct
from typing import Any

import rfc8785
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
ISSUER = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
ISSUER_RAW = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
SCT_LIST = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
ORIGIN = "log.invalid"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
KIND = "application/vnd.in-toto+json"


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def spki(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def key_id(key: ec.EllipticCurvePrivateKey) -> bytes:
    return hashlib.sha256(spki(key)).digest()


def signed(key: ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
    return key.sign(data, ec.ECDSA(SHA256()))


def octets(raw: bytes) -> bytes:
    """DER OCTET STRING, below 256 bytes."""
    return b"\x04" + (b"%c" if len(raw) < 128 else b"\x81%c") % len(raw) + raw


class World:
    """One sigstore of our own."""

    def __init__(self) -> None:
        self.authority, self.ct, self.log = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority.invalid")])
        self.root = (
            x509.CertificateBuilder(subject_name=name, issuer_name=name, public_key=self.authority.public_key())
            .serial_number(1).not_valid_before(NOW - dt.timedelta(days=365)).not_valid_after(NOW + dt.timedelta(days=3650))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(sign=False), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.authority.public_key()), critical=False)
            .sign(self.authority, SHA256())
        )  # fmt: skip

    def trusted_root(self) -> bytes:
        """The file that a verifier is given."""
        start = (NOW - dt.timedelta(days=365)).isoformat().replace("+00:00", "Z")
        return json.dumps(
            {
                "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
                "tlogs": [_log(self.log, start)], "ctlogs": [_log(self.ct, start)], "timestampAuthorities": [],
                "certificateAuthorities": [{
                    "subject": {"organization": "invalid", "commonName": "authority.invalid"}, "uri": "https://authority.invalid",
                    "certChain": {"certificates": [{"rawBytes": b64(self.root.public_bytes(Encoding.DER))}]},
                    "validFor": {"start": start},
                }],
            }
        ).encode()  # fmt: skip

    def bundle(self, statement: bytes, identity: str, issuer: str, **spoil: Any) -> bytes:
        """A bundle as a keyless signer makes it; `spoil` may give another payload to be carried."""
        key = ec.generate_private_key(ec.SECP256R1())
        der = self.certificate(key, identity, issuer).public_bytes(Encoding.DER)
        kind = KIND.encode()
        sig = signed(key, b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(statement), statement))
        return json.dumps(
            {
                "mediaType": BUNDLE,
                "verificationMaterial": {
                    "certificate": {"rawBytes": b64(der)}, "tlogEntries": [self.entry(statement, der, sig)],
                    "timestampVerificationData": {"rfc3161Timestamps": []},
                },
                "dsseEnvelope": {
                    "payload": b64(spoil.get("payload", statement)), "payloadType": KIND,
                    "signatures": [{"sig": b64(sig), "keyid": ""}],
                },
            }
        ).encode()  # fmt: skip

    def certificate(self, key: ec.EllipticCurvePrivateKey, identity: str, issuer: str) -> x509.Certificate:
        """A code-signing certificate of ten minutes, with the promise of the certificate log inside."""
        builder = self._builder(key, identity, issuer)
        tbs = builder.sign(self.authority, SHA256()).tbs_certificate_bytes
        when = struct.pack(">Q", int(NOW.timestamp() * 1000))
        entry = key_id(self.authority) + struct.pack(">I", len(tbs))[1:] + tbs
        sig = signed(self.ct, b"\0\0" + when + b"\0\1" + entry + b"\0\0")
        sct = b"\0" + key_id(self.ct) + when + b"\0\0" + b"\x04\x03" + struct.pack(">H", len(sig)) + sig
        listed = struct.pack(">H", len(sct) + 2) + struct.pack(">H", len(sct)) + sct
        extension = x509.UnrecognizedExtension(SCT_LIST, octets(listed))
        return builder.add_extension(extension, critical=False).sign(self.authority, SHA256())

    def _builder(
        self, key: ec.EllipticCurvePrivateKey, identity: str, issuer: str
    ) -> x509.CertificateBuilder:
        name = x509.RFC822Name(identity) if "@" in identity else x509.UniformResourceIdentifier(identity)
        text = issuer.encode()
        return (
            x509.CertificateBuilder(subject_name=x509.Name([]), issuer_name=self.root.subject, public_key=key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(NOW - dt.timedelta(minutes=1))
            .not_valid_after(NOW + dt.timedelta(minutes=9))
            .add_extension(x509.SubjectAlternativeName([name]), critical=True)
            .add_extension(_usage(sign=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.authority.public_key()), critical=False)
            .add_extension(x509.UnrecognizedExtension(ISSUER_RAW, text), critical=False)
            .add_extension(x509.UnrecognizedExtension(ISSUER, b"\x0c%c" % len(text) + text), critical=False)
        )  # fmt: skip

    def entry(self, payload: bytes, certificate: bytes, sig: bytes) -> dict[str, Any]:
        """The only entry of a log, with its proof, its checkpoint and its promise."""
        pem = x509.load_der_x509_certificate(certificate).public_bytes(Encoding.PEM)
        body = rfc8785.dumps(
            {
                "apiVersion": "0.0.1", "kind": "dsse",
                "spec": {
                    "envelopeHash": {"algorithm": "sha256", "value": "0" * 64},
                    "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
                    "signatures": [{"signature": b64(sig), "verifier": b64(pem)}],
                },
            }
        )  # fmt: skip
        root = hashlib.sha256(b"\0" + body).digest()
        note = f"{ORIGIN}\n1\n{b64(root)}\n"
        signature = b64(key_id(self.log)[:4] + signed(self.log, note.encode()))
        when = int(NOW.timestamp())
        promise = rfc8785.dumps(
            {"body": b64(body), "integratedTime": when, "logID": key_id(self.log).hex(), "logIndex": 0}
        )
        return {
            "logIndex": "0", "logId": {"keyId": b64(key_id(self.log))}, "integratedTime": str(when),
            "kindVersion": {"kind": "dsse", "version": "0.0.1"}, "canonicalizedBody": b64(body),
            "inclusionPromise": {"signedEntryTimestamp": b64(signed(self.log, promise))},
            "inclusionProof": {
                "logIndex": "0", "rootHash": b64(root), "treeSize": "1", "hashes": [],
                "checkpoint": {"envelope": f"{note}\n— {ORIGIN} {signature}\n"},
            },
        }  # fmt: skip


def _log(key: ec.EllipticCurvePrivateKey, start: str) -> dict[str, Any]:
    return {
        "baseUrl": "https://log.invalid", "hashAlgorithm": "SHA2_256", "logId": {"keyId": b64(key_id(key))},
        "publicKey": {
            "rawBytes": b64(spki(key)), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": {"start": start},
        },
    }  # fmt: skip


def _usage(*, sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=sign, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=not sign, crl_sign=not sign, encipher_only=False, decipher_only=False,
    )  # fmt: skip
