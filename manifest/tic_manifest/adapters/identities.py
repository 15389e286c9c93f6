"""Who signed a sigstore bundle with a certificate: the `sigstore` library, offline, on a root from a file.

The library checks certificate chain, certificate log, transparency log, time and signature (sigstore's
client specification). It is the extra `tic-manifest[sigstore]`; signatures by key need none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tic_manifest.errors import PersonError, UnavailableError
from tic_manifest.formats.statement import Envelope
from tic_manifest.model.policy import Signer

if TYPE_CHECKING:
    from cryptography.x509 import Certificate
    from sigstore.verify import Verifier

UNLISTED = "unlisted identity "


class _Seen:
    """A policy of the library that keeps the certificate; who is accepted is asked after all is proved."""

    def __init__(self) -> None:
        self.certificates: list[Certificate] = []

    def verify(self, cert: Certificate) -> None:
        """Keep it."""
        self.certificates.append(cert)


class Identities:
    """`stages.attached.Signers` for the identities of a policy.

    Raises UnavailableError TOOL_MISSING without the extra, PersonError RECIPE for a trusted root that cannot
    be read.
    """

    def __init__(self, signers: Sequence[Signer], trusted_root: Path) -> None:
        self._signers = signers
        self._verifier = _verifier(trusted_root)

    def __call__(self, envelope: Envelope) -> set[str]:
        """The accepted identities that signed; for a good signature by nobody listed, who it was."""
        certificate = self._proved(envelope) if envelope.bundle else None
        if certificate is None:
            return set()
        return {one.label for one in self._signers if _is(one, certificate)} or {_unlisted(certificate)}

    def _proved(self, envelope: Envelope) -> Certificate | None:
        from sigstore.models import Bundle

        seen = _Seen()
        try:
            kind, payload = self._verifier.verify_dsse(Bundle.from_json(envelope.bundle), seen)
        except Exception:  # whatever the library says of hostile bytes: they prove nothing
            return None
        same = (kind, payload) == (envelope.payload_type, envelope.payload)
        return seen.certificates[-1] if same and seen.certificates else None


def _verifier(trusted_root: Path) -> Verifier:
    try:
        from sigstore.models import TrustedRoot
        from sigstore.verify import Verifier
    except ImportError as error:
        raise UnavailableError(
            "TOOL_MISSING", "the policy names identities, and this installation cannot check them",
            expected="the sigstore library", actual=str(error),
            remedy="python3 -m pip install 'tic-manifest[sigstore]'",
        ) from error  # fmt: skip
    try:
        return Verifier(trusted_root=TrustedRoot.from_file(str(trusted_root)))
    except Exception as error:
        raise PersonError(
            "RECIPE", "the trusted root cannot be read", where=str(trusted_root), actual=type(error).__name__,
            expected="a sigstore trusted_root.json with a certificate authority and a transparency log",
        ) from error  # fmt: skip


def _is(signer: Signer, certificate: Certificate) -> bool:
    from sigstore.errors import VerificationError
    from sigstore.verify.policy import AllOf, AnyOf, Identity, OIDCIssuer, OIDCIssuerV2

    issuer = AnyOf([OIDCIssuer(str(signer.issuer)), OIDCIssuerV2(str(signer.issuer))])
    try:
        AllOf([Identity(identity=str(signer.identity)), issuer]).verify(certificate)
    except (VerificationError, ValueError):
        return False
    return True


def _unlisted(certificate: Certificate) -> str:
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        said = [
            str(one.value)
            for one in names
            if isinstance(one, x509.RFC822Name | x509.UniformResourceIdentifier)
        ]
    except (x509.ExtensionNotFound, ValueError):
        said = []
    return UNLISTED + (", ".join(said)[:200] or "without a name")
