"""Policy bytes to a Policy; every mistake with file, line and key."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from tic_manifest.errors import PersonError
from tic_manifest.formats.strict_yaml import Located, load_yaml
from tic_manifest.model.policy import Policy


def read_policy(raw: bytes, where: str) -> Policy:
    """The policy of a file. Raises PersonError POLICY with the line of the first mistake."""
    located = _located(raw, where)
    try:
        policy = Policy.model_validate(_tuples(located.data))
    except ValidationError as error:
        one = error.errors(include_url=False)[0]
        words = {"extra_forbidden": "unknown key", "missing": "key is missing"}.get(one["type"], one["msg"])
        path = tuple(one["loc"])
        key = ".".join(map(str, path)) or "policy"
        raise PersonError(
            "POLICY", f"{key}: {words}", where=f"{where}:{located.line(path)}",
            expected="a key of the schema tic/policy/v1", remedy="see tic-manifest verify --show-policy",
        ) from error  # fmt: skip
    both = sorted(set(policy.required) & set(policy.out_of_scope))
    if both:
        raise PersonError(
            "POLICY", "a check is both required and out of scope", where=where, actual=", ".join(both)
        )
    return policy


def _located(raw: bytes, where: str) -> Located:
    try:
        return load_yaml(raw, where)
    except PersonError as error:
        raise PersonError(
            "POLICY", error.what, where=error.where, expected=error.expected, actual=error.actual,
            remedy="see tic-manifest verify --show-policy",
        ) from error  # fmt: skip


def _tuples(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _tuples(value) for key, value in data.items()}
    return tuple(_tuples(one) for one in data) if isinstance(data, list) else data
