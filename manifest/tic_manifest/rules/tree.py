"""Layers laid over each other as runtimes do it, and what is ambiguous about them.

Source: image-spec, layer.md; rules/image-verify.md C10.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tic_manifest.model.files import EffectiveTree, FileEntry, FileKind, LayerTree
from tic_manifest.model.verdict import Finding, Status, finding

MAX_LINKS = 40
MAX_FINDINGS = 100
MAX_PROBLEMS = 20_000
MAX_FOLDERS = 50_000


def lay_over(layers: Sequence[LayerTree]) -> EffectiveTree:
    """The tree that a process sees, the lowest layer first. Time grows with the number of entries."""
    over = _Overlay()
    for layer in layers:
        over.add(layer)
    return over.tree


def resolve(tree: EffectiveTree, path: str) -> str | None:
    """The path with every link followed inside the root; None for a loop or a link out of the root."""
    rest, links = path.split("/"), 0
    done: list[str] = []
    while rest:
        part = rest.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            done = done[:-1]
            continue
        entry = tree.entries.get("/".join([*done, part]))
        if entry is None or entry.kind is not FileKind.LINK:
            done.append(part)
            continue
        links += 1
        if links > MAX_LINKS:
            return None
        done = [] if entry.target.startswith("/") else done
        rest = [*entry.target.split("/"), *rest]
    return "/".join(done)


class Resolver:
    """`resolve` for many paths, which share their folders."""

    def __init__(self, tree: EffectiveTree) -> None:
        self._tree = tree
        self._folders: dict[str, str | None] = {}

    def path(self, path: str) -> str | None:
        """As `resolve`; `path` is relative and without `.`, `..` and double slashes."""
        folder, _, name = path.rpartition("/")
        if folder not in self._folders:
            self._keep(folder)
        real = self._folders[folder]
        if real is None:
            return None
        whole = path if real == folder else f"{real}/{name}" if real else name
        entry = self._tree.entries.get(whole)
        return resolve(self._tree, whole) if entry is not None and entry.kind is FileKind.LINK else whole

    def entry(self, path: str) -> FileEntry | None:
        """What stands at a path: links of the folders above are followed, the last part is not."""
        folder, _, name = path.rpartition("/")
        if folder not in self._folders:
            self._keep(folder)
        real = self._folders[folder]
        return None if real is None else self._tree.entries.get(f"{real}/{name}" if real else name)

    def _keep(self, folder: str) -> None:
        if len(self._folders) >= MAX_FOLDERS:
            self._folders.clear()
        self._folders[folder] = resolve(self._tree, folder) if folder else ""


def check_tree(tree: EffectiveTree, layers: Iterable[LayerTree], subject: str) -> list[Finding]:
    """Every path is one that all tools unpack alike; every archive could be read."""
    found = [
        finding(
            "LAYER_ENCODING/undecodable",
            Status.FAIL if layer.error else Status.INCONCLUSIVE,
            f"layer {layer.number} of {subject}",
            actual=layer.error or layer.limit,
        )
        for layer in layers
        if layer.error or layer.limit
    ]
    said = [
        finding("AMBIGUOUS_PATH", Status.FAIL, f"layer {number} of {subject}", what=why, actual=path)
        for number, path, why in tree.problems[:MAX_FINDINGS]
    ]
    return [*found, *said]


class _Overlay:
    """Lays layers over each other."""

    def __init__(self) -> None:
        self.tree = EffectiveTree()
        self._clear = {""}
        """Folders that no link leads to, neither themselves nor what they lie in."""

    def add(self, layer: LayerTree) -> None:
        """One more layer."""
        self.tree.problems += [(layer.number, path, why) for path, why in layer.problems]
        for path in layer.hidden:
            self._remove(path, layer.number)
        for folder in layer.opaque:
            for path in list(self.tree.folders.get(folder, ())):
                self._remove(path, layer.number)
        for path, entry in layer.entries.items():
            self._place(layer, path, entry)

    def _remove(self, path: str, number: int) -> None:
        """Remove a path and everything below it."""
        folders, rest = self.tree.folders, [path]
        folders.get(_above(path), set()).discard(path)
        while rest:
            one = rest.pop()
            rest += folders.pop(one, ())
            entry = self.tree.entries.pop(one, None)
            if entry is not None:
                self.tree.removed[one] = (entry.layer, number)
                self.tree.records.pop(one, None)

    def _place(self, layer: LayerTree, path: str, placed: FileEntry) -> None:
        tree, folder = self.tree, path.rpartition("/")[0]
        if folder not in self._clear and (through := self._link_above(folder)):
            self._problem(layer, path, f"the path goes through the link {through}")
        entry = self._linked(layer, path, placed)
        if entry is None:
            return
        before = tree.entries.get(path)
        if before is not None and before.layer != entry.layer and before.digest != entry.digest:
            tree.earlier[path] = before.layer
        if entry.kind is not FileKind.FOLDER and path and path in tree.folders:
            for one in tree.folders.pop(path):
                self._remove(one, layer.number)
        if entry.kind is FileKind.LINK and path in self._clear:
            self._clear = {""}
        tree.entries[path] = entry
        self._know(path, folder)
        tree.removed.pop(path, None)
        tree.records.pop(path, None)
        if path in layer.kept:
            tree.records[path] = layer.kept[path]

    def _linked(self, layer: LayerTree, path: str, entry: FileEntry) -> FileEntry | None:
        """The entry, a hard link as the file that it names; None for one that names no file."""
        if entry.kind is not FileKind.HARD_LINK:
            return entry
        target = layer.entries.get(entry.target) or self.tree.entries.get(entry.target)
        if target is None or target.kind is not FileKind.FILE:
            self._problem(layer, path, f"a hard link to {entry.target!r}, which is no file here")
            return None
        return target._replace(layer=layer.number)

    def _know(self, path: str, folder: str) -> None:
        folders = self.tree.folders
        while path and path not in (known := folders.setdefault(folder, set())):
            known.add(path)
            path, folder = folder, _above(folder)

    def _link_above(self, folder: str) -> str:
        """The link nearest to the end among a folder and those that it lies in; empty where there is none."""
        above: list[str] = []
        while folder not in self._clear:
            entry = self.tree.entries.get(folder)
            if entry is not None and entry.kind is FileKind.LINK:
                return folder
            above.append(folder)
            folder = _above(folder)
        self._clear.update(above)
        return ""

    def _problem(self, layer: LayerTree, path: str, why: str) -> None:
        if len(self.tree.problems) < MAX_PROBLEMS:
            self.tree.problems.append((layer.number, path, why))


def _above(path: str) -> str:
    return path.rpartition("/")[0]
