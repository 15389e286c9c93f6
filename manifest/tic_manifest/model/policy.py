"""The policy of whoever takes a delivery: a closed vocabulary, everything required that is not named."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tic_manifest.model.base import Digest, PersonValue

SCHEMA = "tic/policy/v1"

CheckName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*(\.[a-z0-9_.-]+)?$", max_length=128)]
SignerName = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f]{1,200}$")]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]


class Signer(PersonValue):
    """An accepted signer: the name that reports give it and its public key, SPKI PEM."""

    name: SignerName
    pem: Annotated[str, StringConstraints(max_length=4096)]


class Policy(PersonValue):
    """`verify --policy`.

    Every check is required unless `out_of_scope` names it, by its whole id or by what follows the last dot;
    `required` wins over a recipe that puts a check out of scope, and a required check that nothing measures
    is not run. With `signers` only delivery manifests that one of them signed count. `base_images` lists the
    base platform digests that are accepted; empty accepts any. `env` lists variables that change which code
    is loaded and that are accepted with just this value.
    """

    schema_: Literal["tic/policy/v1"] = Field(alias="schema")
    depth: Literal["identity", "content", "files"] = "content"
    all_platforms: bool = False
    required: tuple[CheckName, ...] = ()
    out_of_scope: tuple[CheckName, ...] = ()
    signers: tuple[Signer, ...] = ()
    base_images: tuple[Digest, ...] = ()
    env: dict[VariableName, str] = {}


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
