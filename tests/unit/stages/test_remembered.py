"""What is small is asked for once; nothing that is not its digest's is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from tic_manifest.stages.remembered import MAX_BYTES, SMALL, Remembered


class Source:
    """An `ImageSource` of blobs that counts what it is asked."""

    def __init__(self, *blobs: bytes) -> None:
        self.blobs = {"sha256:" + hashlib.sha256(one).hexdigest(): one for one in blobs}
        self.asked: list[str] = []

    def blob(self, digest: str, size: int) -> Iterator[bytes] | None:
        self.asked.append(f"GET {digest}")
        return iter([self.blobs[digest][: size + 1]]) if digest in self.blobs else None

    def length(self, digest: str) -> int | None:
        self.asked.append(f"HEAD {digest}")
        return len(self.blobs[digest]) if digest in self.blobs else None


def remembered(*blobs: bytes) -> tuple[Remembered, Source, list[str]]:
    source: Any = Source(*blobs)
    return Remembered(source), source, list(source.blobs)


def read(kept: Remembered, digest: str, size: int) -> bytes:
    return b"".join(kept.blob(digest, size) or ())


def test_a_small_blob_is_asked_for_once_and_its_length_is_known_then() -> None:
    kept, source, [one] = remembered(b"data")
    kept.fetch([(one, 4), (one, 4)])
    assert read(kept, one, 4) == read(kept, one, 10) == b"data" and kept.length(one) == 4
    assert source.asked == [f"GET {one}"]


def test_no_more_comes_than_was_asked_for() -> None:
    kept, _, [one] = remembered(b"data")
    assert read(kept, one, 4) == b"data" and read(kept, one, 2) == b"dat"


def test_what_is_not_the_digests_is_not_kept() -> None:
    kept, source, [one] = remembered(b"data")
    source.blobs[one] = b"else"
    assert read(kept, one, 4) == b"else"
    source.blobs[one] = b"data"
    assert read(kept, one, 4) == b"data"


def test_large_and_absent_blobs_pass_through() -> None:
    kept, source, [one] = remembered(bytes(SMALL + 1))
    assert len(read(kept, one, SMALL + 1)) == kept.length(one) == SMALL + 1
    assert kept.blob("sha256:" + "0" * 64, 5) is None
    assert [line.split()[0] for line in source.asked] == ["GET", "HEAD", "GET"]


def test_all_that_is_kept_is_bounded() -> None:
    blobs = [number.to_bytes(2) + bytes(SMALL - 2) for number in range(20)]
    kept, source, digests = remembered(*blobs)
    kept.fetch((one, SMALL) for one in digests)
    source.asked.clear()
    assert all(kept.length(one) == SMALL for one in digests)
    assert len(source.asked) == len(blobs) - MAX_BYTES // SMALL
