"""Layers: what is read of an archive stays below its root, whatever the archive says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from tic_manifest.adapters.blobs import read_trees
from tic_manifest.adapters.layer_tree import MAX_INDEX, MAX_RECORD, LayerTreeReader
from tic_manifest.model.files import LayerTree
from tic_manifest.model.oci import Blob, Descriptor, Encoding
from tic_manifest.rules.records import check_records
from tic_manifest.rules.tree import check_tree, lay_over

STEPS = (1 << 20, 512, 1000, 4096)
CODES = {"AMBIGUOUS_PATH", "LAYER_ENCODING", "RECORD_HASH", "RECORD_MISSING", "UNOWNED_FILE"}


def run_archive(data: bytes) -> None:
    """The first byte chooses how the bytes are cut and whether they are two layers."""
    if len(data) < 2:
        return
    raw, step = data[1:], STEPS[data[0] % len(STEPS)]
    halves = [raw] if data[0] & 0x80 else [raw[: len(raw) // 1024 * 512], raw[len(raw) // 1024 * 512 :]]
    judge([_read(half, number, step) for number, half in enumerate(halves, 1)])


def _read(raw: bytes, number: int, step: int) -> LayerTree:
    reader = LayerTreeReader(number)
    for at in range(0, len(raw), step):
        reader.update(raw[at : at + step])
    reader.close()
    return reader.tree


def judge(layers: list[LayerTree]) -> None:
    """Raises where a path leaves the root, too much is kept, or a finding says something else."""
    for tree in layers:
        for path in (*tree.entries, *tree.hidden, *tree.opaque, *tree.kept):
            _inside(path)
        if sum(map(len, tree.kept.values())) > MAX_INDEX or any(
            len(one) > MAX_RECORD for one in tree.kept.values()
        ):
            raise AssertionError("more is kept than is allowed")
    laid = lay_over(layers)
    found = [*check_tree(laid, layers, "tree"), *check_records(laid, "tree")]
    for one in found:
        if one.code.partition("/")[0] not in CODES:
            raise AssertionError(f"a code that says something else: {one.code}")


def _inside(path: str) -> None:
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or "\0" in path:
        raise AssertionError(f"a path outside the root: {path!a}")


class _Source:
    """One blob that comes in pieces, at most as many bytes as are asked for."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def blob(self, digest: str, limit: int) -> Iterator[bytes]:
        raw = self._raw[:limit]
        return (raw[at : at + 4096] for at in range(0, len(raw), 4096))


class _Quiet:
    def step(self, *_: Any) -> _Quiet:
        return self

    def __enter__(self) -> _Quiet:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def advance(self, _: int) -> None:
        return None


def run_packed(data: bytes) -> None:
    """A layer as a blob: its digest is that of its bytes, and its diff id only comes with a whole stream."""
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    kind = "application/vnd.oci.image.layer.v1.tar+zstd"
    descriptor = Descriptor(media_type=kind, digest=digest, size=len(data))
    blob = Blob(descriptor=descriptor, encoding=Encoding.ZSTD, diff_id=digest, layer=1, stored=len(data))
    facts, trees = read_trees(_Source(data), [blob], _Quiet())  # type: ignore[arg-type]
    if facts[0].digest != digest or facts[0].length != len(data):
        raise AssertionError("digest or length of a blob is not that of its bytes")
    if (facts[0].diff_id is None) != bool(facts[0].error):
        raise AssertionError("a stream that breaks has a diff id, or a whole one has none")
    judge(list(_whole(trees)))


def _whole(trees: Iterable[LayerTree | None]) -> Iterator[LayerTree]:
    return (one for one in trees if one is not None)
