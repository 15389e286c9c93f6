"""Functions that live in loaded modules: a digest of each one's code, and slots that hold foreign code.

Dictionaries are read past `__getattr__`; nothing is called, nothing is imported.
"""

from __future__ import annotations

import hashlib
import os
import sys
import types
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .base import Budget, Json, clean

MAX_FUNCTIONS = 300_000
MAX_SLOTS = 30_000
SCAN_SECONDS = 30.0
DEEP = 4
MAX_NESTED = 100
ITERABLE_COROUTINE = 0x100  # types.coroutine sets this flag on a copy of the code
Digests = Dict[int, Tuple[Any, str]]


class Slot(NamedTuple):
    """A name in a module or class, its value, the class that it is in."""

    attribute: str
    value: Any
    inside: Any


def raw_names(thing: Any) -> Dict[str, Any]:
    """Dictionary of a module or class, past `__getattr__` and metaclasses; a copy, maybe empty."""
    try:
        if issubclass(type(thing), type):
            return dict(type.__dict__["__dict__"].__get__(thing))
        found = object.__getattribute__(thing, "__dict__")
        return dict(found) if isinstance(found, dict) else {}
    except Exception:
        return {}


def plain_function(value: Any) -> Any:
    """The function behind a static method, class method or property; None for anything else."""
    kind = type(value)
    if kind in (staticmethod, classmethod):
        value = value.__func__
    elif kind is property:
        value = value.fget
    return value if type(value) is types.FunctionType else None


def code_digest(code: Any, memory: Digests, depth: int = 0) -> str:
    """`SHAPE.CODE`, two sha256 over what a code object does, without file name, own name and columns.

    SHAPE is over names and constants, which every release of one minor version makes alike; CODE over the
    instructions, which a release may make in another way (seen: 3.11.2 and 3.11.7).
    """
    if id(code) in memory:
        return memory[id(code)][1]
    flags = code.co_flags & ~ITERABLE_COROUTINE
    head = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_firstlineno, flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    shape = hashlib.sha256(repr((head, names)).encode())
    shape.update(constant(code.co_consts, memory, depth).encode("utf-8", "backslashreplace"))
    run = hashlib.sha256(repr((code.co_code, getattr(code, "co_exceptiontable", b""))).encode())
    for inner in code.co_consts:
        if type(inner) is types.CodeType and depth < MAX_NESTED:
            run.update(code_digest(inner, memory, depth + 1).partition(".")[2].encode())
    found = "%s.%s" % (shape.hexdigest()[:32], run.hexdigest()[:32])
    memory[id(code)] = (code, found)  # kept alive, so that its number stays its own
    return found


def shape_of(digest: str) -> str:
    """The part of a digest that every release of one minor version makes alike."""
    return digest.partition(".")[0]


def constant(value: Any, memory: Digests, depth: int) -> str:
    """A constant as text: equal text for equal constants of equal types."""
    if depth > MAX_NESTED:
        return "deep"
    if type(value) is types.CodeType:
        return "code:" + shape_of(code_digest(value, memory, depth + 1))
    if type(value) is tuple:
        return "(%s)" % ",".join(constant(v, memory, depth + 1) for v in value)
    if type(value) is frozenset:
        return "{%s}" % ",".join(sorted(constant(v, memory, depth + 1) for v in value))
    return "%s:%r" % (type(value).__name__, value)


def slots(name: str, module: Any) -> Iterator[Slot]:
    """Every name of a module and of the classes that say they are its own, nested ones too."""
    queue: List[Tuple[str, Any, int]] = [("", module, 0)]
    seen = set()
    while queue:
        prefix, holder, depth = queue.pop()
        for key, value in raw_names(holder).items():
            if type(key) is not str or (name == "sys" and key.endswith("hook")):  # those are there to be set
                continue
            yield Slot(prefix + key, value, holder if depth else None)
            own = issubclass(type(value), type) and raw_names(value).get("__module__") == name
            if own and depth < DEEP and id(value) not in seen:
                seen.add(id(value))
                queue.append((prefix + key + ".", value, depth + 1))


class Scan:
    """One look at all loaded modules: `live` digests by module, `foreign` slots."""

    def __init__(self) -> None:
        # a module under a second name (requests.packages.urllib3) is looked at under its own
        self.modules = {n: m for n, m in list(sys.modules.items()) if raw_names(m).get("__name__") == n}
        self.files = {n: self._file(m) for n, m in self.modules.items()}
        self.stdlib = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
        self.live: Dict[str, List[List[Any]]] = {}
        self.foreign: List[Json] = []
        self.functions = 0
        self.memory: Digests = {}
        self.errors = 0

    @staticmethod
    def _file(module: Any) -> Optional[str]:
        file = raw_names(module).get("__file__")
        return file if type(file) is str else None

    def run(self, budget: Budget) -> Json:
        """The part of the inside view: what was scanned, and whether all of it."""
        cut = False
        for name in sorted(self.modules):
            cut = budget.spent() or self.functions > MAX_FUNCTIONS
            if cut:
                break
            for slot in slots(name, self.modules[name]):
                try:
                    self._slot(name, slot)
                except Exception:  # an object may lie about itself
                    self.errors += 1
        return {
            "functions": self.functions, "cut_short": cut or len(self.foreign) >= MAX_SLOTS,
            "errors": self.errors, "live": self.live, "foreign": self.foreign,
        }  # fmt: skip

    def _slot(self, name: str, slot: Slot) -> None:
        function = plain_function(slot.value)
        if function is None:
            if issubclass(type(slot.value), type) and slot.inside is None:
                self._class(name, slot)
            return
        self.functions += 1
        code, file = function.__code__, self.files[name]
        if code.co_filename == file:
            row = [clean(slot.attribute, 200), code.co_firstlineno, code_digest(code, self.memory)]
            self.live.setdefault(name, []).append(row)
        elif self._is_foreign(name, code.co_filename) and not self._generated(slot, code.co_filename):
            where = "%s.%s" % (function.__module__, function.__qualname__)
            self._add(name, slot, code.co_filename, code.co_firstlineno, where)

    def _class(self, name: str, slot: Slot) -> None:
        """A class under a name of the module that says it is of another module."""
        home = raw_names(slot.value).get("__module__")
        file = self.files.get(home) if type(home) is str and home != name else None
        if file and self._is_foreign(name, file):
            label = "%s.%s" % (home, type.__dict__["__qualname__"].__get__(slot.value))
            self._add(name, slot, file, 0, label)

    def _add(self, name: str, slot: Slot, file: str, line: int, where: str) -> None:
        if len(self.foreign) < MAX_SLOTS:
            inherited = slot.inside is not None and self._inherits(slot)
            row: Json = {"module": clean(name, 300), "attribute": clean(slot.attribute, 300)}
            self.foreign.append(
                dict(row, file=clean(file), line=line, name=clean(where, 300), inherited=inherited)
            )

    @staticmethod
    def _inherits(slot: Slot) -> bool:
        """Whether a class above has the attribute, so that this slot covers it."""
        last = slot.attribute.rpartition(".")[2]
        above = type.__dict__["__mro__"].__get__(slot.inside)[1:]
        return any(last in raw_names(c) for c in above if c is not object)

    def _is_foreign(self, name: str, file: str) -> bool:
        """Code that neither lies in the module's own top package nor in the standard library."""
        if file.startswith("<frozen ") or (file.startswith(self.stdlib) and not _in_site(file)):
            return False
        top = self.files.get(name.partition(".")[0]) or self.files[name] or ""
        folder, _, last = top.rpartition("/")
        return not (file.startswith(folder + "/") if last.startswith("__init__.") else file == top)

    @staticmethod
    def _generated(slot: Slot, file: str) -> bool:
        """Methods that the standard library's class makers write."""
        made = ("__dataclass_fields__", "_fields", "__attrs_attrs__", "_member_map_")
        last = slot.attribute.rpartition(".")[2]
        names = raw_names(slot.inside) if slot.inside is not None else {}
        return file.startswith("<") and last.startswith("__") and any(n in names for n in made)


def _in_site(file: str) -> bool:
    return "/site-packages/" in file or "/dist-packages/" in file


def live_view() -> Json:
    """`functions` seen, `live` {module: [[name, line, digest]]}, `foreign` slots, `cut_short`, `errors`."""
    return Scan().run(Budget(SCAN_SECONDS))
