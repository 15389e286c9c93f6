"""What the dynamic linker of this process knows: objects now, and how many it ever added and removed."""

from __future__ import annotations

import os
from typing import Any, List

from .base import Json, text


def link_map() -> Json:
    """Objects (links followed), adds and subs of dl_iterate_phdr; subs > 0: code is gone, maybe unseen."""
    import ctypes

    class Info(ctypes.Structure):
        _fields_ = [
            ("addr", ctypes.c_void_p),
            ("name", ctypes.c_char_p),
            ("phdr", ctypes.c_void_p),
            ("phnum", ctypes.c_uint16),
            ("adds", ctypes.c_ulonglong),
            ("subs", ctypes.c_ulonglong),
        ]

    names: List[str] = []
    counters = {"adds": 0, "subs": 0}

    def visit(info: Any, size: int, _: Any) -> int:
        name = info.contents.name or b""
        names.append(text(os.path.realpath(name) if name.startswith(b"/") else name))
        if size >= ctypes.sizeof(Info):
            counters.update(adds=info.contents.adds, subs=info.contents.subs)
        return 0

    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Info), ctypes.c_size_t, ctypes.c_void_p)(visit)
    ctypes.CDLL(None).dl_iterate_phdr(callback, None)
    return {
        "objects": names[:10_000],
        "links_followed": True,
        "count": len(names),
        "adds": counters["adds"],
        "subs": counters["subs"],
    }
