"""One image in several places: mirrors before the registry itself, the store of a work folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tic_manifest.adapters.layout import pieces
from tic_manifest.errors import UnavailableError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.model.base import Digest
from tic_manifest.model.oci import MAX_MANIFEST_BYTES, Descriptor, Referrers
from tic_manifest.ports import ImageSource, Store

T = TypeVar("T")


class Mirrored:
    """An `ImageSource` over copies, asked in order; a copy that is away or lacks something is passed over.

    Names that can move are asked of the last first, the registry itself. What no copy has is absent; where
    one could not be asked either, that is an error.
    """

    def __init__(self, sources: Sequence[ImageSource]) -> None:
        self._sources = tuple(sources)
        self._own = self._sources[-1]

    def describe(self) -> str:
        """The name of the last."""
        return self._own.describe()

    def manifest(self, digest: Digest) -> bytes | None:
        """The bytes with this digest; other bytes only where no copy has these."""
        other: list[bytes] = []

        def ask(source: ImageSource) -> bytes | None:
            raw = source.manifest(digest)
            if raw is None or digest_of(raw) == digest:
                return raw
            other.append(raw)
            return None

        return self._first(ask, lambda: other[-1] if other else None)

    def blob(self, digest: Digest, size: int) -> Iterator[bytes] | None:
        """The bytes of the first copy that has the blob."""
        return self._first(lambda source: source.blob(digest, size))

    def length(self, digest: Digest) -> int | None:
        """The length in the first copy that has the blob."""
        return self._first(lambda source: source.length(digest))

    def resolve(self, tag: str) -> Digest | None:
        """What the registry itself says; a mirror's word where it is away."""
        try:
            return self._own.resolve(tag)
        except UnavailableError:
            if len(self._sources) == 1:
                raise
            return Mirrored(self._sources[:-1]).resolve(tag)

    def index_entries(self) -> tuple[Descriptor, ...]:
        """Those of the last."""
        return self._own.index_entries()

    def referrers(self, subject: Digest) -> Referrers:
        """The answer of the first copy that names anything."""

        def ask(source: ImageSource) -> Referrers | None:
            answer = source.referrers(subject)
            return answer if answer.entries else None

        return self._first(ask) or self._own.referrers(subject)

    def _first(
        self, ask: Callable[[ImageSource], T | None], last: Callable[[], T | None] = lambda: None
    ) -> T | None:
        away: UnavailableError | None = None
        for source in self._sources:
            try:
                found = ask(source)
            except UnavailableError as error:
                away = error
                continue
            if found is not None:
                return found
        found = last()
        if found is None and away is not None:
            raise away
        return found


class StoreSource:
    """An `ImageSource` over the store of a work folder, which holds blobs by digest and nothing attached."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self) -> str:
        """`the store`."""
        return "the store"

    def manifest(self, digest: Digest) -> bytes | None:
        """A document that an earlier lock kept."""
        found = self.blob(digest, MAX_MANIFEST_BYTES)
        return None if found is None else b"".join(found)

    def blob(self, digest: Digest, size: int) -> Iterator[bytes] | None:
        """A blob that an earlier lock kept, at most `size` + 1 bytes."""
        path = self._store.path(digest)
        return None if path is None else pieces(path.open("rb"), size + 1)

    def length(self, digest: Digest) -> int | None:
        """The length of a kept blob."""
        path = self._store.path(digest)
        return None if path is None else path.stat().st_size

    def resolve(self, tag: str) -> Digest | None:
        """Nothing: the store has no names."""
        return None

    def index_entries(self) -> tuple[Descriptor, ...]:
        """Nothing."""
        return ()

    def referrers(self, subject: Digest) -> Referrers:
        """Nothing."""
        return Referrers(via="the store")
