"""Values of JIT objects as plain data: dictionaries are read, no attribute is looked up, nothing runs."""

from __future__ import annotations

import gc
import hashlib
import math
import os
import types
from typing import Any, Dict, List, Tuple

from .base import clean

MAX_OBJECTS = 20_000


def state_of(thing: Any) -> Dict[str, Any]:
    """The object's own dictionary, empty without one. A look-up on Triton's objects can start a device."""
    try:
        found = object.__getattribute__(thing, "__dict__")
    except Exception:
        return {}
    return found if isinstance(found, dict) else {}


def literal(value: Any, depth: int = 4) -> Any:
    """Numbers, text and containers of them, bounded; of anything else only its type and its own name."""
    kind = type(value)
    if value is None or kind in (bool, int):
        return value if kind is not int or abs(value) < 1 << 63 else clean(value, 100)
    if kind is float:
        return value if math.isfinite(value) else clean(value)
    if kind is str:
        return clean(value, 300)
    if depth and issubclass(kind, (tuple, list, set, frozenset)):
        return [literal(one, depth - 1) for one in list(value)[:64]]
    if depth and issubclass(kind, dict):
        return {key_of(k): literal(v, depth - 1) for k, v in list(value.items())[:64]}
    own = state_of(value)
    name = own.get("name") or own.get("__name__")
    return clean("%s %s" % (kind.__name__, name if isinstance(name, str) else ""), 200).strip()


def key_of(value: Any) -> str:
    """A key as text: Triton names an argument by its place, as `(2,)`."""
    if type(value) is tuple and len(value) == 1:
        value = value[0]
    return clean(value, 200) if type(value) in (str, int) else clean(literal(value), 200)


def fields_of(value: Any) -> Dict[str, Any]:
    """Fields of a named tuple or of a plain object, as they are stored."""
    kinds = type(value).__mro__
    names = next((kind.__dict__["_fields"] for kind in kinds if "_fields" in kind.__dict__), None)
    if isinstance(value, tuple) and isinstance(names, tuple):
        return dict(zip([str(n) for n in names], tuple.__iter__(value)))
    return state_of(value)


def function_place(function: Any) -> Tuple[str, int]:
    """(file, first line) of a Python function; ("", 0) of anything else."""
    if type(function) is not types.FunctionType:
        return "", 0
    return clean(function.__code__.co_filename), function.__code__.co_firstlineno


def path_text(value: Any) -> str:
    """A path object or string as text; empty for anything else."""
    try:
        return clean(os.fspath(value))
    except TypeError:
        return ""


def digest_of(value: Any) -> Any:
    """sha256 of bytes; None of anything else."""
    return hashlib.sha256(value).hexdigest() if type(value) is bytes else None


def instances(kind: Any) -> List[Any]:
    """Live objects of exactly this type, bounded."""
    if not isinstance(kind, type):
        return []
    found = []
    for thing in gc.get_objects():
        if type(thing) is kind:
            found.append(thing)
            if len(found) >= MAX_OBJECTS:
                break
    return found
