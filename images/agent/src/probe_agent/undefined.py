"""Symbols that nobody defines: why a library that is there, with everything it needs, cannot be loaded."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from .base import Budget, Json, clean, open_regular, text
from .elf import ElfError, Header, exactly, find_section, read_header
from .ldso import Linker

MAX_TABLE = 64 << 20
MAX_WANTED = 20
WEAK = 2
DEMANGLER = """
import ctypes, json, sys
f = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
f.restype, f.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
said = [f(name.encode(), None, None, None) for name in json.load(sys.stdin)]
json.dump([ctypes.string_at(p).decode("utf-8", "replace") if p else None for p in said], sys.stdout)
"""


class Symbol(NamedTuple):
    """One row of a dynamic symbol table; `version` is what it is asked for or given under."""

    name: str
    defined: bool
    weak: bool
    version: Optional[str]


def dynamic_symbols(path: str) -> Iterator[Symbol]:
    """Symbols of a 64-bit little-endian file with names; ElfError or OSError for a broken one."""
    fd = open_regular(path)
    try:
        header = read_header(fd)
        found = [find_section(fd, header, name) for name in (b".dynsym", b".dynstr", b".gnu.version")]
        symbols, strings, versions = found
        if not header.wide or header.order != "<" or symbols is None or strings is None:
            return
        if symbols[1] > MAX_TABLE or strings[1] > MAX_TABLE:
            raise ElfError("symbol table too large")
        table, names = exactly(fd, symbols[1] // 24 * 24, symbols[0]), exactly(fd, strings[1], strings[0])
        numbers = exactly(fd, versions[1], versions[0]) if versions and versions[1] <= MAX_TABLE else b""
        known = version_names(fd, header, names)
    finally:
        os.close(fd)
    for at, (name, info, _, section, _, _) in enumerate(struct.iter_unpack("<IBBHQQ", table)):
        end = names.find(b"\0", name)
        if name and end > name and info >> 4:
            number = (
                struct.unpack_from("<H", numbers, at * 2)[0] & 0x7FFF if at * 2 + 2 <= len(numbers) else 0
            )
            word = text(names[name : min(end, name + 2000)])
            yield Symbol(word, bool(section), info >> 4 == WEAK, known.get(number))


def version_names(fd: int, header: Header, names: bytes) -> Dict[int, str]:
    """Versions by number: those that the file asks of others, and its own."""
    known: Dict[int, str] = {}
    for section, walk in ((b".gnu.version_r", _needed), (b".gnu.version_d", _given)):
        place = find_section(fd, header, section)
        if place is not None and place[1] <= 1 << 20:
            for number, at in walk(exactly(fd, place[1], place[0])):
                end = names.find(b"\0", at)
                if number > 1 and end > at:
                    known[number] = text(names[at:end], 200)
    return known


def _needed(raw: bytes) -> Iterator[Tuple[int, int]]:
    at = 0
    for _ in range(1000):
        _, count, _, aux, following = struct.unpack_from("<HHIII", raw, at)
        inner = at + aux
        for _ in range(min(count, 1000)):
            _, _, number, name, step = struct.unpack_from("<IHHII", raw, inner)
            yield number & 0x7FFF, name
            inner += step
        if not following:
            return
        at += following


def _given(raw: bytes) -> Iterator[Tuple[int, int]]:
    at = 0
    for _ in range(1000):
        _, _, number, _, _, aux, following = struct.unpack_from("<HHHHIII", raw, at)
        yield number & 0x7FFF, struct.unpack_from("<I", raw, at + aux)[0]
        if not following:
            return
        at += following


class Resolver:
    """Looks up what libraries of one process lack; each file's table is read, filtered and dropped."""

    def __init__(self, root: str, mapped: Set[str], linker: Linker, seconds: float = 20.0) -> None:
        self.root = root
        self.mapped = sorted(mapped)
        self.linker = linker
        self.budget = Budget(seconds)

    def lacking(self, path: str) -> List[Json]:
        """What the first object, deepest first, lacks: symbol, version, needed_by, other_version_in."""
        closure = self._closure(path)
        for needed_by in reversed(closure):
            wanted = self._wanted(needed_by)
            others = self._define(wanted, [p for p in [*closure, *self.mapped] if p != needed_by])
            if wanted:
                rows = sorted(wanted.items())[:MAX_WANTED]
                return [self._row(name, version, needed_by, others.get(name)) for name, version in rows]
        return []

    def _row(self, name: str, version: Optional[str], needed_by: str, other: Optional[str]) -> Json:
        return {"symbol": clean(name, 2000), "version": version, "needed_by": clean(needed_by),
                "other_version_in": clean(other) if other else None}  # fmt: skip

    def _closure(self, path: str) -> List[str]:
        """The file and what it needs that is not loaded yet, in the linker's order."""
        found, queue = [path], [path]
        while queue and len(found) < 200:
            current = queue.pop(0)
            facts = self.linker.elf(current)
            for name in facts.get("needed", []):
                place = self.linker.find(name, current, facts["runpath"], facts["rpath"])
                if place and place not in found and place not in self.linker.loaded_paths:
                    found.append(place)
                    queue.append(place)
        return found

    def _wanted(self, path: str) -> Dict[str, Optional[str]]:
        rows = self._symbols(path)
        return {s.name: s.version for s in rows if not s.defined and not s.weak}

    def _define(self, wanted: Dict[str, Optional[str]], paths: List[str]) -> Dict[str, str]:
        """Take out of `wanted` what one of the files defines; returns who has a name in another version."""
        others: Dict[str, str] = {}
        for path in paths:
            for s in self._symbols(path) if wanted else ():
                if s.defined and s.name in wanted:
                    if wanted[s.name] in (None, s.version) or s.version is None:
                        del wanted[s.name]
                    else:
                        others[s.name] = path
        return others

    def _symbols(self, path: str) -> Iterator[Symbol]:
        if self.budget.spent():
            raise TimeoutError("no time left to look for symbols")
        try:
            yield from dynamic_symbols(self.root + path)
        except (ElfError, OSError, struct.error, OverflowError):
            return


def demangled(names: List[str]) -> List[Optional[str]]:
    """C++ names in words, by the C++ library in a child: a name is foreign data. None: not such a name."""
    if not names:
        return []
    try:
        argv = [sys.executable, "-I", "-S", "-c", DEMANGLER]
        raw = json.dumps(names).encode()
        quiet = subprocess.DEVNULL
        said = json.loads(subprocess.check_output(argv, input=raw, stderr=quiet, timeout=10))
        return [clean(one) if isinstance(one, str) else None for one in said]
    except (OSError, ValueError, subprocess.SubprocessError):
        return [None] * len(names)


def add_undefined(report: Json, extensions: List[Tuple[str, str, int]], resolver: Resolver) -> None:
    """To each import that failed for no known reason: the symbols that its library, or its wheel's, lacks."""
    paths = [path for path, _, _ in extensions if path not in resolver.mapped]
    for row in report["broken"][:50]:
        if row["missing"] or not row.get("path"):
            continue
        own = row["path"]
        folder = os.path.dirname(own)
        near = [own] if own.endswith(".so") else [p for p in paths if os.path.dirname(p).startswith(folder)]
        for path in near[:20]:
            lacking = resolver.lacking(path)
            if lacking:
                words = demangled([one["symbol"] for one in lacking])
                row["undefined"] = [dict(one, words=word) for one, word in zip(lacking, words)]
                break
