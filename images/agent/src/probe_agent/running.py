"""Live functions against compiled source, and slots with foreign code against what the source says of them.

Sources are compiled, never executed, in a child within a time limit: hostile source may crash a compiler.
"""

from __future__ import annotations

import ast
import json
import os
import select
import signal
import sys
import types
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from .base import Budget, Json, attempt, clean, read_file
from .live_code import Digests, code_digest, shape_of

COMPILE_SECONDS = 300.0
MAX_REPORTED = 100
RELEASE = sys.version.split(" ")[0]
Fact = Tuple[str, Optional[str]]


def compiled_digests(code: types.CodeType) -> Set[Tuple[int, str]]:
    """(first line, digest) of every code object below a compiled module."""
    memory: Digests = {}
    found: Set[Tuple[int, str]] = set()
    queue = [code]
    while queue:
        one = queue.pop()
        found.add((one.co_firstlineno, code_digest(one, memory)))
        queue += [c for c in one.co_consts if type(c) is types.CodeType]
    return found


def bodies(nodes: List[Any]) -> Iterator[Any]:
    """Statements of a body, under if, try, with and loops too, but not in functions and classes."""
    for node in nodes:
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for field in ("body", "orelse", "finalbody", "handlers"):
            yield from bodies(getattr(node, field, []) or [])


class Source:
    """What a module's source says about its names."""

    def __init__(self, module: str, package: bool, tree: ast.Module) -> None:
        self.module = module
        self.package = package
        self.tree = tree
        self.globals = {n for node in ast.walk(tree) if isinstance(node, ast.Global) for n in node.names}
        self.patched = {
            "%s.%s" % (t.value.id, t.attr)
            for node in bodies(tree.body)
            for t in getattr(node, "targets", [])
            if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name)
        }

    def fact(self, attribute: str) -> Fact:
        """How the source makes a name: def, import (from where), other (decorated, assigned), absent."""
        if attribute in self.patched or attribute in self.globals:
            return "other", None
        nodes: List[Any] = self.tree.body
        parts = attribute.split(".")
        for part in parts[:-1]:
            found = [n for n in bodies(nodes) if isinstance(n, ast.ClassDef) and n.name == part]
            if not found or any(n.decorator_list for n in found):
                return "other", None
            nodes = [n for one in found for n in one.body]
        facts = [f for node in bodies(nodes) for f in self._facts(node, parts[-1])]
        origins = " ".join(sorted({str(f[1]) for f in facts if f[0] == "import"}))
        kinds = {f[0] for f in facts}
        if "other" in kinds or not facts:
            return ("other" if facts else "absent"), None
        return ("import", origins) if origins else ("def", None)

    def _facts(self, node: Any, name: str) -> Iterator[Fact]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name:
            yield ("other", None) if node.decorator_list else ("def", None)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    yield "import", "%s:%s" % (self._absolute(node), alias.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.With, ast.Import)):
            made = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
            made += [a.asname or a.name for a in getattr(node, "names", [])]
            if name in made:
                yield "other", None

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.module.split(".")
        kept = parts[: len(parts) - node.level + (1 if self.package else 0)]
        return ".".join([*kept, *([node.module] if node.module else [])])


def judge_source(root: str, row: Json) -> Json:
    """One module, in the child: live functions that its source does not make, facts about foreign slots."""
    source = read_file(root + row["file"])
    answer: Json = {"name": row["name"], "facts": {}, "differs": []}
    if row["attributes"]:
        text = source.decode("utf-8", "replace")
        wanted = [a for a in row["attributes"] if a.rpartition(".")[2] in text]
        if wanted:
            package = row["file"].rpartition("/")[2] == "__init__.py"
            facts = Source(row["name"], package, ast.parse(source))
            answer["facts"] = {a: facts.fact(a) for a in wanted}
    if row["live"]:
        code = compile(source, row["file"], "exec", dont_inherit=True, optimize=row["optimize"])
        known = compiled_digests(code)
        other = [one for one in row["live"] if (one[1], one[2]) not in known]
        shapes = {(line, shape_of(digest)) for line, digest in known} if row.get("other_release") else set()
        differs = [[name, line] for name, line, digest in other if (line, shape_of(digest)) not in shapes]
        answer["differs"] = differs[:MAX_REPORTED]
        answer["unsure"] = len(other) - len(differs)
    return answer


def compile_in_child(root: str, rows: List[Json], seconds: float) -> Tuple[Dict[str, Json], Optional[str]]:
    """Answers by module, and why some are lacking. The child is killed when its time is over."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _answer(root, rows, writer)
    os.close(writer)
    with os.fdopen(reader, "rb", buffering=0) as stream:
        data, whole = _read(stream, Budget(seconds))
    if not whole:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    answers: Dict[str, Json] = {}
    for line in data.splitlines():
        answer = attempt(json.loads, line)
        if "name" in answer:
            answers[answer["name"]] = answer
    if not whole:
        return answers, "not all sources were compiled in %d s" % seconds
    return answers, "the compiling child ended with status %d" % status if status else None


def _answer(root: str, rows: List[Json], writer: int) -> None:
    """The child: never returns."""
    status = 1
    try:
        sys.setrecursionlimit(2000)
        with os.fdopen(writer, "wb") as stream:
            for row in rows:
                answer = attempt(judge_source, root, row)
                answer["name"] = row["name"]
                stream.write(json.dumps(answer).encode() + b"\n")
        status = 0
    finally:
        os._exit(status)


def _read(stream: Any, budget: Budget) -> Tuple[bytes, bool]:
    """What the child wrote, and whether it came to its end in time."""
    parts: List[bytes] = []
    while True:
        ready, _, _ = select.select([stream], [], [], budget.left())
        if not ready:
            return b"".join(parts), False
        part = stream.read(1 << 20)
        if not part:
            return b"".join(parts), True
        parts.append(part)


class Running:
    """Judges the raw scan of one inside view; afterwards the scan is dropped from the report."""

    def __init__(self, root: str, view: Json) -> None:
        self.root = root
        self.view = view
        code = view.pop("code", None)
        self.code: Json = code if isinstance(code, dict) else {"error": "no scan"}
        self.modules = {m["name"]: m for m in view["modules"]}
        self.asked: Set[str] = set()
        self.foreign: List[Json] = [r for r in self._list("foreign") if isinstance(r, dict)]

    def _list(self, key: str) -> List[Any]:
        found = self.code.get(key)
        return found if isinstance(found, list) else []

    def files(self) -> Set[str]:
        """Files that foreign code comes from: an owner is asked for each."""
        return {r["file"] for r in self.foreign if str(r.get("file")).startswith("/")}

    def run(self) -> Json:
        """`running` of the view: counts, `patched` slots, and why something was not compared."""
        live = self.code.get("live")
        version = str(self.view["python"].get("version")).split(" ")[0]
        own = ".".join(str(n) for n in sys.version_info[:2])  # another minor version has other instructions
        answers: Dict[str, Json] = {}
        reason = self.code.get("error")
        if reason is None and not version.startswith(own + "."):
            reason = "its Python is %s, the agent's %s" % (clean(version, 40), own)
        if reason is None and isinstance(live, dict):
            answers, reason = compile_in_child(self.root, self._rows(live, version), COMPILE_SECONDS)
        compared = sum(self._differs(answers.get(n, {}), n, len(rows)) for n, rows in (live or {}).items())
        unsure = sum(a.get("unsure", 0) for a in answers.values())
        if reason is None:
            reason = self._unread(answers, live or {})
        if unsure and reason is None:
            said = "%d functions have other instructions; Python %s compiled them, the agent's is %s"
            reason = said % (unsure, clean(version, 40), RELEASE)
        return {
            "functions": self.code.get("functions", 0), "compared": compared - unsure, "reason": reason,
            "cut_short": bool(self.code.get("cut_short")), "foreign": len(self.foreign),
            "patched": self._patched(answers)[:1000],
        }  # fmt: skip

    def _rows(self, live: Json, version: str) -> List[Json]:
        slots: Dict[str, List[str]] = {}
        for slot in self.foreign:
            slots.setdefault(slot["module"], []).append(slot["attribute"])
        flags = self.view["python"].get("flags") or {}
        rows = []
        for name in sorted({*live, *slots}):
            file = self.modules.get(name, {}).get("file")
            if isinstance(file, str) and file.startswith("/") and file.endswith(".py"):
                row: Json = {"name": name, "file": file, "live": live.get(name, [])}
                row.update(attributes=slots.get(name, []), optimize=int(flags.get("optimize", 0)))
                row["other_release"] = version != RELEASE
                rows.append(row)
        self.asked = {row["name"] for row in rows}
        return rows

    def _unread(self, answers: Dict[str, Json], live: Json) -> Optional[str]:
        """Modules with functions that live, whose source was asked for and gave no answer."""
        missing = sorted(n for n in live if n in self.asked and "differs" not in answers.get(n, {}))
        said = "%d sources were not compiled: %s"
        return said % (len(missing), clean(missing[0], 200)) if missing else None

    def _differs(self, answer: Json, name: str, count: int) -> int:
        if "differs" not in answer:
            return 0
        if answer["differs"]:
            self.modules[name]["live_differs"] = [
                "%s:%s" % (clean(n, 200), line) for n, line in answer["differs"]
            ]
        return count

    def _patched(self, answers: Dict[str, Json]) -> List[Json]:
        places = {(r["module"], r["attribute"]): (r["file"], r["line"]) for r in self.foreign}
        found = []
        for row in self.foreign:
            facts = answers.get(row["module"], {}).get("facts", {})
            kind, origin = facts.get(row["attribute"], ("absent", ""))
            native = self._native(row["module"])
            replaced = kind == "def" or (
                kind == "import" and all(self._replaced(row, one, places) for one in str(origin).split(" "))
            )
            covers = row["inherited"] and not row["file"].startswith("<")  # libraries generate methods
            if replaced or (kind == "absent" and row["line"] and (covers or native)):
                found.append(dict(row, said=kind))
        return found

    def _native(self, name: str) -> bool:
        """Built in, or a library: no Python function is its own."""
        file = self.modules.get(name, {}).get("file")
        return str(file).endswith(".so") or name in self.view["python"].get("builtin_modules", [])

    def _replaced(self, row: Json, origin: str, places: Dict[Tuple[str, str], Any]) -> bool:
        """An imported name whose value is neither of the package it is imported from nor what lies there."""
        module, _, name = origin.partition(":")
        top = self.modules.get(module.partition(".")[0], {}).get("file")
        if module not in self.modules or not isinstance(top, str):
            return False
        folder = top.rpartition("/")[0] + "/" if top.endswith("/__init__.py") else top
        at_home = places.get((module, name))
        return not row["file"].startswith(folder) and at_home != (row["file"], row["line"])
