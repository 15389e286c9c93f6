"""Words and symbols in the memory of a running process, read only: nothing stops, nothing changes."""

from __future__ import annotations

import os
import struct
from typing import List, Optional

from .base import open_regular, read_proc
from .elf import PT_LOAD, exactly, find_section, read_header, read_segments
from .maps import Mapping

MAX_SYMBOLS = 4 << 20


class Memory:
    """/proc/PID/mem. Every read is whole or an OSError. Close it."""

    def __init__(self, pid: int) -> None:
        self._fd = os.open("/proc/%d/mem" % pid, os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes at `address`."""
        if not 0 < address < 1 << 56:
            raise OSError("no address: %#x" % address)
        data = os.pread(self._fd, size, address)
        if len(data) != size:
            raise OSError("%d of %d bytes at %#x" % (len(data), size, address))
        return data

    def word(self, address: int) -> int:
        """One unsigned 64-bit word."""
        return int(struct.unpack("<Q", self.read(address, 8))[0])

    def words(self, address: int, size: int) -> List[int]:
        """The words of a block, up to where memory ends."""
        data = os.pread(self._fd, size, address)
        return list(struct.unpack("<%dQ" % (len(data) // 8), data[: len(data) // 8 * 8]))


def symbol_value(path: str, name: bytes) -> Optional[int]:
    """Value of a dynamic symbol of a 64-bit little-endian file; None when it exports no such name."""
    fd = open_regular(path)
    try:
        header = read_header(fd)
        symbols = find_section(fd, header, b".dynsym")
        strings = find_section(fd, header, b".dynstr")
        if not header.wide or header.order != "<" or symbols is None or strings is None:
            return None
        names = exactly(fd, min(strings[1], MAX_SYMBOLS), strings[0])
        table = exactly(fd, min(symbols[1], MAX_SYMBOLS) // 24 * 24, symbols[0])
    finally:
        os.close(fd)
    for at, _, _, section, value, _ in struct.iter_unpack("<IBBHQQ", table):
        if section and names[at : at + len(name) + 1] == name + b"\0":
            return int(value)
    return None


def load_bias(path: str, segments: List[Mapping]) -> int:
    """What is added to addresses of the file in this process."""
    fd = open_regular(path)
    try:
        loads = [s for s in read_segments(fd, read_header(fd)) if s.kind == PT_LOAD]
    finally:
        os.close(fd)
    first = min(loads, key=lambda s: s.offset)
    start = next(m.start for m in segments if m.offset == first.offset // 4096 * 4096)
    return start - first.vaddr // 4096 * 4096


def same_bytes(left: str, right: str) -> bool:
    """Whether two names are one file, or files of one content."""
    if os.path.samefile(left, right):
        return True
    return os.path.getsize(left) == os.path.getsize(right) and read_proc(left) == read_proc(right)
