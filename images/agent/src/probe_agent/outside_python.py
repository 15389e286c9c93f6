"""The modules of a Python process that gave no view of itself, read from its memory.

Offsets are not written down here: they are found in the agent's own interpreter, which must be of the same
minor version (3.11 to 3.13, 64 bit). The process runs on: a value that changes meanwhile is an error.
"""

from __future__ import annotations

import _imp
import os
import re
import struct
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .base import AGENT_VERSION, MAX_MODULES, SCHEMA, Json, clean
from .maps import FileKey, Mapping
from .memory import Memory, load_bias, symbol_value

INTERPRETER = re.compile(rb"/(python[0-9.]*|libpython[0-9.]+\.so[0-9.]*)$")
MAX_STRING = 1 << 16
MAX_LIST = 10_000


class Offsets(NamedTuple):
    """Where this version keeps its interpreter in `_PyRuntime`, modules in that, a dictionary in a module."""

    interpreter: int
    modules: int
    module_dict: int


def own_offsets() -> Offsets:
    """Found by looking for known addresses in this very process. OSError when they are not found."""
    import ctypes

    memory = Memory(os.getpid())
    try:
        current = ctypes.pythonapi.PyInterpreterState_Get
        current.restype = ctypes.c_void_p
        interpreter = current()
        runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
        return Offsets(
            _find(memory, runtime, 1 << 13, interpreter),
            _find(memory, interpreter, 1 << 17, id(sys.modules)),
            _find(memory, id(sys), 128, id(sys.__dict__)),
        )
    finally:
        memory.close()


def _find(memory: Memory, start: int, size: int, value: int) -> int:
    words = memory.words(start, size)
    if value not in words:
        raise OSError("the layout of this interpreter is unknown")
    return words.index(value) * 8


class Objects:
    """CPython objects at addresses of another process: exact types only, everything bounded."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.header = sys.getsizeof("") - 1
        self.wide_header = sys.getsizeof("\xe9") - 2

    def text(self, address: int) -> str:
        """A compact string. OSError for anything else."""
        length, _, state = struct.unpack("<QQI", self.memory.read(address + 16, 20))
        width, compact, ascii_only = state >> 2 & 7, state >> 5 & 1, state >> 6 & 1
        if not compact or width not in (1, 2, 4) or length > MAX_STRING:
            raise OSError("not a string at %#x" % address)
        if not length:
            return ""
        start = address + (self.header if ascii_only else self.wide_header)
        raw = self.memory.read(start, length * width)
        return raw.decode({1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[width], "surrogatepass")

    def items(self, address: int) -> Iterator[Tuple[int, int]]:
        """Addresses of keys and values of a dictionary that is not split."""
        keys, values = struct.unpack("<QQ", self.memory.read(address + 32, 16))
        if values:
            raise OSError("a split dictionary at %#x" % address)
        head = self.memory.read(keys, 32)
        index_size, kind = 1 << head[9], head[10]
        count = struct.unpack_from("<q", head, 24)[0]
        if head[9] > 32 or kind > 1 or not 0 <= count <= 4 * MAX_MODULES:
            raise OSError("not a dictionary at %#x" % address)
        size = 16 if kind else 24
        raw = self.memory.read(keys + 32 + index_size, count * size) if count else b""
        for at in range(0, len(raw), size):
            key, value = struct.unpack_from("<QQ", raw, at + size - 16)
            if key and value:
                yield key, value

    def named(self, address: int) -> Dict[str, int]:
        """A dictionary's values by their names; keys that are no strings are left out."""
        found: Dict[str, int] = {}
        for key, value in self.items(address):
            try:
                found[self.text(key)] = value
            except OSError:
                continue
        return found

    def texts(self, address: int) -> List[str]:
        """The strings of a list."""
        size, first = struct.unpack("<QQ", self.memory.read(address + 16, 16))
        if size > MAX_LIST:
            raise OSError("not a list at %#x" % address)
        return [self.text(a) for a in self.memory.words(first, size * 8)] if size else []


def find_interpreter(root: str, groups: Dict[FileKey, List[Mapping]]) -> Optional[Tuple[str, List[Mapping]]]:
    """The mapped file that exports `_PyRuntime`: a program named python, or a libpython."""
    for key, segments in groups.items():
        path = root + os.fsdecode(key[2])
        known = INTERPRETER.search(key[2]) and any(s.executable for s in segments)
        if known and symbol_value(path, b"_PyRuntime") is not None:
            return path, segments
    return None


def python_from_memory(pid: int, start_ticks: int, found: Tuple[str, List[Mapping]]) -> Json:
    """An inside view (docs/probe-agent.md) of another process, with what memory can tell."""
    path, segments = found
    if not (3, 11) <= sys.version_info[:2] <= (3, 13) or sys.maxsize < 1 << 32:
        raise OSError("modules are read from memory by Python 3.11 to 3.13 only, not by %s" % sys.version)
    bias = load_bias(path, segments)
    memory = Memory(pid)
    try:
        version = memory.word(bias + (symbol_value(path, b"Py_Version") or 0))
        if version >> 16 != sys.hexversion >> 16:
            raise OSError("its Python %#x is of another version than the agent's" % version)
        return _view(pid, start_ticks, Objects(memory), bias + (symbol_value(path, b"_PyRuntime") or 0))
    finally:
        memory.close()


def _view(pid: int, start_ticks: int, objects: Objects, runtime: int) -> Json:
    offsets = own_offsets()
    interpreter = objects.memory.word(runtime + offsets.interpreter)
    loaded = objects.named(objects.memory.word(interpreter + offsets.modules))
    rows: List[Json] = []
    unread = 0
    path: List[str] = []
    for name, address in sorted(loaded.items())[:MAX_MODULES]:
        try:
            names = objects.named(objects.memory.word(address + offsets.module_dict))
            rows.append(_module(objects, name, names))
            if name == "sys":
                path = objects.texts(names["path"])
        except (OSError, KeyError):
            unread += 1
            rows.append({"name": clean(name), "file": None})
    nothing: Json = {"error": "read from memory: not looked at"}
    return {
        "schema": SCHEMA, "kind": "inside", "agent_version": AGENT_VERSION, "label": "memory", "pid": pid,
        "start_ticks": start_ticks, "modules": rows, "environ": nothing, "threads": {}, "link_map": nothing,
        "python": {"path": [clean(p) for p in path], "unread_modules": unread,
                   "extension_suffixes": _imp.extension_suffixes(),
                   "builtin_modules": sorted(sys.builtin_module_names)},
        "parameters": {}, "torch": {}, "jit": {}, "agent_effect": {},
    }  # fmt: skip


def _module(objects: Objects, name: str, names: Dict[str, int]) -> Json:
    row: Json = {"name": clean(name)}
    for key, variable in (("file", "__file__"), ("cached", "__cached__")):
        row[key] = _text(objects, names.get(variable))
    if "__path__" in names:
        row["search"] = _texts(objects, names["__path__"])
    return row


def _text(objects: Objects, address: Optional[int]) -> Any:
    """A string, or None where the value is something else."""
    try:
        return clean(objects.text(address)) if address else None
    except OSError:
        return None


def _texts(objects: Objects, address: int) -> List[str]:
    """Folders of a package; a namespace package's own kind of path gives none."""
    try:
        return [clean(p) for p in objects.texts(address)[:8]]
    except OSError:
        return []
