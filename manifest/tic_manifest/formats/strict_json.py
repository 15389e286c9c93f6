"""Strict JSON: bytes to data, refusing whatever two readers could read differently (contract, section 6)."""

from __future__ import annotations

import json
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from tic_manifest.errors import RefusedError

MAX_BYTES = 64 << 20
MAX_DEPTH = 64

Model = TypeVar("Model", bound=BaseModel)


def load_json(raw: bytes, where: str, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """Data of one JSON document.

    Raises RefusedError: JSON_MALFORMED, JSON_DUPLICATE_KEY, JSON_DEPTH; NaN and Infinity are malformed.
    """
    if len(raw) > max_bytes:
        raise RefusedError(
            "JSON_MALFORMED",
            "document too large",
            where=where,
            expected=f"at most {max_bytes} bytes",
            actual=f"{len(raw)} bytes",
        )
    _check_depth(raw, where, max_depth)
    try:
        return json.loads(
            raw.decode("utf-8"), object_pairs_hook=_pairs(where), parse_constant=_constant(where)
        )
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise RefusedError("JSON_MALFORMED", "not a JSON document", where=where, actual=str(error)) from error


def read_model(raw: bytes, model: type[Model], where: str) -> Model:
    """One of our own machine-written documents as a value; unknown keys are refused (SCHEMA)."""
    load_json(raw, where)
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise RefusedError(
            "SCHEMA", "document does not fit its schema", where=where, actual=first_error(error)
        ) from error


def first_error(error: ValidationError) -> str:
    """The first mistake of a validation, as `$.path: words`."""
    one = error.errors(include_url=False, include_input=False)[0]
    return (
        "$"
        + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in one["loc"])
        + f": {one['msg']}"
    )


def _pairs(where: str) -> Any:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(pairs)
        if len(data) != len(pairs):
            names = [name for name, _ in pairs]
            twice = sorted({name for name in names if names.count(name) > 1})
            raise RefusedError(
                "JSON_DUPLICATE_KEY",
                "a key stands twice in one object",
                where=where,
                actual=", ".join(twice[:5]),
            )
        return data

    return build


def _constant(where: str) -> Any:
    def refuse(name: str) -> NoReturn:
        raise RefusedError("JSON_MALFORMED", "not a JSON number", where=where, actual=name)

    return refuse


def _check_depth(raw: bytes, where: str, limit: int) -> None:
    depth, in_string, escaped = 0, False, False
    for byte in raw:
        if in_string:
            escaped, in_string = (byte == 0x5C and not escaped), not (byte == 0x22 and not escaped)
        elif byte == 0x22:
            in_string = True
        elif byte in b"[{":
            depth += 1
            if depth > limit:
                raise RefusedError(
                    "JSON_DEPTH", "nested too deeply", where=where, expected=f"at most {limit} levels"
                )
        elif byte in b"]}":
            depth -= 1
