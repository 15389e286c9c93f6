"""Sign and check Statements with a key of one's own: ECDSA P-256 or Ed25519, PEM (contract, section 6).

`cryptography` is loaded when a key is: nobody pays for it who checks no signature.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tic_manifest.errors import PersonError
from tic_manifest.formats.statement import Envelope, Signature, Signed, bundle_bytes, envelope_bytes
from tic_manifest.model.delivery import STATEMENT_TYPE

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KINDS = "a PEM key: ECDSA P-256 or Ed25519"


@dataclass(frozen=True)
class PublicKey:
    """An accepted signer: its name in reports, and the key. `fingerprint` is over the SPKI bytes."""

    name: str
    fingerprint: str
    key: EllipticCurvePublicKey | Ed25519PublicKey

    def signed(self, envelope: Envelope) -> bool:
        """Whether one of the signatures is by this key."""
        return any(_valid(self.key, one.raw, envelope.signed_bytes()) for one in envelope.signatures)


def read_public_key(pem: bytes, where: str, name: str | None = None) -> PublicKey:
    """An SPKI PEM as `--key` takes it. Raises PersonError USAGE."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _bad_key(where, "not a public key", KINDS) from error
    digest = hashlib.sha256(_spki(_public_of_kind(key, where))).hexdigest()
    return PublicKey(name or f"key sha256:{digest}", f"sha256:{digest}", _public_of_kind(key, where))


def public_of(pem: bytes, passphrase: bytes | None, where: str) -> PublicKey:
    """The public half of a private key. Raises PersonError USAGE."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = _private(pem, passphrase, where).public_key()
    return read_public_key(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), where)


def signers_of(keys: Iterable[PublicKey], envelope: Envelope) -> set[str]:
    """Names of the keys that signed an envelope."""
    return {key.name for key in keys if key.signed(envelope)}


def sign_statement(statement: bytes, pem: bytes, passphrase: bytes | None, where: str) -> Signed:
    """Sign the bytes of a Statement with a PKCS#8 or SEC1 PEM key. Raises PersonError USAGE."""
    key = _private(pem, passphrase, where)
    unsigned = Envelope(payload_type=STATEMENT_TYPE, payload=statement, signatures=())
    one = Signature(key_id="", raw=_sign(key, unsigned.signed_bytes()))
    envelope = Envelope(payload_type=STATEMENT_TYPE, payload=statement, signatures=(one,))
    # sigstore clients write base64 of SHA-256 of the SPKI as the hint of a public key
    hint = base64.b64encode(hashlib.sha256(_spki(key.public_key())).digest()).decode()
    return Signed(bundle=bundle_bytes(envelope, hint), envelope=envelope_bytes(envelope))


def _private(pem: bytes, passphrase: bytes | None, where: str) -> EllipticCurvePrivateKey | Ed25519PrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem, passphrase or None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        wrong = "the passphrase is missing or wrong, or this is no private key"
        raise _bad_key(where, wrong, f"{KINDS}, PKCS#8, its passphrase in TIC_SIGN_PASSPHRASE") from error
    if isinstance(key, Ed25519PrivateKey) or (
        isinstance(key, EllipticCurvePrivateKey) and isinstance(key.curve, SECP256R1)
    ):
        return key
    raise _bad_key(where, "a private key of another kind", KINDS)


def _public_of_kind(key: object, where: str) -> EllipticCurvePublicKey | Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if isinstance(key, Ed25519PublicKey) or (
        isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)
    ):
        return key
    raise _bad_key(where, "a public key of another kind", KINDS)


def _spki(key: EllipticCurvePublicKey | Ed25519PublicKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _sign(key: EllipticCurvePrivateKey | Ed25519PrivateKey, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.hashes import SHA256

    return key.sign(data) if isinstance(key, Ed25519PrivateKey) else key.sign(data, ECDSA(SHA256()))


def _valid(key: EllipticCurvePublicKey | Ed25519PublicKey, signature: bytes, data: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        if isinstance(key, Ed25519PublicKey):
            key.verify(signature, data)
        else:
            key.verify(signature, data, ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def _bad_key(where: str, what: str, expected: str) -> PersonError:
    return PersonError("USAGE", what, where=where, expected=expected)
