"""Why a module that is on disk was not loaded: often because something that it needs is not installed."""

from __future__ import annotations

import ast
from typing import Callable, Iterator, List, Optional, Set

from .base import read_file

MAX_DEPTH = 4
MAX_FILES = 200


def needed_imports(tree: ast.Module, name: str, is_package: bool) -> Iterator[str]:
    """Full names of what loading a module always imports: at top level, or in a `try` that raises again."""
    queue: List[ast.stmt] = list(tree.body)
    while queue:
        node = queue.pop(0)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = from_name(node, name, is_package)
            if base:
                yield base
        elif isinstance(node, (ast.With, ast.Try)) and (isinstance(node, ast.With) or raises_again(node)):
            queue[:0] = node.body


def raises_again(node: ast.Try) -> bool:
    """A `try` with a handler that may raise: what it imports is needed after all."""
    return any(isinstance(part, ast.Raise) for handler in node.handlers for part in ast.walk(handler))


def from_name(node: ast.ImportFrom, importer: str, is_package: bool) -> Optional[str]:
    """The module of a `from … import`, made absolute; None when it leaves the package."""
    if not node.level:
        return node.module
    parts = importer.split(".")
    keep = len(parts) - node.level + (1 if is_package else 0)
    return ".".join(parts[:keep] + ([node.module] if node.module else [])) if keep > 0 else None


def parse_source(path: str) -> Optional[ast.Module]:
    """Syntax tree of a source file; None for what cannot be read or parsed."""
    try:
        return ast.parse(read_file(path, 4 << 20))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class Causes:
    """Follows what a module needs until something is not installed."""

    def __init__(self, root: str, loaded: Set[str], locate: Callable[[str], Optional[str]]) -> None:
        self.root = root
        self.loaded = loaded
        self.locate = locate
        self.seen: Set[str] = set()

    def absent_below(self, name: str, path: str, depth: int = 0) -> Optional[str]:
        """First module that loading `name` needs and that is neither loaded nor on disk; None without one."""
        if not path.endswith(".py") or depth > MAX_DEPTH or path in self.seen or len(self.seen) > MAX_FILES:
            return None
        self.seen.add(path)
        tree = parse_source(self.root + path)
        if tree is None:
            return None
        for needed in needed_imports(tree, name, path.endswith("/__init__.py")):
            if needed in self.loaded:
                continue
            there = self.locate(needed)
            below = needed if there is None else self.absent_below(needed, there, depth + 1)
            if below is not None:
                return below
        return None
