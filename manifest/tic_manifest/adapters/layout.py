"""OCI image layouts on disk, read without following links (image-spec, image-layout.md)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol

from tic_manifest.errors import PersonError, RefusedError, UnavailableError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.formats.oci import parse_index, subject_of
from tic_manifest.formats.strict_json import load_json
from tic_manifest.model.base import Digest
from tic_manifest.model.oci import (
    MANIFEST_TYPES,
    MAX_MANIFEST_BYTES,
    REF_NAME,
    Descriptor,
    ImageIndex,
    Referrers,
)

PIECE = 1 << 20
MAX_ENTRIES = 1000
_FLAGS = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)


def fallback_tag(subject: Digest) -> str:
    """The tag under which referrers are listed where there is no API (distribution-spec)."""
    return subject.replace(":", "-", 1)


class Files(Protocol):
    """Plain files by name, with `/` between folders."""

    def open(self, name: str) -> IO[bytes] | None:
        """A file for reading; None when absent. Raises RefusedError LAYOUT for what is no plain file."""

    def length(self, name: str) -> int | None:
        """Length in bytes; None when absent. Raises as `open`."""


class LayoutSource:
    """An `ImageSource` over a folder with `oci-layout`, `index.json` and `blobs`."""

    def __init__(self, root: Path, files: Files | None = None) -> None:
        """`files` are those below `root` unless given.

        Raises PersonError LAYOUT where that is no layout, RefusedError where it is a broken one.
        """
        self._root = root
        self._files = files or _Folder(root)
        if self._files.length("index.json") is None or self._files.length("oci-layout") is None:
            raise PersonError(
                "LAYOUT", "not an OCI image layout", where=str(root),
                expected="oci-layout, index.json and blobs", remedy="name the folder that holds them",
            )  # fmt: skip
        version = load_json(self._small("oci-layout"), "oci-layout")
        if not isinstance(version, dict) or version.get("imageLayoutVersion") != "1.0.0":
            raise RefusedError("LAYOUT", "unknown layout version", where=str(root), expected="1.0.0")
        self._index = self._read_index()

    def describe(self) -> str:
        """`oci:DIR`."""
        return f"oci:{self._root}"

    def manifest(self, digest: Digest) -> bytes | None:
        """Bytes of a document; None when absent or longer than a document may be."""
        pieces = self.blob(digest, MAX_MANIFEST_BYTES)
        return None if pieces is None else b"".join(pieces)

    def blob(self, digest: Digest, size: int) -> Iterator[bytes] | None:
        """Pieces of a blob, at most `size` + 1 bytes in all; None when absent."""
        handle = self._files.open(_name(digest))
        return None if handle is None else pieces(handle, size + 1)

    def length(self, digest: Digest) -> int | None:
        """The length of the blob's file."""
        return self._files.length(_name(digest))

    def resolve(self, tag: str) -> Digest | None:
        """The digest of the entry with this `ref.name`; several different ones are refused."""
        found = {one.digest for one in self._index.manifests if one.annotations.get(REF_NAME) == tag}
        if len(found) > 1:
            raise RefusedError(
                "LAYOUT", "a name stands for several documents", where=f"{self._root}/index.json",
                expected="one", actual=f"{tag}: {', '.join(sorted(found))}",
            )  # fmt: skip
        return next(iter(found), None)

    def index_entries(self) -> tuple[Descriptor, ...]:
        """The entries of index.json, in order."""
        return self._index.manifests

    def referrers(self, subject: Digest) -> Referrers:
        """The entries of the index under the fallback tag, and those that index.json lists themselves.

        skopeo carries the former into a layout, oras the latter.
        """
        tag = fallback_tag(subject)
        digest = self.resolve(tag)
        listed = self._listed(subject)
        if digest is None:
            return Referrers(via="index.json" if listed else f"tag {tag}: absent", entries=listed)
        tagged = read_fallback(self.manifest(digest), digest, subject)
        entries = {one.digest: one for one in (*tagged.entries, *listed)}
        return tagged.model_copy(update={"entries": tuple(entries.values())})

    def _listed(self, subject: Digest) -> tuple[Descriptor, ...]:
        entries = [one for one in self._index.manifests[:MAX_ENTRIES] if one.media_type in MANIFEST_TYPES]
        return tuple(one for one in entries if subject_of(self.manifest(one.digest) or b"") == subject)

    def _read_index(self) -> ImageIndex:
        return parse_index(self._small("index.json"), f"{self._root}/index.json").value

    def _small(self, name: str) -> bytes:
        handle = self._files.open(name)
        raw = b"" if handle is None else b"".join(pieces(handle, MAX_MANIFEST_BYTES + 1))
        if len(raw) > MAX_MANIFEST_BYTES:
            raise RefusedError("LAYOUT", "file too large", where=f"{self._root}/{name}")
        return raw


class _Folder:
    """`Files` below a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def open(self, name: str) -> IO[bytes] | None:
        return open_file(self._root / name)

    def length(self, name: str) -> int | None:
        path = self._root / name
        try:
            found = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unreadable(path, error) from error
        _require_file(path, found)
        return found.st_size


def _name(digest: Digest) -> str:
    algorithm, _, encoded = digest.partition(":")
    return f"blobs/{algorithm}/{encoded}"


def read_fallback(raw: bytes | None, digest: Digest, subject: Digest) -> Referrers:
    """What a fallback tag lists. An answer that is no index of artifacts is a problem, never "nothing"."""
    via = f"tag {fallback_tag(subject)}"
    if raw is None:
        return Referrers(via=via, problems=(f"{digest} is named by the tag and absent",))
    if digest == subject:
        return Referrers(via=via, problems=("the tag names the image itself",))
    if digest_of(raw) != digest:
        return Referrers(via=via, problems=(f"the bytes of {digest} are others than the digest names",))
    try:
        return Referrers(via=via, entries=parse_index(raw, via).value.manifests)
    except RefusedError as error:
        said = f": {error.actual}" if error.actual else ""
        return Referrers(
            via=via, problems=(f"the tag names no image index: {error.what}{said} [{error.code}]",)
        )


def open_file(path: Path) -> IO[bytes] | None:
    """A plain file for reading, never through a link; None when absent. Raises RefusedError LAYOUT."""
    try:
        handle = os.open(path, _FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if path.is_symlink():
            raise _not_a_file(path) from error
        raise _unreadable(path, error) from error
    try:
        _require_file(path, os.fstat(handle))
    except RefusedError:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb", buffering=0)


def pieces(stream: IO[bytes], limit: int) -> Iterator[bytes]:
    """At most `limit` bytes of a stream, in pieces of at most 1 MiB; closes it."""
    with stream:
        while limit > 0 and (piece := stream.read(min(PIECE, limit))):
            limit -= len(piece)
            yield piece


def _require_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _not_a_file(path)


def _not_a_file(path: Path) -> RefusedError:
    return RefusedError(
        "LAYOUT", "a blob of a layout is not a plain file", where=str(path), expected="a plain file"
    )


def _unreadable(path: Path, error: OSError) -> UnavailableError:
    return UnavailableError("RIGHTS", "cannot read", where=str(path), actual=str(error))
