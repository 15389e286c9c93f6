"""Reading blobs: every encoding as Go unpacks it, bounded memory, both digests."""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tic_manifest.adapters.blobs import LARGE_WINDOW, read_blobs
from tic_manifest.adapters.zstd_frames import Frames
from tic_manifest.model.oci import Blob, BlobFact, Descriptor, Encoding

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from layouts import digest_of
from quiet import Quiet

DATA = hashlib.sha256(b"seed").digest() * 9000 + b"\0" * 300_000
SKIP = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
CHECKED = zstandard.ZstdCompressor(write_checksum=True)
half = len(DATA) // 2


class Memory:
    """An `ImageSource` over one blob, in pieces of one size."""

    def __init__(self, raw: bytes, piece: int) -> None:
        self.raw, self.piece = raw, piece

    def blob(self, digest: str, size: int) -> Iterator[bytes]:
        return (self.raw[at : at + self.piece] for at in range(0, min(len(self.raw), size + 1), self.piece))


def read(raw: bytes, piece: int = 1 << 16, encoding: Encoding | None = Encoding.TAR) -> BlobFact:
    descriptor = Descriptor(media_type="x/y", digest=digest_of(raw), size=len(raw))
    source: Any = Memory(raw, piece)
    return read_blobs(source, [Blob(descriptor=descriptor, encoding=encoding)], Quiet())[0]


WHOLE = {
    "tar": DATA,
    "gzip": gzip.compress(DATA),
    "gzip of two members": gzip.compress(DATA[:half]) + gzip.compress(DATA[half:]),
    "zstd": zstandard.compress(DATA),
    "zstd with checksum": CHECKED.compress(DATA),
    "zstd of unknown size": zstandard.ZstdCompressor(write_content_size=False).compress(DATA),
    "zstd frames with a skippable one": zstandard.compress(DATA[:half])
    + SKIP
    + zstandard.compress(DATA[half:]),
    "zstd that begins with a skippable one": SKIP + zstandard.compress(DATA),
}
SPOILED = {
    "gzip cut": gzip.compress(DATA)[:-1],
    "gzip with zeros after it": gzip.compress(DATA) + b"\0" * 8,
    "gzip with another checksum": gzip.compress(DATA)[:-8] + b"\0" * 8,
    "zstd cut": zstandard.compress(DATA)[:-1],
    "zstd cut in its checksum": CHECKED.compress(DATA)[:-2],
    "zstd with another checksum": CHECKED.compress(DATA)[:-4] + b"\0" * 4,
    "zstd with junk after it": zstandard.compress(DATA) + b"junk",
    "zstd cut in a skippable frame": zstandard.compress(DATA) + SKIP[:-2],
}


@pytest.mark.parametrize("piece", [7, 4096, 1 << 20])
@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_layer_has_both_digests(name: str, piece: int) -> None:
    fact = read(WHOLE[name], piece)
    assert (fact.digest, fact.diff_id, fact.error) == (digest_of(WHOLE[name]), digest_of(DATA), "")
    assert (fact.length, fact.unpacked) == (len(WHOLE[name]), len(DATA))


@pytest.mark.parametrize("piece", [4096, 1 << 20])
@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_layer_is_read_to_its_end_and_says_why(name: str, piece: int) -> None:
    fact = read(SPOILED[name], piece)
    assert fact.error and fact.diff_id is None
    assert (fact.digest, fact.length) == (digest_of(SPOILED[name]), len(SPOILED[name]))


def test_a_blob_that_is_no_layer_is_hashed_alone() -> None:
    fact = read(WHOLE["gzip"], encoding=None)
    assert (fact.digest, fact.diff_id, fact.unpacked) == (digest_of(WHOLE["gzip"]), None, None)


@pytest.mark.parametrize("pack", [zstandard.compress, gzip.compress], ids=["zstd", "gzip"])
def test_a_layer_that_unpacks_to_much_more_needs_little_memory(pack: Any) -> None:
    raw = pack(b"\0" * (300 << 20))
    tracemalloc.start()
    fact = read(raw)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert fact.unpacked == 300 << 20 and not fact.error
    assert peak < 32 << 20


def framed(window_log: int, data: bytes) -> bytes:
    """A frame that says a window of 2^`window_log` bytes and no size of its content."""
    asked = zstandard.ZstdCompressionParameters(window_log=window_log, write_content_size=False)
    packer = zstandard.ZstdCompressor(compression_params=asked).compressobj()
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(("log", "large"), [(23, False), (24, True), (27, True)])
@pytest.mark.parametrize("piece", [1, 1 << 16])
def test_a_large_window_is_seen_before_its_frame_is_passed_on(log: int, large: bool, piece: int) -> None:
    raw = zstandard.compress(b"first") + framed(log, b"data" * 100)
    stream, seen, passed = io.BytesIO(raw), [], 0
    frames = Frames(stream, LARGE_WINDOW, lambda: seen.append(passed))
    while data := frames.read(piece):
        passed += len(data)
    assert frames.complete and frames.large is large and len(seen) == large
    assert all(before < len(raw) for before in seen)


def test_layers_with_large_windows_wait_for_each_other_and_are_read() -> None:
    raws = [framed(27, bytes([number]) * 1000) for number in range(6)]
    raws[3] = raws[3][:-1]  # one that breaks off gives its place free as well
    blobs = [
        Blob(
            descriptor=Descriptor(media_type="x/y", digest=digest_of(raw), size=len(raw)),
            encoding=Encoding.ZSTD,
        )
        for raw in raws
    ]

    class Several:
        def blob(self, digest: str, size: int) -> Iterator[bytes]:
            return iter([raw for raw in raws if digest_of(raw) == digest])

    source: Any = Several()
    facts = read_blobs(source, blobs, Quiet())
    assert [bool(fact.error) for fact in facts] == [False, False, False, True, False, False]
    assert [fact.unpacked for fact in facts if not fact.error] == [1000] * 5


def test_facts_come_in_the_order_of_the_blobs() -> None:
    raws = [b"a" * 10, b"b" * 100_000, b"", b"c"]
    blobs = [
        Blob(descriptor=Descriptor(media_type="x/y", digest=digest_of(raw), size=len(raw))) for raw in raws
    ]

    class Several:
        def blob(self, digest: str, size: int) -> Iterator[bytes] | None:
            found = [raw for raw in raws if digest_of(raw) == digest]
            return iter(found) if found[0] else None

    source: Any = Several()
    facts = read_blobs(source, blobs, Quiet())
    assert [fact.length for fact in facts] == [10, 100_000, None, 1]


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=600),
    st.sampled_from([b"", b"\x28\xb5\x2f\xfd", b"\x1f\x8b\x08", SKIP]),
    st.integers(1, 64),
)
def test_any_bytes_are_read_to_their_end(raw: bytes, head: bytes, piece: int) -> None:
    fact = read(head + raw, piece)
    assert (fact.digest, fact.length) == (digest_of(head + raw), len(head + raw))
