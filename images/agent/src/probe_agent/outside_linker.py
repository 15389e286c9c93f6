"""How many objects the dynamic linker of another process added and removed, read from that process's memory.

The place of the counter in `_rtld_global` is private to glibc: it is found in the agent's own linker, so
it is known only where the other process runs a linker of equal bytes.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Dict, List, Optional

from .base import Json
from .ledger import link_map
from .maps import FileKey, Mapping, by_file, read_maps
from .memory import Memory, load_bias, same_bytes, symbol_value

LINKER_NAME = re.compile(rb"/(ld-linux[^/]*\.so\.[0-9]+|ld-[0-9.]+\.so)$")
GLOBAL_SPAN = 0x2000
LINK_NAMESPACES = 16


class Found:
    """The linker of one process: its file as we reach it, and the address of `_rtld_global`."""

    def __init__(self, root: str, groups: Dict[FileKey, List[Mapping]]) -> None:
        key = next((k for k in groups if LINKER_NAME.search(k[2])), None)
        if key is None:
            raise OSError("no glibc linker is mapped")
        self.path = root + os.fsdecode(key[2])
        value = symbol_value(self.path, b"_rtld_global")
        if value is None:
            raise OSError("the linker exports no _rtld_global")
        self.address = load_bias(self.path, groups[key]) + value


def counter_offset(own: Found) -> int:
    """Where `_rtld_global` keeps the number of objects ever added: found by making our own number grow."""
    memory = Memory(os.getpid())
    try:
        candidates: Optional[List[int]] = None
        for name in (None, "libanl.so.1", "libnss_files.so.2", "libBrokenLocale.so.1"):
            _load(name)
            adds = link_map()["adds"]
            words = memory.words(own.address, GLOBAL_SPAN)
            places = [i for i, w in enumerate(words) if w == adds and i > LINK_NAMESPACES]
            candidates = places if candidates is None else [i for i in candidates if i in places]
    finally:
        memory.close()
    if candidates is None or len(candidates) != 1:
        raise OSError("the linker's counter was not found")
    return candidates[0] * 8


def _load(name: Optional[str]) -> None:
    """Load a library of libc6, so that the counter moves; one that is not there moves nothing."""
    import ctypes

    with contextlib.suppress(OSError):
        ctypes.CDLL(name)


def linker_view(pid: int, root: str, groups: Dict[FileKey, List[Mapping]]) -> Json:
    """`{"adds", "subs", "count"}` of another process. OSError when its linker is another one than ours."""
    own, theirs = Found("", by_file(read_maps(os.getpid())[0])), Found(root, groups)
    if not same_bytes(own.path, theirs.path):
        raise OSError("its linker is another one than the agent's")
    offset = counter_offset(own)
    memory = Memory(pid)
    try:
        adds = memory.word(theirs.address + offset)
        stride = _stride(os.getpid(), own)
        loaded = sum(_count(memory, theirs.address + n * stride) for n in range(LINK_NAMESPACES))
    finally:
        memory.close()
    if not loaded <= adds <= 1 << 32:
        raise OSError("the linker's counters make no sense: %d of %d" % (loaded, adds))
    return {"adds": adds, "subs": adds - loaded, "count": loaded}


def _count(memory: Memory, namespace: int) -> int:
    """Objects of a namespace: its second word, 32 bits of it."""
    return memory.word(namespace + 8) & 0xFFFFFFFF if memory.word(namespace) else 0


def _stride(pid: int, own: Found) -> int:
    """Size of a namespace's record: `_dl_nns` (1 here) lies after sixteen of them."""
    memory = Memory(pid)
    try:
        words = memory.words(own.address, GLOBAL_SPAN)
    finally:
        memory.close()
    place = next(
        (i for i in range(LINK_NAMESPACES, len(words)) if words[i] == 1 and i % LINK_NAMESPACES == 0), 0
    )
    if not place:
        raise OSError("the linker's namespaces were not found")
    return place // LINK_NAMESPACES * 8
