"""Read one layer's archive as it streams by: names, kinds, hashes, whiteouts. Nothing touches the disk.

Paths that tools unpack differently are reported, never repaired (rules/image-verify.md C10). Source of
whiteouts: image-spec, layer.md.
"""

from __future__ import annotations

import hashlib
import posixpath
import queue
import threading

from tic_manifest.adapters.tar_extended import TarFormatError
from tic_manifest.adapters.tar_stream import (
    FOLDER,
    HARD_LINK,
    REGULAR,
    SYMLINK,
    Member,
    TarStream,
)
from tic_manifest.formats.git_ids import blob_hasher
from tic_manifest.model.files import FileEntry, FileKind, LayerTree
from tic_manifest.ports import Wanted, nothing

QUEUE = 3
MAX_RECORD = 8 << 20
MAX_INDEX = 144 << 20
"""Bytes that the index of all layers of one reading may take in memory, RECORDs included."""
COST = 400
"""Bytes that an entry costs beside its path and target: objects and a place in a table."""
MAX_FOLDERS = 50_000
MAX_PROBLEMS = 200
WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
_DOTS = frozenset(("", ".", ".."))


class Budget:
    """Memory that several readers share, in bytes."""

    def __init__(self, size: int = MAX_INDEX) -> None:
        self._left = size
        self._lock = threading.Lock()

    def take(self, count: int) -> bool:
        """Whether there was so much left; it is taken then."""
        with self._lock:
            if count > self._left:
                return False
            self._left -= count
            return True


class _TooMuchError(Exception):
    """The layer holds more than is kept in memory."""


class LayerTreeReader:
    """Takes the unpacked bytes of a layer in pieces; hashes and reads them in a thread of its own."""

    def __init__(self, number: int, with_blob_id: Wanted = nothing, budget: Budget | None = None) -> None:
        self.tree = LayerTree(number=number)
        self._with_blob_id = None if with_blob_id is nothing else with_blob_id
        self._budget = budget or Budget()
        self.length = 0
        self._hash = hashlib.sha256()
        self._queue: queue.Queue[bytes] = queue.Queue(QUEUE)
        self._ended = False
        self._thread: threading.Thread | None = None
        self._owed = 0
        self._normal: set[str] = set()
        self._folder = FileEntry(FileKind.FOLDER, number)

    def update(self, piece: bytes) -> None:
        """More of the archive, at least one byte; waits while the reader is behind."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        self.length += len(piece)
        self._queue.put(piece)

    def close(self) -> None:
        """The archive ended; the tree is whole afterwards."""
        if self._thread is None:
            self.tree.error = "the layer is empty or cannot be unpacked"
            return
        self._queue.put(b"")
        self._thread.join()

    def digest(self) -> str:
        """`sha256:<hex>` of all of the archive, once it ended."""
        return "sha256:" + self._hash.hexdigest()

    def _next(self) -> bytes:
        """The next piece, which is in the processor's cache now: the archive is hashed with its files."""
        piece = b"" if self._ended else self._queue.get()
        self._ended = not piece
        self._hash.update(piece)
        return piece

    def _run(self) -> None:
        try:
            self._read_archive()
        except TarFormatError as error:
            self.tree.error = f"not a tar archive that can be read: {error}"[:300]
        except _TooMuchError as error:
            self.tree.limit = str(error)
        except Exception as error:  # whatever a crafted header breaks is the layer's fault
            self.tree.error = f"not a tar archive that can be read: {type(error).__name__}"
        while not self._ended:
            self._next()

    def _read_archive(self) -> None:
        stream = TarStream(self._next)
        for member in stream.members():
            self._member(stream, member)
        self._settle()

    def _member(self, stream: TarStream, member: Member) -> None:
        name = member.name
        folder, _, leaf = name.rpartition("/")
        path = name if folder in self._normal and leaf not in _DOTS else self._path(name)
        if path is None:
            return
        if member.odd:
            self._problem(path, member.odd)
        if WHITEOUT in path and posixpath.basename(path).startswith(WHITEOUT):
            self._whiteout(path)
            return
        self._owed += COST + len(path) + len(member.target)
        if self._owed > 1 << 18:
            self._settle()
        self._add(path, self._entry(stream, member, path))

    def _path(self, name: str) -> str | None:
        path = _plain(name)
        if path is None:
            self._problem(name, "the path is absolute or leaves the root")
        elif path == name and len(self._normal) < MAX_FOLDERS:
            self._normal.add(posixpath.dirname(name))
        return path

    def _whiteout(self, path: str) -> None:
        folder, name = posixpath.split(path)
        self._owed += COST + len(path)
        if name == OPAQUE:
            self.tree.opaque.add(folder)
        else:
            self.tree.hidden.add(posixpath.join(folder, name.removeprefix(WHITEOUT)))

    def _entry(self, stream: TarStream, member: Member, path: str) -> FileEntry:
        number, kind = self.tree.number, member.kind
        if kind == REGULAR:
            return self._file(stream, member, path)
        if kind == FOLDER:
            return self._folder
        if kind == SYMLINK:
            return FileEntry(FileKind.LINK, number, target=member.target)
        if kind == HARD_LINK:
            return FileEntry(FileKind.HARD_LINK, number, target=_plain(member.target) or "")
        return FileEntry(FileKind.OTHER, number)

    def _file(self, stream: TarStream, member: Member, path: str) -> FileEntry:
        git = blob_hasher(member.size) if self._with_blob_id and self._with_blob_id(path) else None
        kept: list[bytes] | None = [] if path.endswith(".dist-info/RECORD") else None
        if kept is not None:
            self._reserve(member.size)
        whole = stream.whole()
        hasher = hashlib.sha256() if whole is None else hashlib.sha256(whole)
        if whole is None or git is not None or kept is not None:
            for piece in (whole,) if whole is not None else stream.content():
                if whole is None:
                    hasher.update(piece)
                if git is not None:
                    git.update(piece)
                if kept is not None:
                    kept.append(bytes(piece))
        if kept is not None:
            self.tree.kept[path] = b"".join(kept)
        blob_id = "" if git is None else git.hexdigest()
        digest = hasher.hexdigest()
        return FileEntry(FileKind.FILE, self.tree.number, digest, member.size, "", member.mode, blob_id)

    def _add(self, path: str, entry: FileEntry) -> None:
        known = self.tree.entries.get(path)
        if known is not None and not (known.kind is entry.kind is FileKind.FOLDER):
            self._problem(path, "the path stands twice in one layer")
        self.tree.entries[path] = entry

    def _reserve(self, size: int) -> None:
        """Memory for a RECORD."""
        if size > MAX_RECORD:
            raise _TooMuchError(f"a RECORD of {size} bytes, more than {MAX_RECORD}")
        self._owed += size
        self._settle()

    def _settle(self) -> None:
        if not self._budget.take(self._owed):
            raise _TooMuchError(f"the index of the image takes more than {MAX_INDEX >> 20} MiB of memory")
        self._owed = 0

    def _problem(self, path: str, why: str) -> None:
        if len(self.tree.problems) < MAX_PROBLEMS:
            self.tree.problems.append((path[:400], why))


def _plain(name: str) -> str | None:
    """A path without `./` and double slashes; None where it is absolute, leaves the root or holds a NUL."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        return None
    return "/".join(parts)
