"""Read one layer's archive as it streams by: names, kinds, hashes, whiteouts. Nothing touches the disk.

Paths that tools unpack differently are reported, never repaired (rules/image-verify.md C10). Source of
whiteouts: image-spec, layer.md.
"""

from __future__ import annotations

import hashlib
import posixpath
import queue
import tarfile
import threading
from typing import IO, cast

from tic_manifest.formats.git_ids import Hasher, blob_hasher
from tic_manifest.model.files import FileEntry, FileKind, LayerTree
from tic_manifest.ports import Wanted, nothing

PIECE = 1 << 20
QUEUE = 8
MAX_HEADER = 1 << 20
MAX_RECORD = 8 << 20
MAX_KEPT = 64 << 20
MAX_ENTRIES = 2_000_000
MAX_PROBLEMS = 200
WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
_EXTENDED = frozenset(
    {
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
    }
)


class LayerTreeReader:
    """Takes the unpacked bytes of a layer in pieces and reads them in a thread of its own."""

    def __init__(self, number: int, with_blob_id: Wanted = nothing) -> None:
        self.tree = LayerTree(number=number)
        self._with_blob_id = with_blob_id
        self._queue: queue.Queue[bytes] = queue.Queue(QUEUE)
        self._rest = b""
        self._ended = False
        self._thread: threading.Thread | None = None

    def update(self, piece: bytes) -> None:
        """More of the archive, at least one byte; waits while the reader is behind."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        self._queue.put(piece)

    def close(self) -> None:
        """The archive ended; the tree is whole afterwards."""
        if self._thread is None:
            self.tree.error = "the layer is empty or cannot be unpacked"
            return
        self._queue.put(b"")
        self._thread.join()

    def read(self, size: int = -1) -> bytes:
        """The next bytes, for tarfile."""
        if not self._rest and not self._ended:
            self._rest = self._queue.get()
            self._ended = not self._rest
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def _run(self) -> None:
        try:
            self._read_archive()
        except (tarfile.TarError, ValueError, OverflowError, RecursionError, OSError, EOFError) as error:
            self.tree.error = f"not a tar archive that can be read: {type(error).__name__}: {error}"[:300]
        except (
            Exception
        ) as error:  # a crafted header may break tarfile in other ways; it is the layer's fault
            self.tree.error = f"not a tar archive that can be read: {type(error).__name__}"
        self._rest = b""
        while not self._ended:
            self._ended = not self._queue.get()

    def _read_archive(self) -> None:
        kept = 0
        stream = cast(IO[bytes], self)
        with tarfile.open(fileobj=stream, mode="r|", bufsize=PIECE, tarinfo=BoundedHeader) as archive:
            for count, member in enumerate(archive):
                if count > MAX_ENTRIES:
                    raise tarfile.TarError(f"more than {MAX_ENTRIES} entries")
                kept += self._member(archive, member, kept)
                archive.members = []  # type: ignore[attr-defined]

    def _member(self, archive: tarfile.TarFile, member: tarfile.TarInfo, kept: int) -> int:
        path = _plain(member.name)
        if path is None:
            self._problem(member.name, "the path is absolute or leaves the root")
            return 0
        folder, name = posixpath.split(path)
        if name == OPAQUE:
            self.tree.opaque.add(folder)
        elif name.startswith(WHITEOUT):
            self.tree.hidden.add(posixpath.join(folder, name.removeprefix(WHITEOUT)))
        else:
            entry, record = self._entry(archive, member, path, kept)
            self._add(path, entry)
            if record is not None:
                self.tree.kept[path] = record
                return len(record)
        return 0

    def _entry(
        self, archive: tarfile.TarFile, member: tarfile.TarInfo, path: str, kept: int
    ) -> tuple[FileEntry, bytes | None]:
        number = self.tree.number
        if member.isdir():
            return FileEntry(FileKind.FOLDER, number), None
        if member.issym():
            return FileEntry(FileKind.LINK, number, target=member.linkname), None
        if member.islnk():
            return FileEntry(FileKind.HARD_LINK, number, target=_plain(member.linkname) or ""), None
        if not member.isreg() and not member.issparse():
            return FileEntry(FileKind.OTHER, number), None
        wanted = path.endswith(".dist-info/RECORD") and member.size <= min(MAX_RECORD, MAX_KEPT - kept)
        git = blob_hasher(member.size) if self._with_blob_id(path) else None
        digest, content = _content(archive, member, git, keep=wanted)
        blob_id = "" if git is None else git.hexdigest()
        mode = member.mode & 0o7777
        return FileEntry(FileKind.FILE, number, digest, member.size, mode=mode, blob_id=blob_id), content

    def _add(self, path: str, entry: FileEntry) -> None:
        known = self.tree.entries.get(path)
        if known is not None and not (known.kind is entry.kind is FileKind.FOLDER):
            self._problem(path, "the path stands twice in one layer")
        self.tree.entries[path] = entry

    def _problem(self, path: str, why: str) -> None:
        if len(self.tree.problems) < MAX_PROBLEMS:
            self.tree.problems.append((path[:400], why))


class BoundedHeader(tarfile.TarInfo):
    """A header whose extended forms are bounded: tarfile reads them whole into memory."""

    def _proc_member(self, tarfile_: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _EXTENDED and self.size > MAX_HEADER:
            raise tarfile.HeaderError(f"an extended header of {self.size} bytes")
        return super()._proc_member(tarfile_)  # type: ignore[misc, no-any-return]


def _content(
    archive: tarfile.TarFile, member: tarfile.TarInfo, git: Hasher | None, *, keep: bool
) -> tuple[str, bytes | None]:
    hasher, pieces = hashlib.sha256(), []
    stream = archive.extractfile(member)
    while stream is not None and (piece := stream.read(PIECE)):
        hasher.update(piece)
        if git is not None:
            git.update(piece)
        if keep:
            pieces.append(piece)
    return hasher.hexdigest(), b"".join(pieces) if keep else None


def _plain(name: str) -> str | None:
    """A path without `./` and double slashes; None where it is absolute, leaves the root or holds a NUL."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        return None
    return "/".join(parts)
