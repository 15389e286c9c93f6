"""Byte parity of selected-token log-probabilities, recomputed from the raw bytes of both sides.

Definitions (rules/parity.md, 1.4): valid tokens N = sum of the mask; mismatches M = valid positions whose
stored bytes differ; the first mismatch is the smallest (request, position) in framework order. No torch:
`verify` recomputes these figures on any machine.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = {"float32": 4, "float64": 8, "bfloat16": 2, "float16": 2}
"""Bytes of one score, little-endian as stored."""


MAX_SCORES = 1 << 22
"""Most scores of one side; more would cost memory without end."""


@dataclass(frozen=True, kw_only=True)
class Scores:
    """One side: `payload` holds `count` values of `dtype`, requests one after the other.

    `lengths` gives the values per request in framework order; `mask` one byte per value, 0 or 1.
    """

    payload: bytes
    dtype: str
    lengths: Sequence[int]
    mask: bytes


@dataclass(frozen=True, kw_only=True)
class Parity:
    """What a comparison found. `max_ulp` is null for widths without one, or where signs or NaN forbid it."""

    valid_tokens: int
    mismatches: int
    first_mismatch: tuple[int, int] | None
    max_ulp: int | None
    nonfinite: int


def fault(scores: Scores) -> str:
    """Why these scores cannot be compared at all, or an empty string."""
    width = WIDTH.get(scores.dtype)
    if width is None:
        return f"unknown dtype {scores.dtype}"
    total = sum(scores.lengths)
    if total > MAX_SCORES:
        return f"{total} scores, at most {MAX_SCORES} are compared"
    if len(scores.payload) != total * width:
        return f"{len(scores.payload)} bytes of scores, {total * width} expected"
    if len(scores.mask) != total or any(one > 1 for one in scores.mask):
        return f"{len(scores.mask)} mask bytes of 0 or 1, {total} expected"
    return ""


def compare(left: Scores, right: Scores) -> Parity:
    """Compare two sides of one shape, dtype and mask. Raises ValueError where they differ in those."""
    if (left.dtype, tuple(left.lengths), left.mask) != (right.dtype, tuple(right.lengths), right.mask):
        raise ValueError("the two sides differ in dtype, lengths or mask")
    width = WIDTH[left.dtype]
    valid = [i for i, one in enumerate(left.mask) if one]
    pairs = [(i, _cut(left.payload, i, width), _cut(right.payload, i, width)) for i in valid]
    differ = [(i, a, b) for i, a, b in pairs if a != b]
    return Parity(
        valid_tokens=len(valid),
        mismatches=len(differ),
        first_mismatch=_place(differ[0][0], left.lengths) if differ else None,
        max_ulp=_largest([(a, b) for _, a, b in differ], left.dtype) if differ else 0,
        nonfinite=sum(not (_finite(a, left.dtype) and _finite(b, left.dtype)) for _, a, b in pairs),
    )


def _cut(payload: bytes, index: int, width: int) -> bytes:
    return payload[index * width : (index + 1) * width]


def _place(index: int, lengths: Sequence[int]) -> tuple[int, int]:
    for request, length in enumerate(lengths):
        if index < length:
            return request, index
        index -= length
    raise ValueError("index beyond the last request")


def _value(raw: bytes, dtype: str) -> float:
    if dtype == "bfloat16":
        return float(struct.unpack("<f", b"\0\0" + raw)[0])
    return float(struct.unpack({"float32": "<f", "float64": "<d", "float16": "<e"}[dtype], raw)[0])


def _finite(raw: bytes, dtype: str) -> bool:
    return math.isfinite(_value(raw, dtype))


def _largest(pairs: Sequence[tuple[bytes, bytes]], dtype: str) -> int | None:
    distances = [_ulp(a, b, dtype) for a, b in pairs]
    known = [one for one in distances if one is not None]
    return max(known) if len(known) == len(distances) else None


def _ulp(left: bytes, right: bytes, dtype: str) -> int | None:
    """Distance in units of the last place; None across signs and for values that are not finite."""
    a, b = int.from_bytes(left, "little"), int.from_bytes(right, "little")
    top = 1 << (8 * len(left) - 1)
    if (a ^ b) & top or not (_finite(left, dtype) and _finite(right, dtype)):
        return None
    return abs(a - b)
