"""The environment as the C library of this process has it; Python keeps a copy of its own."""

from __future__ import annotations

import os
from typing import List, Tuple

from .base import Json, environment_view

MAX_VARIABLES = 5000


def libc_environ() -> List[Tuple[str, str]]:
    """Names and values behind libc's `environ`: what getenv answers, whoever set it."""
    import ctypes

    table = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    found: List[Tuple[str, str]] = []
    for at in range(MAX_VARIABLES if table else 0):
        entry = table[at]
        if entry is None:
            break
        name, equals, value = entry.partition(b"=")
        if equals:
            found.append((os.fsdecode(name), os.fsdecode(value)))
    return found


def libc_view() -> List[Json]:
    """The same with values as a report may show them."""
    return environment_view(libc_environ())
