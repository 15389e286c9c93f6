"""Entries of the JIT ledger: what every family says about one specialization, and where it came from."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .base import Budget, Json, attempt, blocks, clean, digest_path, open_regular, read_file, resolve_in_root
from .elf import MAX_STRINGS, exactly, read_header

MAX_ENTRIES = 5000
MAX_JSON = 4 << 20
LAYERED = ("overlay", "squashfs", "erofs")
TOOLS = re.compile(rb"Cuda compilation tools, release [0-9.]+, V[0-9.]+")


class CacheDisk(NamedTuple):
    """Where artifacts lie and when the worker was started.

    `mounts` maps a mount point to its file system, `known` a path to the sha256 that was already taken.
    """

    root: str
    since: float
    mounts: Dict[str, str]
    known: Dict[str, str]
    budget: Budget

    def read_json(self, path: str) -> Any:
        """A JSON file of the root, bounded. ValueError or OSError when it is something else."""
        try:
            return json.loads(read_file(self.root + path, MAX_JSON))
        except RecursionError as error:
            raise ValueError("nested too deep") from error

    def text(self, path: str) -> str:
        """A text file of the root; empty when it cannot be read."""
        try:
            return read_file(self.root + path, MAX_JSON).decode("utf-8", "replace")
        except (OSError, ValueError):
            return ""

    def real(self, path: str) -> Optional[str]:
        """Where a path leads inside the root, None when there is nothing."""
        return resolve_in_root(self.root, path) if path.startswith("/") else None

    def digest(self, path: str) -> Optional[str]:
        """sha256 of a regular file of at most 256 MiB; None when it cannot be read, or no time is left."""
        if path in self.known:
            return self.known[path]
        try:
            if os.stat(self.root + path).st_size > 256 << 20 or self.budget.spent():
                return None
        except OSError:
            return None
        found = attempt(digest_path, self.root + path)
        return found if isinstance(found, str) else None

    def origin(self, path: str) -> str:
        """this_run: its inode changed since the start; image: in a layered file system; else left_over."""
        try:
            info = os.stat(self.root + path)
        except OSError:
            return "gone"
        if info.st_ctime >= self.since - 0.5:
            return "this_run"
        point = max((p for p in self.mounts if below(path, p)), key=len, default="")
        return "image" if self.mounts.get(point) in LAYERED else "left_over"


def below(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def entry(family: str, kernel: Optional[str], artifact: Optional[str], **more: Any) -> Json:
    """A row with every key; see `JitEntry` of tic_manifest.model.probe_jit."""
    row: Json = {
        "family": family,
        "kernel": None if kernel is None else clean(kernel, 300),
        "key": None,
        "specialization": {},
        "inputs": {},
        "artifact": None if artifact is None else clean(artifact),
        "sha256": None,
        "code_sha256": None,
        "compiler": None,
        "origin": "unknown",
        "loaded": None,
        "foreign": [],
        "stale": [],
        "error": None,
    }
    row.update(more)
    return row


def cubin_identity(path: str) -> Tuple[Optional[str], Optional[str]]:
    """(sha256 of the code sections, tools that it names) of a cubin; other sections carry source paths."""
    fd = open_regular(path)
    try:
        header = read_header(fd)
        state, found = hashlib.sha256(), False
        for name, offset, size in sections(fd, header):
            if name.startswith(b".text."):
                found = True
                state.update(name + b"\0")
                for data in blocks(fd, offset + size, offset):
                    state.update(data)
        tools = TOOLS.search(os.pread(fd, 4 << 20, 0))
    finally:
        os.close(fd)
    return state.hexdigest() if found else None, clean(tools.group(0).decode()) if tools else None


def sections(fd: int, header: Any) -> List[Tuple[bytes, int, int]]:
    """(name, offset, size) of every section that has a name, in the order of their names."""
    layout = header.order + ("IIQQQQIIQQ" if header.wide else "IIIIIIIIII")
    size = struct.calcsize(layout)
    if header.shnum > 65535 or header.shentsize != size or header.shstrndx >= header.shnum:
        return []
    rows = list(struct.iter_unpack(layout, exactly(fd, size * header.shnum, header.shoff)))
    names = exactly(fd, min(rows[header.shstrndx][5], MAX_STRINGS), rows[header.shstrndx][4])
    found = [(names[r[0] :].split(b"\0", 1)[0], r[4], r[5]) for r in rows if r[0] < len(names)]
    return sorted(row for row in found if row[0])
