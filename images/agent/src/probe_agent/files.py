"""Mapped files: which file is behind a mapping, its hash, and whether memory still equals it."""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, List, NamedTuple, Optional, Tuple

from .base import CHUNK, Json, digest_fd, failure, open_regular, text
from .elf import inspect_elf_fd
from .maps import DELETED, FileKey, Mapping

PROCMAP_QUERY = 0xC0686611
RUNTIME_NAMES = (
    b"/memfd:",
    b"/dev/shm/",
    b"/SYSV",
    b"/dev/zero",
    b"/[aio]",
    b"/anon_hugepage",
    b"/dev/nvidia",
)
Identity = Tuple[int, int, int, int, int]


class Opened(NamedTuple):
    """A file opened for hashing: how it was reached, and what that says about the mapping."""

    fd: int
    how: str
    identity: str
    reason: Optional[str]


def identity_of(fd: int) -> Identity:
    """What a cached hash is bound to: device, inode, size, mtime and ctime in nanoseconds."""
    s = os.fstat(fd)
    return (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)


def is_runtime(path: bytes) -> bool:
    """Memory that only looks like a file: memfd, shared memory, device memory."""
    return path.startswith(RUNTIME_NAMES)


def compare_names(path: str, key: FileKey) -> str:
    """Is the file at `path` the mapped one: same, inode-only (another device number), differs, gone."""
    try:
        s = os.stat(path)
    except OSError:
        return "gone"
    if s.st_ino != key[1]:
        return "differs"
    return "same" if (os.major(s.st_dev), os.minor(s.st_dev)) == key[0] else "inode-only"


def on_disk_name(root: str, key: FileKey) -> Tuple[bytes, bool]:
    """The file's name and whether it is deleted; one may really be called `x (deleted)`: ask the disk."""
    path = key[2]
    if not path.endswith(DELETED):
        return path, False
    if compare_names(root + os.fsdecode(path), key) in ("same", "inode-only"):
        return path, False
    return path[: -len(DELETED)], True


def open_mapped(pid: int, root: str, key: FileKey, mapping: Mapping) -> Opened:
    """Open the file that the mapping names: by path when the identity agrees, else by map_files."""
    name, deleted = on_disk_name(root, key)
    path = root + os.fsdecode(name)
    identity = "deleted" if deleted else compare_names(path, key)
    if identity in ("same", "inode-only"):
        return Opened(open_regular(path), "path", identity, None)
    link = "/proc/%d/map_files/%x-%x" % (pid, mapping.start, mapping.end)
    try:
        return Opened(open_regular(link), "map_files", identity, None)
    except OSError as error:
        return Opened(-1, "none", identity, "map_files: " + failure(error))


def kernel_build_id(pid: int, address: int) -> Json:
    """Build id as the kernel reads it from the mapped pages (PROCMAP_QUERY, Linux 6.11 and later)."""
    buffer = ctypes.create_string_buffer(64)
    query = bytearray(
        struct.pack("=9Q4I2Q", 104, 0, address, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, ctypes.addressof(buffer))
    )
    try:
        with open("/proc/%d/maps" % pid, "rb") as stream:
            fcntl.ioctl(stream.fileno(), PROCMAP_QUERY, query)
    except OSError as error:
        return {"build_id": None, "reason": failure(error)}
    size = struct.unpack_from("=I", query, 84)[0]
    return {"build_id": buffer.raw[:size].hex() if 0 < size <= 64 else None, "reason": None}


def compare_segment(memory: int, fd: int, size: int, segment: Mapping) -> Json:
    """Compare one executable mapping with its file, up to the end of the file."""
    length = min(segment.size, max(0, size - segment.offset))
    done = 0
    while done < length:
        want = min(CHUNK, length - done)
        live = os.pread(memory, want, segment.start + done)
        disk = os.pread(fd, len(live), segment.offset + done)
        if not live or len(live) != len(disk):
            return {
                "verdict": "unverifiable",
                "reason": "short read at file offset %d" % (segment.offset + done),
            }
        if live != disk:
            first = next(i for i in range(len(live)) if live[i] != disk[i])
            return {"verdict": "differs", "offset": segment.offset + done + first}
        done += len(live)
    return {"verdict": "same", "bytes": length}


def compare_executable(pid: int, fd: int, segments: List[Mapping]) -> Json:
    """Verdict over the executable mappings of one file: same, differs, unverifiable, not_executable."""
    executable = [s for s in segments if s.executable]
    if not executable:
        return {"verdict": "not_executable", "bytes": 0}
    size = os.fstat(fd).st_size
    try:
        memory = os.open("/proc/%d/mem" % pid, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return {"verdict": "unverifiable", "reason": failure(error), "bytes": 0}
    try:
        return _fold([compare_segment(memory, fd, size, s) for s in executable])
    except OSError as error:
        return {"verdict": "unverifiable", "reason": failure(error), "bytes": 0}
    finally:
        os.close(memory)


def _fold(results: List[Json]) -> Json:
    for verdict in ("differs", "unverifiable"):
        for result in results:
            if result["verdict"] == verdict:
                return dict(result, bytes=0)
    return {"verdict": "same", "bytes": sum(r["bytes"] for r in results)}


class FileTable:
    """All mapped files of all processes, each hashed once; a hash is bound to the file's whole identity."""

    def __init__(self, seconds: float = 240.0) -> None:
        self.rows: List[Json] = []
        self._index: Dict[Tuple[str, FileKey], int] = {}
        self._hashes: Dict[Identity, Tuple[str, Json]] = {}
        self._left = seconds  # of hashing: a worker may take any time until it is ready

    def scan(self, pid: int, root: str, groups: Dict[FileKey, List[Mapping]]) -> List[Json]:
        """Rows of one process: `{"file": index, "bytes", "exec_bytes", "executing": verdict, …}`."""
        with ThreadPoolExecutor(2) as pool:
            work = [(pid, root, key, segments) for key, segments in groups.items()]
            return [row for row in pool.map(lambda args: self._scan_file(*args), work) if row is not None]

    def _scan_file(self, pid: int, root: str, key: FileKey, segments: List[Mapping]) -> Json:
        index = self._row(root, key)
        row: Json = {
            "file": index,
            "segments": len(segments),
            "bytes": sum(s.size for s in segments),
            "exec_bytes": sum(s.size for s in segments if s.executable),
            "perms": sorted({s.perms for s in segments}),
        }
        try:
            row.update(self._examine(pid, root, key, segments, index))
        except OSError as error:
            row["executing"] = {"verdict": "unverifiable", "reason": failure(error), "bytes": 0}
        return row

    def _examine(self, pid: int, root: str, key: FileKey, segments: List[Mapping], index: int) -> Json:
        if is_runtime(key[2]):
            verdict = "unverifiable" if any(s.executable for s in segments) else "not_executable"
            return {"executing": {"verdict": verdict, "reason": "memory, not a file", "bytes": 0}}
        opened = open_mapped(pid, root, key, segments[0])
        row: Json = {"identity": opened.identity, "read_by": opened.how}
        if any(s.executable for s in segments):
            row["kernel"] = kernel_build_id(pid, segments[0].start)
        if opened.fd < 0:
            row["executing"] = {"verdict": "unverifiable", "reason": opened.reason, "bytes": 0}
            self.rows[index].setdefault("hash_reason", opened.reason)
            return row
        try:
            self._describe(opened.fd, index)
            row["executing"] = compare_executable(pid, opened.fd, segments)
        finally:
            os.close(opened.fd)
        return row

    def _row(self, root: str, key: FileKey) -> int:
        if (root, key) not in self._index:
            name, deleted = on_disk_name(root, key) if not is_runtime(key[2]) else (key[2], False)
            self._index[(root, key)] = len(self.rows)
            device = "%d:%d" % key[0]
            self.rows.append(
                {"path": text(name), "root": root, "device": device, "inode": key[1], "deleted": deleted}
            )
            self.rows[-1]["runtime"] = is_runtime(key[2])
        return self._index[(root, key)]

    def _describe(self, fd: int, index: int) -> None:
        """Hash and ELF facts of the file, once."""
        row = self.rows[index]
        if "sha256" in row:
            return
        identity = identity_of(fd)
        if identity not in self._hashes:
            if self._left <= 0:
                row.update(sha256=None, hash_reason="time limit")
                return
            began = time.monotonic()
            self._hashes[identity] = (digest_fd(fd), inspect_elf_fd(fd))
            self._left -= time.monotonic() - began
        digest, elf = self._hashes[identity]
        row.update(sha256=digest, size=identity[2], mtime_ns=identity[3], ctime_ns=identity[4], elf=elf)
        if identity_of(fd) != identity:
            row["changed_while_hashing"] = True

    def add_late(self, root: str, key: FileKey) -> Optional[int]:
        """A file seen mapped only in passing: described from disk when it is still the same file.

        None for a file that a snapshot has met already.
        """
        known = (root, key) in self._index
        index = self._row(root, key)
        if known:
            return index if self.rows[index].get("late") else None
        self.rows[index]["late"] = True
        path = root + self.rows[index]["path"]
        if compare_names(path, key) in ("same", "inode-only"):
            try:
                fd = open_regular(path)
            except OSError as error:
                self.rows[index]["hash_reason"] = failure(error)
                return index
            try:
                self._describe(fd, index)
            except OSError as error:
                self.rows[index]["hash_reason"] = failure(error)
            finally:
                os.close(fd)
        return index
