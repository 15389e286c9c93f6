"""Byte parity, recomputed from raw bytes; figures worked out by hand."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tic_manifest.rules.parity import Scores, compare, fault


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def scores(payload: bytes, mask: bytes | None = None, lengths: tuple[int, ...] | None = None) -> Scores:
    count = len(payload) // 4
    return Scores(
        payload=payload,
        dtype="float32",
        lengths=lengths or (count,),
        mask=bytes([1] * count) if mask is None else mask,
    )


def one_ulp_up(value: float) -> float:
    return struct.unpack("<f", struct.pack("<I", struct.unpack("<I", struct.pack("<f", value))[0] + 1))[0]


NAN = float("nan")


@pytest.mark.parametrize(
    ("left", "right", "mismatches", "first", "ulp", "nonfinite"),
    [
        pytest.param(floats(-1, -2, -3), floats(-1, -2, -3), 0, None, 0, 0, id="equal"),
        pytest.param(floats(-1, -2, -3), floats(-1, -2, one_ulp_up(-3)), 1, (0, 2), 1, 0, id="one-ulp"),
        pytest.param(
            floats(0.0, -2), floats(-0.0, -2), 1, (0, 0), None, 0, id="signed-zero-differs-in-bytes"
        ),
        pytest.param(floats(NAN, -2), floats(NAN, -2), 0, None, 0, 1, id="equal-nan-is-not-finite"),
        pytest.param(floats(NAN, -2), floats(-1, -2), 1, (0, 0), None, 1, id="nan-against-number"),
    ],
)
def test_compare(
    left: bytes, right: bytes, mismatches: int, first: tuple[int, int] | None, ulp: int | None, nonfinite: int
) -> None:
    found = compare(scores(left), scores(right))
    assert (found.mismatches, found.first_mismatch, found.max_ulp, found.nonfinite) == (
        mismatches, first, ulp, nonfinite,
    )  # fmt: skip


def test_masked_positions_are_selected_out_not_multiplied() -> None:
    left, right = floats(-1, NAN, -3, -4), floats(-1, 7, -3, -5)
    mask = bytes([1, 0, 1, 1])
    found = compare(scores(left, mask, (2, 2)), scores(right, mask, (2, 2)))
    assert (found.valid_tokens, found.mismatches, found.first_mismatch, found.nonfinite) == (3, 1, (1, 1), 0)


def test_sides_of_other_shape_are_not_compared() -> None:
    with pytest.raises(ValueError, match="differ in dtype, lengths or mask"):
        compare(scores(floats(-1, -2), lengths=(1, 1)), scores(floats(-1, -2), lengths=(2,)))


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            Scores(payload=b"\0" * 7, dtype="float32", lengths=(2,), mask=b"\1\1"),
            "7 bytes of scores, 8 expected",
        ),
        (
            Scores(payload=b"\0" * 8, dtype="float32", lengths=(2,), mask=b"\1"),
            "1 mask bytes of 0 or 1, 2 expected",
        ),
        (Scores(payload=b"\0" * 8, dtype="float32", lengths=(2,), mask=b"\1\2"), "mask bytes of 0 or 1"),
        (Scores(payload=b"", dtype="int7", lengths=(), mask=b""), "unknown dtype int7"),
    ],
)
def test_fault(case: Scores, words: str) -> None:
    assert words in fault(case)


@given(st.lists(st.binary(min_size=4, max_size=4), max_size=40), st.data())
def test_count_is_the_number_of_valid_positions_whose_bytes_differ(
    values: list[bytes], data: st.DataObject
) -> None:
    other = [data.draw(st.sampled_from([one, b"\0\0\0\0"])) for one in values]
    mask = bytes(data.draw(st.lists(st.integers(0, 1), min_size=len(values), max_size=len(values))))
    found = compare(scores(b"".join(values), mask), scores(b"".join(other), mask))
    want = [i for i, (a, b) in enumerate(zip(values, other, strict=True)) if mask[i] and a != b]
    assert found.mismatches == len(want)
    assert found.first_mismatch == ((0, want[0]) if want else None)
