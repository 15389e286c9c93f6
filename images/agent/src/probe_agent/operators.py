"""Operators of torch that Python code registered again, as torch's own dispatcher tells."""

from __future__ import annotations

import re
import sys
from typing import Any, Dict, List

from .base import Json, clean
from .live_code import raw_names

MAX_OPERATORS = 50_000
MAX_OVERRIDES = 2000
KERNEL = re.compile(r"(\w+)(?:\[alias\])?( \(inactive\))?: (?:registered at )?(.+?):(\d+) :: ")
DEFINED = re.compile(r"^debug: (?:registered at )?(.+?):(\d+)$", re.M)
COMPILED = (".cpp", ".cc", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".mm", ".c")


def operators_view() -> Json:
    """`overrides`: kernels that Python registered for operators that compiled code defines.

    torch's own kernels that only compute shapes (Meta) are counted in `torch_meta`. Nothing is asked where
    torch is not loaded.
    """
    names = raw_names(sys.modules.get("torch._C"))
    every, dump = names.get("_dispatch_get_all_op_names"), names.get("_dispatch_dump")
    view: Json = {"torch_loaded": "torch" in sys.modules, "operators": 0, "torch_meta": 0, "overrides": []}
    if every is None or dump is None:
        return dict(view, read=False)
    home = raw_names(sys.modules.get("torch")).get("__file__")
    folder = home.rpartition("/")[0] + "/" if type(home) is str else "\0"
    listed = list(every())[:MAX_OPERATORS]
    for operator in listed:
        for row in python_kernels(operator, dump(operator)):
            if row["key"] == "Meta" and row["file"].startswith(folder):
                view["torch_meta"] += 1
            elif len(view["overrides"]) < MAX_OVERRIDES:
                view["overrides"].append(row)
    return dict(view, read=True, operators=len(listed))


def python_kernels(operator: str, dump: str) -> List[Json]:
    """Kernels of one operator that no compiled file registered, with those that they put out of use."""
    defined = DEFINED.search(dump)
    compiled = defined is None or defined.group(1).endswith(COMPILED)
    active: List[Any] = []
    inactive: Dict[str, str] = {}
    for line in dump.splitlines()[:1000]:
        found = KERNEL.match(line)
        if found and found.group(2):
            inactive.setdefault(found.group(1), "%s:%s" % (found.group(3), found.group(4)))
        elif found and not found.group(3).endswith(COMPILED):
            active.append(found)
    return [
        {
            "operator": clean(operator, 300), "key": key, "file": clean(file), "line": int(line),
            "inactive": clean(inactive[key]) if key in inactive else None,
        }
        for key, _, file, line in (found.groups() for found in active)
        if compiled or key in inactive
    ]  # fmt: skip
