"""ELF files as hostile data: identity and dependencies from program headers, section hashes where asked."""

from __future__ import annotations

import hashlib
import os
import struct
from typing import Dict, List, NamedTuple, Optional, Tuple

from .base import Json, blocks, failure, open_regular, text

PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE = 1, 2, 3, 4
DT_NEEDED, DT_STRTAB, DT_STRSZ, DT_SONAME, DT_RPATH, DT_RUNPATH = 1, 5, 10, 14, 15, 29
MAX_HEADERS = 4096
MAX_DYNAMIC = 16384
MAX_STRINGS = 8 << 20
MACHINES = {
    3: "i386",
    40: "arm",
    62: "x86_64",
    183: "aarch64",
    190: "cuda",
    243: "riscv",
    21: "ppc64",
    22: "s390x",
}


class ElfError(ValueError):
    """Not an ELF file, or a broken one; the message says what is wrong."""


class Header(NamedTuple):
    """What later steps need of the ELF header."""

    order: str
    wide: bool
    kind: int
    machine: int
    phoff: int
    phnum: int
    phentsize: int
    shoff: int
    shnum: int
    shentsize: int
    shstrndx: int


class Segment(NamedTuple):
    """One program header."""

    kind: int
    flags: int
    offset: int
    vaddr: int
    filesz: int


def exactly(fd: int, size: int, offset: int) -> bytes:
    """`size` bytes at `offset`; a shorter file is an ElfError."""
    if offset < 0 or offset > 1 << 62:
        raise ElfError("offset out of range")
    data = os.pread(fd, size, offset)
    if len(data) != size:
        raise ElfError("truncated: %d of %d bytes at %d" % (len(data), size, offset))
    return data


def read_header(fd: int) -> Header:
    """The ELF header; ElfError for anything else."""
    ident = os.pread(fd, 16, 0)
    if len(ident) < 16 or ident[:4] != b"\x7fELF":
        raise ElfError("no ELF magic")
    if ident[4] not in (1, 2) or ident[5] not in (1, 2):
        raise ElfError("unknown class or byte order")
    order, wide = ("<" if ident[5] == 1 else ">"), ident[4] == 2
    layout = order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH")
    f = struct.unpack(layout, exactly(fd, struct.calcsize(layout), 16))
    return Header(order, wide, f[0], f[1], f[4], f[9], f[8], f[5], f[11], f[10], f[12])


def read_segments(fd: int, header: Header) -> List[Segment]:
    """Program headers, bounded."""
    layout = header.order + ("IIQQQQQQ" if header.wide else "IIIIIIII")
    size = struct.calcsize(layout)
    if header.phnum > MAX_HEADERS or (header.phnum and header.phentsize != size):
        raise ElfError("bad program header table")
    raw = exactly(fd, size * header.phnum, header.phoff)
    found = []
    for i in range(header.phnum):
        f = struct.unpack_from(layout, raw, i * size)
        found.append(
            Segment(f[0], f[1], f[2], f[3], f[5]) if header.wide else Segment(f[0], f[6], f[1], f[2], f[4])
        )
    return found


def to_offset(segments: List[Segment], vaddr: int) -> int:
    """File offset of a virtual address; ElfError when no loaded segment holds it."""
    for s in segments:
        if s.kind == PT_LOAD and s.vaddr <= vaddr < s.vaddr + s.filesz:
            return s.offset + vaddr - s.vaddr
    raise ElfError("address outside every segment")


def parse_notes(raw: bytes, order: str) -> Optional[str]:
    """Build id in a block of notes, as hex; None when there is none."""
    at = 0
    while at + 12 <= len(raw):
        name_size, size, kind = struct.unpack_from(order + "III", raw, at)
        name_at = at + 12
        at = name_at + (name_size + 3) // 4 * 4
        if kind == 3 and raw[name_at : name_at + name_size] == b"GNU\0" and 0 < size <= 64:
            found = raw[at : at + size]
            return found.hex() if len(found) == size else None
        at += (size + 3) // 4 * 4
    return None


def build_id(fd: int, header: Header, segments: List[Segment]) -> Optional[str]:
    """Build id from the note segments; a consistency check, never an identity."""
    for s in segments:
        if s.kind == PT_NOTE and 0 < s.filesz <= 1 << 16:
            found = parse_notes(exactly(fd, s.filesz, s.offset), header.order)
            if found:
                return found
    return None


def dynamic_entries(fd: int, header: Header, segments: List[Segment]) -> List[Tuple[int, int]]:
    """(tag, value) of the dynamic section up to DT_NULL; empty for a static file."""
    layout = header.order + ("qQ" if header.wide else "iI")
    size = struct.calcsize(layout)
    for s in segments:
        if s.kind == PT_DYNAMIC:
            raw = exactly(fd, min(s.filesz, size * MAX_DYNAMIC) // size * size, s.offset)
            entries = []
            for tag, value in struct.iter_unpack(layout, raw):
                if tag == 0:
                    break
                entries.append((tag, value))
            return entries
    return []


def c_string(table: bytes, at: int) -> str:
    """A zero-ended string of the table; ElfError when it has no end."""
    end = table.find(b"\0", at)
    if at >= len(table) or end < 0:
        raise ElfError("string outside the table")
    return text(table[at:end])


def dependencies(fd: int, header: Header, segments: List[Segment]) -> Json:
    """SONAME, NEEDED, RPATH and RUNPATH."""
    entries = dynamic_entries(fd, header, segments)
    values: Dict[int, int] = dict(entries)
    result: Json = {"soname": None, "needed": [], "rpath": [], "runpath": []}
    if DT_STRTAB not in values:
        return result
    size = values.get(DT_STRSZ, 0)
    if not 0 < size <= MAX_STRINGS:
        raise ElfError("bad string table size")
    table = exactly(fd, size, to_offset(segments, values[DT_STRTAB]))
    result["needed"] = [c_string(table, value) for tag, value in entries if tag == DT_NEEDED][:1000]
    if DT_SONAME in values:
        result["soname"] = c_string(table, values[DT_SONAME])
    for name, tag in (("rpath", DT_RPATH), ("runpath", DT_RUNPATH)):
        if tag in values:
            result[name] = [part for part in c_string(table, values[tag]).split(":") if part][:100]
    return result


def inspect_elf(path: str) -> Json:
    """Identity and dependencies of one file, or `{"error": …}`."""
    try:
        fd = open_regular(path)
    except OSError as error:
        return {"error": failure(error)}
    try:
        return inspect_elf_fd(fd)
    finally:
        os.close(fd)


def inspect_elf_fd(fd: int) -> Json:
    """As `inspect_elf`, of an open file."""
    try:
        header = read_header(fd)
        segments = read_segments(fd, header)
        result = dependencies(fd, header, segments)
        result["build_id"] = build_id(fd, header, segments)
        result["machine"] = MACHINES.get(header.machine, str(header.machine))
        return result
    except (ElfError, OSError, struct.error, OverflowError) as error:
        return {"error": failure(error)}


def find_section(fd: int, header: Header, wanted: bytes) -> Optional[Tuple[int, int]]:
    """(offset, size) of a named section; None when it is not there."""
    layout = header.order + ("IIQQQQIIQQ" if header.wide else "IIIIIIIIII")
    size = struct.calcsize(layout)
    if header.shnum > 65535 or header.shentsize != size or header.shstrndx >= header.shnum:
        return None
    raw = exactly(fd, size * header.shnum, header.shoff)
    rows = list(struct.iter_unpack(layout, raw))
    names_size = min(rows[header.shstrndx][5], MAX_STRINGS)
    names = exactly(fd, names_size, rows[header.shstrndx][4])
    for row in rows:
        if names[row[0] : row[0] + len(wanted) + 1] == wanted + b"\0":
            return row[4], row[5]
    return None


def code_identity(path: str) -> Json:
    """sha256 of `.text` and the compiler named in `.comment`: what a JIT's library is, without its paths."""
    result: Json = {"text_sha256": None, "comment": []}
    fd = open_regular(path)
    try:
        header = read_header(fd)
        found = find_section(fd, header, b".text")
        if found:
            state = hashlib.sha256()
            for data in blocks(fd, found[0] + found[1], found[0]):
                state.update(data)
            result["text_sha256"] = state.hexdigest()
        found = find_section(fd, header, b".comment")
        if found and found[1] <= 1 << 16:
            strings = exactly(fd, found[1], found[0]).split(b"\0")
            result["comment"] = sorted({text(s, 200) for s in strings if s})[:20]
    finally:
        os.close(fd)
    return result
