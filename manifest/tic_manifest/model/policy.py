"""The policy of whoever takes a delivery: a closed vocabulary, everything required that is not named."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from tic_manifest.model.base import Digest, PersonValue

SCHEMA = "tic/policy/v1"

CheckName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*(\.[a-z0-9_.-]+)?$", max_length=128)]
SignerName = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f]{1,200}$")]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]


class Signer(PersonValue):
    """An accepted signer: a public key (SPKI PEM) with the name that reports give it, or an identity.

    An identity is the mail address or URI in a certificate, with the issuer that vouched for it.
    """

    name: SignerName | None = None
    pem: Annotated[str, StringConstraints(max_length=4096)] | None = None
    identity: SignerName | None = None
    issuer: SignerName | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Signer:
        key = (self.name is not None, self.pem is not None, self.identity is None, self.issuer is None)
        identity = (self.pem is None, self.identity is not None, self.issuer is not None)
        if not all(key) and not all(identity):
            raise ValueError("a signer is name and pem, or identity and issuer")
        return self

    @property
    def label(self) -> str:
        """The name in reports."""
        return str(self.name) if self.pem is not None else f"{self.identity} (issuer {self.issuer})"


class Policy(PersonValue):
    """`verify --policy`.

    Every check is required unless `out_of_scope` names it, by its whole id or by what follows the last dot;
    `required` wins over a recipe that puts a check out of scope, and a required check that nothing measures
    is not run. With `signers` only delivery manifests that one of them signed count; identities need
    `trusted_root`, a sigstore trusted_root.json, by its path from the policy's folder. `base_images` lists
    the base platform digests that are accepted; empty accepts any. `env` lists variables that change which
    code is loaded and that are accepted with just this value.
    """

    schema_: Literal["tic/policy/v1"] = Field(alias="schema")
    depth: Literal["identity", "content", "files"] = "content"
    all_platforms: bool = False
    required: tuple[CheckName, ...] = ()
    out_of_scope: tuple[CheckName, ...] = ()
    signers: tuple[Signer, ...] = ()
    trusted_root: Annotated[str, StringConstraints(min_length=1, max_length=4096)] | None = None
    base_images: tuple[Digest, ...] = ()
    env: dict[VariableName, str] = {}

    @model_validator(mode="after")
    def _rooted(self) -> Policy:
        if any(one.identity is not None for one in self.signers) and self.trusted_root is None:
            raise ValueError("identities need trusted_root: the file of certificate authority and logs")
        return self


BUILT_IN = """\
# The built-in policy of tic-manifest verify. Every check is required unless it is named here.
schema: tic/policy/v1
depth: content
all_platforms: false
required: [approval]        # the six rows follow from their own checks, which are required by default
out_of_scope: [authenticity]
signers: []                 # none: signatures are not checked, and the report says so
base_images: []             # any base image, by digest
env: {}                     # beside the lock's own env, no variable that changes which code is loaded
"""
