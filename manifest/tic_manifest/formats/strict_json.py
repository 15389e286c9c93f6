"""Strict JSON: bytes to data, refusing whatever two readers could read differently (contract, section 6).

Go's decoder, which runs most images, matches keys by case folding, takes the last of two equal keys and
replaces lone surrogates; Python's does none of that. A document in which this makes a difference is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from tic_manifest.errors import RefusedError

MAX_BYTES = 64 << 20
MAX_DEPTH = 64
MAX_SAFE_INTEGER = 1 << 63

Model = TypeVar("Model", bound=BaseModel)

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_FOLD = str.maketrans(
    {**{chr(upper): chr(upper + 32) for upper in range(ord("A"), ord("Z") + 1)}, "\u017f": "s", "\u212a": "k"}
)


def load_json(raw: bytes, where: str, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """Data of one JSON document; `where` names it in messages.

    Raises RefusedError: JSON_MALFORMED (also NaN, Infinity, a number that overflows, a lone surrogate, a byte
    order mark), JSON_DUPLICATE_KEY, JSON_DEPTH.
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
        data = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_pairs(where),
            parse_constant=_constant(where),
            parse_float=_finite,
            parse_int=_whole,
        )
        if _SURROGATE.search(raw):
            json.dumps(data, ensure_ascii=False).encode("utf-8")
    except (UnicodeError, ValueError, RecursionError) as error:
        raise RefusedError("JSON_MALFORMED", "not a JSON document", where=where, actual=str(error)) from error
    return data


def fold(key: str) -> str:
    """A key as Go's encoding/json compares it: ASCII case, `ſ` (U+017F) as s, `K` (U+212A) as k."""
    return key.translate(_FOLD)


def case_variants(keys: Iterable[str], known: Iterable[str]) -> list[str]:
    """Keys that are no known key but that a reader written in Go takes for one."""
    exact = set(known)
    folded = {fold(key) for key in exact}
    return sorted(key for key in keys if key not in exact and fold(key) in folded)


def read_model(raw: bytes, model: type[Model], where: str) -> Model:
    """One of our own machine-written documents as a value.

    Raises RefusedError: what `load_json` raises, JSON_CASE_VARIANT, SCHEMA_VERSION for another version of the
    same schema, SCHEMA for anything else that does not fit, unknown keys included.
    """
    data = load_json(raw, where)
    _check_version(data, model, where)
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise RefusedError(
            _code_of(error, model), "document does not fit its schema", where=where, actual=first_error(error)
        ) from error


def first_error(error: ValidationError) -> str:
    """The first mistake of a validation, as `$.path: words`."""
    one = error.errors(include_url=False, include_input=False)[0]
    return (
        "$"
        + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in one["loc"])
        + f": {one['msg']}"
    )


def _check_version(data: Any, model: type[BaseModel], where: str) -> None:
    field = model.model_fields.get("schema_")
    said = data.get("schema") if isinstance(data, dict) else None
    if field is None or not isinstance(said, str):
        return
    known = [str(one) for one in get_args(field.annotation)]
    families = {one.rpartition("/")[0] for one in known}
    if said not in known and said.rpartition("/")[0] in families:
        raise RefusedError(
            "SCHEMA_VERSION",
            "the schema version is not known",
            where=where,
            expected=" or ".join(known),
            actual=said,
            remedy="use a release of tic-manifest that knows the version",
        )


def _code_of(error: ValidationError, model: type[BaseModel]) -> str:
    one = error.errors(include_url=False, include_input=False)[0]
    key = str(one["loc"][-1]) if one["loc"] else ""
    known = set(_properties(model.model_json_schema(by_alias=True)))
    variant = one["type"] == "extra_forbidden" and bool(case_variants([key], known))
    return "JSON_CASE_VARIANT" if variant else "SCHEMA"


def _properties(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        found = schema.get("properties")
        yield from found if isinstance(found, dict) else ()
        for value in schema.values():
            yield from _properties(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _properties(value)


def _pairs(where: str) -> Any:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(pairs)
        if len(data) != len(pairs):
            raise RefusedError(
                "JSON_DUPLICATE_KEY",
                "a key stands twice in one object",
                where=where,
                actual=", ".join(_twice(name for name, _ in pairs)),
            )
        return data

    return build


def _twice(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    twice: set[str] = set()
    for name in names:
        (twice if name in seen else seen).add(name)
    return sorted(name.encode("ascii", "backslashreplace").decode("ascii") for name in twice)[:5]


def _constant(where: str) -> Any:
    def refuse(name: str) -> NoReturn:
        raise RefusedError("JSON_MALFORMED", "not a JSON number", where=where, actual=name)

    return refuse


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"a number overflows: {text[:40]}")
    return value


def _whole(text: str) -> int:
    value = int(text)
    if not -MAX_SAFE_INTEGER <= value < MAX_SAFE_INTEGER:
        raise ValueError(f"a whole number needs more than 64 bits: {text[:40]}")
    return value


def _check_depth(raw: bytes, where: str, limit: int) -> None:
    depth = 0
    for byte in _STRING.sub(b"", raw).translate(None, _NOT_BRACKETS):
        depth += 1 if byte in b"[{" else -1
        if depth > limit:
            raise RefusedError(
                "JSON_DEPTH", "nested too deeply", where=where, expected=f"at most {limit} levels"
            )
