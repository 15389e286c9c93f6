"""Read blobs to their end: length, digest, and for layers the digest of the unpacked bytes.

Each layer runs in two threads, one that reads, hashes and unpacks, one that hashes what came out; hashlib,
zlib and zstandard let go of the interpreter lock, so both cores work. Memory is bounded by the queue between
them, nothing touches the disk, and an unpacking bomb is only time: output comes in pieces of at most 512 KiB.
"""

from __future__ import annotations

import hashlib
import os
import queue
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, cast

from tic_manifest.adapters.layer_tree import Budget, LayerTreeReader
from tic_manifest.adapters.zstd_frames import Frames
from tic_manifest.model.files import LayerTree
from tic_manifest.model.oci import Blob, BlobFact, Encoding
from tic_manifest.ports import ImageSource, Progress, Step, Wanted, nothing

PIECE = 1 << 19
QUEUE = 3
MAX_WINDOW = 128 << 20
LARGE_WINDOW = 8 << 20
"""Of layers whose zstd window is larger than this one is read at a time: the window lies in memory."""
_ONE_LARGE = threading.Lock()
_MAGIC = ((b"\x1f\x8b", Encoding.GZIP), (b"\x28\xb5\x2f\xfd", Encoding.ZSTD))
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)


class BadEncodingError(Exception):
    """The bytes of a layer cannot be unpacked."""


def read_blobs(source: ImageSource, blobs: Sequence[Blob], progress: Progress) -> list[BlobFact]:
    """One fact for each blob, in order; the largest are read first (a `BlobReader`)."""
    return _read_all(source, blobs, progress, [None] * len(blobs))


def read_trees(
    source: ImageSource, blobs: Sequence[Blob], progress: Progress, with_blob_id: Wanted = nothing
) -> tuple[list[BlobFact], list[LayerTree | None]]:
    """As `read_blobs`, and of each layer what its archive holds (a `TreeReader`)."""
    budget = Budget()
    readers = [
        LayerTreeReader(one.layer, with_blob_id, budget) if one.encoding and one.layer else None
        for one in blobs
    ]
    facts = _read_all(source, blobs, progress, readers)
    return facts, [None if reader is None else reader.tree for reader in readers]


def _read_all(
    source: ImageSource,
    blobs: Sequence[Blob],
    progress: Progress,
    readers: Sequence[LayerTreeReader | None],
) -> list[BlobFact]:
    total = sum(one.descriptor.size for one in blobs)
    order = sorted(range(len(blobs)), key=lambda at: -blobs[at].descriptor.size)
    facts: dict[int, BlobFact] = {}
    with progress.step("reading blobs", total) as step, ThreadPoolExecutor(_workers()) as pool:
        running = {at: pool.submit(_read, source, blobs[at], readers[at], step) for at in order}
        try:
            for at, future in running.items():
                facts[at] = future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [facts[at] for at in range(len(blobs))]


def sniff(first: bytes) -> Encoding:
    """The encoding that the first bytes show; a skippable zstd frame counts as zstd."""
    for magic, encoding in _MAGIC:
        if first.startswith(magic):
            return encoding
    skippable = len(first) >= 4 and int.from_bytes(first[:4], "little") in _SKIPPABLE
    return Encoding.ZSTD if skippable else Encoding.TAR


def unpacked(stream: Packed, encoding: Encoding) -> Iterator[bytes]:
    """The unpacked bytes in pieces of at most 512 KiB. Raises BadEncodingError."""
    if encoding is Encoding.GZIP:
        return _gunzip(stream)
    return _unzstd(stream) if encoding is Encoding.ZSTD else _plain(stream)


class Packed:
    """The bytes of a blob as a file, hashed and counted as they are read."""

    def __init__(self, pieces: Iterator[bytes], advance: Callable[[int], None]) -> None:
        self._pieces = pieces
        self._advance = advance
        self._rest = b""
        self._hash = hashlib.sha256()
        self.length = 0

    def peek(self, size: int) -> bytes:
        """The next bytes, at least `size` of them unless the blob ends, without taking them."""
        while len(self._rest) < size and (piece := self._next()):
            self._rest += piece
        return self._rest[:size]

    def read(self, size: int = -1) -> bytes:
        """The next piece, as it came where that fits."""
        data, self._rest = (self._rest or self._next()), b""
        if 0 <= size < len(data):
            data, self._rest = data[:size], data[size:]
        return data

    def unread(self, data: bytes) -> None:
        """Give back bytes that were taken too many."""
        self._rest = data + self._rest

    def drain(self) -> None:
        """Read to the end."""
        self._rest = b""
        while self._next():
            pass

    def digest(self) -> str:
        """`sha256:<hex>` of everything read."""
        return "sha256:" + self._hash.hexdigest()

    def _next(self) -> bytes:
        piece = next(self._pieces, b"")
        self._hash.update(piece)
        self.length += len(piece)
        self._advance(len(piece))
        return piece


def _workers() -> int:
    return max(2, min(8, os.cpu_count() or 2))


def _read(source: ImageSource, blob: Blob, reader: LayerTreeReader | None, step: Step) -> BlobFact:
    pieces = source.blob(blob.descriptor.digest, blob.limit)
    if pieces is None:
        return BlobFact(blob=blob, length=None)
    packed = Packed(pieces, step.advance)
    if blob.encoding is None:
        packed.drain()
        return BlobFact(blob=blob, length=packed.length, digest=packed.digest())
    return _read_layer(blob, packed, reader)


def _read_layer(blob: Blob, packed: Packed, reader: LayerTreeReader | None) -> BlobFact:
    encoding, error = sniff(packed.peek(4)), ""
    sink = reader or _Hasher()
    try:
        for piece in unpacked(packed, encoding):
            sink.update(piece)
    except BadEncodingError as problem:
        error = str(problem)
    finally:
        sink.close()
    packed.drain()
    return BlobFact(
        blob=blob,
        length=packed.length,
        digest=packed.digest(),
        unpacked=sink.length,
        diff_id=None if error else sink.digest(),
        encoding=encoding,
        error=error,
    )


class _Hasher:
    """SHA-256 in a thread of its own, fed through a bounded queue."""

    def __init__(self) -> None:
        self._queue: queue.Queue[bytes | None] = queue.Queue(QUEUE)
        self._hash = hashlib.sha256()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.length = 0
        self._thread.start()

    def close(self) -> None:
        """All was given; waits until it is hashed."""
        self._queue.put(None)
        self._thread.join()

    def update(self, piece: bytes) -> None:
        """Hash a piece some time soon; waits while the queue is full."""
        self.length += len(piece)
        self._queue.put(piece)

    def digest(self) -> str:
        """`sha256:<hex>`, after `close`."""
        return "sha256:" + self._hash.hexdigest()

    def _run(self) -> None:
        while (piece := self._queue.get()) is not None:
            self._hash.update(piece)


def _plain(stream: Packed) -> Iterator[bytes]:
    while piece := stream.read(PIECE):
        yield piece


def _gunzip(stream: Packed) -> Iterator[bytes]:
    """Every member; like Go's reader, anything after a member must be another one."""
    while stream.peek(1):
        member = zlib.decompressobj(wbits=31)
        data = b""
        while not member.eof:
            data = data or stream.read(PIECE)
            if not data:
                raise BadEncodingError("the gzip stream ends early")
            try:
                piece = member.decompress(data, PIECE)
            except zlib.error as error:
                raise BadEncodingError(f"gzip: {error}") from error
            data = member.unconsumed_tail
            if piece:
                yield piece
        stream.unread(member.unused_data)


def _unzstd(stream: Packed) -> Iterator[bytes]:
    """Every frame, skippable ones included; a stream that ends inside a frame is refused."""
    import zstandard

    frames = Frames(stream, LARGE_WINDOW, _ONE_LARGE.acquire)
    reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(
        cast(IO[bytes], frames), read_size=PIECE, read_across_frames=True, closefd=False
    )
    try:
        while piece := reader.read(PIECE):
            yield piece
    except zstandard.ZstdError as error:
        raise BadEncodingError(f"zstd: {error}") from error
    finally:
        if frames.large:
            _ONE_LARGE.release()
    if not frames.complete:
        raise BadEncodingError("the zstd stream ends early")
