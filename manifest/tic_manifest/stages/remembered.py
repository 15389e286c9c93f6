"""An image source that is asked once for what is small: what was read whole needs no second question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Lock

from tic_manifest.formats.canonical import digest_of
from tic_manifest.model.base import Digest
from tic_manifest.model.oci import Descriptor, Referrers
from tic_manifest.ports import ImageSource

SMALL = 1 << 20
MAX_BYTES = 16 << 20


class Remembered:
    """An `ImageSource` that keeps small blobs whose bytes are those of their digest, 16 MiB in all."""

    def __init__(self, source: ImageSource) -> None:
        self._source = source
        self._kept: dict[Digest, bytes] = {}
        self._left = MAX_BYTES
        self._lock = Lock()

    def describe(self) -> str:
        """As the source says."""
        return self._source.describe()

    def manifest(self, digest: Digest) -> bytes | None:
        """As the source gives it."""
        return self._source.manifest(digest)

    def blob(self, digest: Digest, size: int) -> Iterator[bytes] | None:
        """The bytes, at most `size` + 1; from memory where they were read before."""
        if digest in self._kept:
            return iter([self._kept[digest][: size + 1]])
        pieces = self._source.blob(digest, size)
        if pieces is None or size > SMALL:
            return pieces
        data = b"".join(pieces)
        if len(data) <= size and digest_of(data) == digest:
            self._keep(digest, data)
        return iter([data])

    def _keep(self, digest: Digest, data: bytes) -> None:
        with self._lock:
            if len(data) <= self._left and digest not in self._kept:
                self._left -= len(data)
                self._kept[digest] = data

    def length(self, digest: Digest) -> int | None:
        """The stored length; not asked for where the bytes are known."""
        kept = self._kept.get(digest)
        return self._source.length(digest) if kept is None else len(kept)

    def fetch(self, wanted: Iterable[tuple[Digest, int]]) -> None:
        """Read small blobs that will be needed, several at a time. Raises UnavailableError."""
        from concurrent.futures import ThreadPoolExecutor

        small = {digest: size for digest, size in wanted if size <= SMALL and digest not in self._kept}
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.blob, small, small.values()))

    def resolve(self, tag: str) -> Digest | None:
        """As the source says."""
        return self._source.resolve(tag)

    def index_entries(self) -> tuple[Descriptor, ...]:
        """As the source says."""
        return self._source.index_entries()

    def referrers(self, subject: Digest) -> Referrers:
        """As the source says."""
        return self._source.referrers(subject)
