"""Import errors that a program swallowed, found from the disk and the list of loaded modules, without a log.

A module that was loaded ran its module-level `try: import x`. When x is there but is not loaded, that import
failed. An extension module whose libraries cannot be found fails whenever it is tried.
"""

from __future__ import annotations

import ast
import os
import re
import textwrap
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from .base import Budget, Json, clean, failure, read_file, resolve_in_root
from .import_causes import Causes, parse_source
from .ldso import Linker

CAUGHT = re.compile(r"^[ \t]*except\b(?P<what>[^:]*):")
BROAD = re.compile(r"ImportError|ModuleNotFoundError|\bException\b|BaseException")
OPENING = re.compile(r"^([ \t]*)(try:|with (?:contextlib\.)?suppress\(([^)]*)\):)")
NOT_ALWAYS = re.compile(r"^\s*(if|elif|else|for|while|except|match|case|finally)\b")
FUNCTION = re.compile(r"^\s*(async\s+def|def|lambda)\b")
MAX_SOURCE = 4 << 20


class Guarded(NamedTuple):
    """One import inside a block that swallows its failure. `where`: module, conditional or function."""

    module: str
    names: Tuple[str, ...]
    level: int
    line: int
    where: str
    block: int


def indent_of(line: str) -> int:
    """Width of the leading white space, tabs to eight."""
    return len(line.expandtabs()) - len(line.expandtabs().lstrip())


def block_after(lines: List[str], at: int) -> Tuple[List[str], int]:
    """The lines of the block opened by line `at`, and the number of the line after it."""
    own = indent_of(lines[at])
    end = at + 1
    while end < len(lines) and (
        not lines[end].strip() or indent_of(lines[end]) > own or lines[end].lstrip()[:1] == "#"
    ):
        end += 1
    return lines[at + 1 : end], end


def place_of(lines: List[str], at: int) -> str:
    """Does loading the module reach line `at`? module: always; conditional; function: when called."""
    where = "module"
    own = indent_of(lines[at])
    for line in reversed(lines[:at]):
        if not own:
            break
        if line.strip() and indent_of(line) < own and not line.lstrip().startswith(("#", ")", "]", "}")):
            own = indent_of(line)
            if FUNCTION.match(line):
                return "function"
            where = "conditional" if NOT_ALWAYS.match(line) else where
    return where


def swallows(lines: List[str], end: int, opening: "re.Match[str]") -> bool:
    """True when the block's handlers (or its suppress) catch an ImportError."""
    if opening.group(3) is not None:
        return bool(BROAD.search(opening.group(3)))
    own = indent_of(opening.string)
    while end < len(lines) and indent_of(lines[end]) == own:
        match = CAUGHT.match(lines[end])
        if not match:
            return False
        if not match.group("what").strip() or BROAD.search(match.group("what")):
            return True
        end = block_after(lines, end)[1]
    return False


def guarded_imports(source: str) -> List[Guarded]:
    """Every import directly inside a block that swallows its failure, up to a statement that may branch."""
    lines = source.splitlines()
    found: List[Guarded] = []
    for at, line in enumerate(lines):
        opening = OPENING.match(line)
        if not opening:
            continue
        body, end = block_after(lines, at)
        if any("import" in b for b in body) and swallows(lines, end, opening):
            found += _parse_block(body, at, place_of(lines, at))
    return found


def _parse_block(body: List[str], at: int, where: str) -> Iterator[Guarded]:
    try:
        tree = ast.parse(textwrap.dedent("\n".join(body)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Guarded(alias.name, (), 0, at + 1 + node.lineno, where, at)
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            yield Guarded(node.module or "", names, node.level, at + 1 + node.lineno, where, at)
        elif isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Raise, ast.Return)):
            return


def absolute_name(guarded: Guarded, importer: str, is_package: bool) -> Optional[str]:
    """The full name of what is imported; None for a relative import that leaves the package."""
    if not guarded.level:
        return guarded.module
    parts = importer.split(".")
    keep = len(parts) - guarded.level + (1 if is_package else 0)
    if keep <= 0:
        return None
    return ".".join(parts[:keep] + ([guarded.module] if guarded.module else []))


class Disk:
    """Where modules lie on the search path of one process, found without importing anything."""

    def __init__(self, root: str, inside: Json) -> None:
        python = inside["python"]
        self.root = root
        self.path = [p for p in python["path"] if p.startswith("/")]
        suffixes = python.get("extension_suffixes")
        self.suffixes = suffixes if isinstance(suffixes, list) else [".abi3.so", ".so"]
        self.search = {m["name"]: m.get("search") for m in inside["modules"]}
        self._folders: Dict[str, Set[str]] = {}

    def names(self, folder: str) -> Set[str]:
        """Names in a folder, read once; empty when it cannot be read."""
        if folder not in self._folders:
            real = resolve_in_root(self.root, folder)
            try:
                self._folders[folder] = set(os.listdir(self.root + real)[:100_000]) if real else set()
            except OSError:
                self._folders[folder] = set()
        return self._folders[folder]

    def locate(self, name: str) -> Optional[str]:
        """File that would be imported for a full name; None without one (a bare namespace included)."""
        parts = name.split(".")
        folders = self.path
        found: Optional[str] = None
        for depth, part in enumerate(parts):
            known = self.search.get(".".join(parts[:depth])) if depth else None
            if depth and known:
                folders = known
            elif found is not None:
                folders = [os.path.dirname(found)] if found.endswith("/__init__.py") else []
            found, folders = self._one(part, folders)
        return found

    def _one(self, part: str, folders: List[str]) -> Tuple[Optional[str], List[str]]:
        portions = []
        for folder in folders:
            names = self.names(folder)
            if part in names and "__init__.py" in self.names(folder + "/" + part):
                return "%s/%s/__init__.py" % (folder, part), []
            for suffix in [*self.suffixes, ".py"]:
                if part + suffix in names:
                    return "%s/%s%s" % (folder, part, suffix), []
            if part in names and self.names(folder + "/" + part):
                portions.append(folder + "/" + part)
        return None, portions


def module_of(path: str, site: str, suffixes: List[str]) -> Optional[str]:
    """Import name of an extension module of a wheel; None for a library that is no module."""
    if not path.startswith(site + "/"):
        return None
    name = path[len(site) + 1 :]
    for suffix in suffixes:
        if name.endswith(suffix):
            parts = name[: -len(suffix)].split("/")
            good = all(p.isidentifier() for p in parts) and not parts[-1].startswith("lib")
            return ".".join(parts) if good else None
    return None


def unloadable(
    extensions: List[Tuple[str, str, int]], mapped: Set[str], linker: Linker, suffixes: List[str]
) -> List[Json]:
    """Libraries of used wheels, (path, site, distribution), that cannot be loaded: what they lack."""
    found: List[Json] = []
    for path, site, index in extensions:
        if path in mapped:
            continue
        broken = linker.missing(path)
        if broken:
            module = module_of(path, site, suffixes)
            found.append(
                {"path": clean(path), "module": module, "distribution": index, "missing": broken[:20]}
            )
    return found


class Swallowed:
    """Scan of one process: guarded imports in loaded sources against what is loaded and what is there."""

    def __init__(self, root: str, inside: Json, broken: List[Json], seconds: float = 40.0) -> None:
        self.root = root
        self.modules = inside["modules"]
        self.loaded = {m["name"] for m in self.modules} | set(inside["python"]["builtin_modules"])
        self.disk = Disk(root, inside)
        self.broken = {b["module"]: b for b in broken if b["module"]}
        self.budget = Budget(seconds)
        self._import_lines: Dict[str, Set[int]] = {}
        self.report: Json = {"broken": [], "absent": [], "scanned": 0, "not_scanned": 0, "errors": []}

    def run(self) -> Json:
        """`broken`: there and failed; `absent`: not installed (a note); and how much was looked at."""
        for module in self.modules:
            path = module.get("file")
            if not path or not path.endswith(".py"):
                continue
            if self.budget.spent():
                self.report["not_scanned"] += 1
                continue
            try:
                source = read_file(self.root + path, MAX_SOURCE).decode("utf-8", "replace")
            except OSError as error:
                self.report["not_scanned"] += 1
                self.report["errors"] = (self.report["errors"] + [failure(error)])[:50]
                continue
            self.report["scanned"] += 1
            if "import" in source and ("try:" in source or "suppress(" in source):
                self._module(module, source)
        return self.report

    def _module(self, module: Json, source: str) -> None:
        stopped: Set[int] = set()
        for guarded in guarded_imports(source):
            if guarded.block not in stopped and not self._holds(module, guarded):
                stopped.add(guarded.block)

    def _holds(self, module: Json, guarded: Guarded) -> bool:
        """True when the import worked as far as can be told; else it is reported and its block ends here."""
        name = absolute_name(guarded, module["name"], bool(module.get("search")))
        if not name:
            return True
        leaves = [name + "." + leaf for leaf in guarded.names]
        targets = [name] + [n for n in leaves if n in self.broken or self._extension(n)]
        for target in targets:
            if target not in self.loaded and not self._judge(module, guarded, target):
                return False
        return True

    def _extension(self, name: str) -> bool:
        """A name that a module does not define itself, since a compiled module of that name lies in it."""
        return name not in self.loaded and (self.disk.locate(name) or "").endswith(".so")

    def _judge(self, module: Json, guarded: Guarded, target: str) -> bool:
        row = {"module": target, "importer": module["name"], "file": module["file"], "line": guarded.line}
        row["where"] = guarded.where
        lacking = next(
            (self.broken[p] for p in _prefixes(target) if p in self.broken and p not in self.loaded), None
        )
        if lacking is not None and not self._real(module["file"], guarded.line):
            return True
        if lacking is not None:
            self.report["broken"].append(dict(row, path=lacking["path"], missing=lacking["missing"]))
            return False
        if guarded.where != "module":
            return True
        there = self.disk.locate(target)
        below = target if there is None else self._cause(target, there)
        kind = "broken" if below is None else "absent"
        if len(self.report[kind]) < 2000 and self._real(module["file"], guarded.line):
            extra = {"path": clean(there), "missing": []} if below is None else {"because": clean(below)}
            self.report[kind].append(dict(row, **extra))
        return False

    def _cause(self, target: str, path: str) -> Optional[str]:
        return Causes(self.root, self.loaded, self.disk.locate).absent_below(target, path)

    def _real(self, path: str, line: int) -> bool:
        """True when an import statement really stands there (and no text that looks like one)."""
        if path not in self._import_lines:
            tree = parse_source(self.root + path)
            nodes = [n for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))] if tree else []
            self._import_lines[path] = {n.lineno for n in nodes}
        return line in self._import_lines[path]


def _prefixes(name: str) -> List[str]:
    parts = name.split(".")
    return [".".join(parts[: i + 1]) for i in range(len(parts))]
