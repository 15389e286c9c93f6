"""What the demo forge holds: one folder a repository, described by `pull.toml`."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edits import Tree, apply, read_files
from sources import Sdist, fetch, read_sdist

PULL_REQUESTS = Path(__file__).resolve().parent / "pull_requests"
SETS: dict[str, tuple[str, ...]] = {
    "cpu": ("vllm", "megatron", "verl"),
    "mini": ("mini-alpha", "mini-beta", "mini-gamma"),
}
SETS["all"] = (*SETS["cpu"], *SETS["mini"])
"""Order matters: a later one may name the heads of earlier ones as `{{head:NAME}}`."""


@dataclass(frozen=True)
class Change:
    """One commit of a pull request: its message and the folder that says what it changes."""

    message: str
    folder: Path


@dataclass(frozen=True)
class Demo:
    """One repository with its pull request."""

    key: str
    folder: Path
    repository: dict[str, Any]
    pull_request: dict[str, Any]
    commits: tuple[Change, ...]

    @property
    def path(self) -> str:
        """Path of the bare repository below the forge's root."""
        return f"{self.repository['owner']}/{self.repository['name']}.git"

    def inputs_digest(self, heads: dict[str, str]) -> str:
        """sha256 over everything that decides the repository's commits: an unchanged one is not rebuilt."""
        seen = hashlib.sha256(repr(sorted(heads.items())).encode())
        for module in ("edits.py", "catalogue.py", "repository.py"):
            seen.update((Path(__file__).parent / module).read_bytes())
        for path, entry in sorted(read_files(self.folder).items()):
            seen.update(f"{path}\0{entry.mode}\0{len(entry.data)}\0".encode() + entry.data)
        return seen.hexdigest()

    def base_tree(self, cache: Path) -> Tree:
        """The tree of the base commit: the source distribution as unpacked, or our own `base/`."""
        sdist = self.repository.get("sdist")
        if sdist is None:
            return read_files(self.folder / "base")
        return read_sdist(fetch(Sdist(**sdist), cache))

    def trees(self, base: Tree, heads: dict[str, str]) -> list[Tree]:
        """The tree after each commit of the pull request. Raises EditError."""
        values = {f"head:{name}": head for name, head in heads.items()}
        trees, tree = [], base
        for change in self.commits:
            tree = apply(tree, change.folder, values)
            trees.append(tree)
        return trees


def load(key: str) -> Demo:
    """Read one folder of the catalogue."""
    folder = PULL_REQUESTS / key
    table = tomllib.loads((folder / "pull.toml").read_text(encoding="utf-8"))
    commits = tuple(Change(c["message"], folder / c["change"]) for c in table["commit"])
    return Demo(key, folder, table["repository"], table["pull_request"], commits)
