"""Layers laid over each other as runtimes do it, and what is ambiguous about them.

Source: image-spec, layer.md; rules/image-verify.md C10.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tic_manifest.model.files import EffectiveTree, FileEntry, FileKind, LayerTree
from tic_manifest.model.verdict import Finding, Status, finding

MAX_LINKS = 40
MAX_FINDINGS = 100


def lay_over(layers: Sequence[LayerTree]) -> EffectiveTree:
    """The tree that a process sees, the lowest layer first."""
    tree = EffectiveTree()
    for layer in layers:
        tree.problems += [(layer.number, path, why) for path, why in layer.problems]
        _hide(tree, layer)
        for path, entry in layer.entries.items():
            _place(tree, layer, path, entry)
    return tree


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


def check_tree(tree: EffectiveTree, layers: Iterable[LayerTree], subject: str) -> list[Finding]:
    """Every path is one that all tools unpack alike; every archive could be read."""
    found = [
        finding(
            "LAYER_ENCODING/undecodable",
            Status.FAIL,
            f"layer {layer.number} of {subject}",
            actual=layer.error,
        )
        for layer in layers
        if layer.error
    ]
    said = [
        finding("AMBIGUOUS_PATH", Status.FAIL, f"layer {number} of {subject}", what=why, actual=path)
        for number, path, why in tree.problems[:MAX_FINDINGS]
    ]
    return [*found, *said]


def _hide(tree: EffectiveTree, layer: LayerTree) -> None:
    whole = layer.hidden | layer.opaque
    everything = "" in layer.opaque
    gone = [path for path in tree.entries if everything or path in layer.hidden or _is_below(path, whole)]
    for path in gone if whole else ():
        tree.removed[path] = (tree.entries.pop(path).layer, layer.number)
        tree.records.pop(path, None)


def _is_below(path: str, folders: set[str]) -> bool:
    above = posixpath.dirname(path)
    while above:
        if above in folders:
            return True
        above = posixpath.dirname(above)
    return False


def _place(tree: EffectiveTree, layer: LayerTree, path: str, entry: FileEntry) -> None:
    through = _link_above(tree, path)
    if through:
        tree.problems.append((layer.number, path, f"the path goes through the link {through}"))
    if entry.kind is FileKind.HARD_LINK:
        target = layer.entries.get(entry.target) or tree.entries.get(entry.target)
        if target is None or target.kind is not FileKind.FILE:
            tree.problems.append(
                (layer.number, path, f"a hard link to {entry.target!r}, which is no file here")
            )
            return
        entry = replace(target, layer=layer.number)
    before = tree.entries.get(path)
    if before is not None and before.layer != entry.layer and before.digest != entry.digest:
        tree.earlier[path] = before.layer
    if entry.kind is not FileKind.FOLDER and path in tree.folders:
        _drop_below(tree, layer.number, path)
    tree.entries[path] = entry
    _know_folders(tree, path)
    tree.removed.pop(path, None)
    tree.records.pop(path, None)
    if path in layer.kept:
        tree.records[path] = layer.kept[path]


def _know_folders(tree: EffectiveTree, path: str) -> None:
    above = posixpath.dirname(path)
    while above and above not in tree.folders:
        tree.folders.add(above)
        above = posixpath.dirname(above)


def _link_above(tree: EffectiveTree, path: str) -> str:
    above = posixpath.dirname(path)
    while above:
        entry = tree.entries.get(above)
        if entry is not None and entry.kind is FileKind.LINK:
            return above
        above = posixpath.dirname(above)
    return ""


def _drop_below(tree: EffectiveTree, number: int, path: str) -> None:
    tree.folders.discard(path)
    for one in [one for one in tree.entries if one.startswith(f"{path}/")]:
        tree.removed[one] = (tree.entries.pop(one).layer, number)
        tree.records.pop(one, None)
