"""Is the byte code that the interpreter took for a module that of its source? Compiled, never executed.

Reading foreign byte code can crash an interpreter, so a child of ours does it, within a time limit.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from importlib.util import MAGIC_NUMBER
from typing import Any, Dict, List, Optional

from .base import Json, attempt, failure

SECONDS = 30.0
CHECK = r"""
import json, marshal, sys
def same(a, b, names):
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y, names) for x, y in zip(a, b))
    if isinstance(a, frozenset):
        return a == b
    if hasattr(a, "co_code"):
        equal = all(getattr(a, "co_" + n) == getattr(b, "co_" + n) for n in names)
        return equal and same(a.co_consts, b.co_consts, names)
    return repr(a) == repr(b)
SHAPE = "names varnames freevars cellvars flags argcount".split()
def said(a, b):
    if same(a, b, SHAPE + ["code"]):
        return "same"
    return "unsure" if same(a, b, SHAPE) else "differs"
for line in sys.stdin:
    number, source, compiled, path = json.loads(line)
    try:
        with open(source, "rb") as s, open(compiled, "rb") as c:
            wanted = compile(s.read(16 << 20), path, "exec", dont_inherit=True, optimize=0)
            found = marshal.loads(c.read(64 << 20)[16:])
        print(json.dumps([number, said(wanted, found)]), flush=True)
    except Exception:
        pass
"""


def taken(root: str, module: Json) -> Optional[List[str]]:
    """[source, byte code, path] where the interpreter takes the byte code for the source as it is now."""
    path, cached = module.get("file"), module.get("cached")
    if (
        not isinstance(path, str)
        or not isinstance(cached, str)
        or not path.endswith(".py")
        or ".opt-" in cached
    ):
        return None
    source, compiled = root + path, root + cached
    with open(compiled, "rb") as stream:
        head = stream.read(16)
    if len(head) != 16 or head[:4] != MAGIC_NUMBER:
        return None
    flags, moment, size = struct.unpack("<III", head[4:])
    s = os.stat(source)
    checked = flags & 3 == 3 or (flags == 0 and (moment, size) != (int(s.st_mtime) & 0xFFFFFFFF, s.st_size))
    return None if checked else [source, compiled, path]


def compare_bytecode(root: str, modules: List[Json], notes: List[str]) -> None:
    """`code` of each module whose byte code was taken: same, differs, unsure. A child that fails is a note.

    unsure: only the instructions differ, and no byte code names the release that made it (3.11.2 and 3.11.7
    make some code in two ways).
    """
    work: Dict[int, Any] = {n: attempt(taken, root, m) for n, m in enumerate(modules)}
    lines = [json.dumps([n, *w]) for n, w in work.items() if isinstance(w, list)]
    if not lines:
        return
    argv = [sys.executable, "-I", "-S", "-W", "ignore", "-c", CHECK]
    try:
        done = subprocess.run(
            argv, input="\n".join(lines).encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=SECONDS, check=False,
        )  # fmt: skip
        if done.returncode:
            notes.append("byte code: the check ended with %d" % done.returncode)
        output = done.stdout
    except subprocess.TimeoutExpired as error:
        notes.append("byte code: not all of it was compared in %d s" % SECONDS)
        output = error.stdout or b""
    except OSError as error:
        notes.append("byte code: " + failure(error))
        return
    for line in output.splitlines():
        answer = attempt(json.loads, line)
        if isinstance(answer, list):
            modules[answer[0]]["code"] = answer[1]
