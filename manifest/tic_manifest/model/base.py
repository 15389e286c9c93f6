"""The base of every value, and the identifiers that values are made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
"""`sha256:` and 64 hex digits (OCI image-spec, descriptor.md). Always say of which kind of document."""

Sha256Hex = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""A bare SHA-256, as recipes, RECORD conversions and package indexes write it."""

GitCommit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
"""A full commit id. SHA-256 repositories are refused until supported (contract, section 5)."""

GitTree = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
"""A full tree id."""

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
"""A free name of a recipe: a pull request, a worker, a check."""


class Value(BaseModel):
    """A frozen value with closed fields; JSON keys are lowerCamelCase, as in OCI and in-toto."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        populate_by_name=True,
        ser_json_inf_nan="null",
        defer_build=True,
    )


class PersonValue(BaseModel):
    """As `Value`, for files that a person writes: keys are snake_case, as in the recipe."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)
