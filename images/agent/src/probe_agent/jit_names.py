"""Names of Inductor's C++ kernels: its Python wrapper calls them by name, the library only by a key."""

from __future__ import annotations

import re
from typing import Dict, List, Tuple

from .base import Json, read_file

WRAPPER = re.compile(r"^(\w+) = async_compile\.cpp\w*\(.*?r?'''(.*?)'''", re.MULTILINE | re.DOTALL)
MAX_READ = 4 << 20


def wrapped_kernels(source: str) -> List[Tuple[str, str]]:
    """(kernel name, C++ source) of each kernel that a generated module compiles."""
    return [(match.group(1), match.group(2).strip()) for match in WRAPPER.finditer(source)]


def source_of(path: str) -> str:
    """A generated source, empty when it cannot be read."""
    try:
        return read_file(path, MAX_READ).decode("utf-8", "replace")
    except OSError:
        return ""


def name_kernels(root: str, artifacts: List[Json]) -> None:
    """Add `kernels` to the rows of C++ sources and libraries whose kernel a wrapper names."""
    own = [row for row in artifacts if row["family"] in ("inductor", "vllm")]
    wrappers = [source_of(root + row["path"]) for row in own if row["path"].endswith(".py")]
    kernels = [pair for text in wrappers for pair in wrapped_kernels(text)][:2000]
    if not kernels:
        return
    names: Dict[str, List[str]] = {}
    for row in own:
        if row["path"].endswith(".cpp"):
            text = source_of(root + row["path"])
            found = sorted({name for name, source in kernels if source and source in text})
            names[row["path"][: -len(".cpp")]] = found
    for row in own:
        stem, dot, suffix = row["path"].rpartition(".")
        if dot and suffix in ("so", "cpp") and names.get(stem):
            row["kernels"] = names[stem]
