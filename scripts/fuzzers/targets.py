"""What is fuzzed, and what must hold of every outcome. A target breaks by raising."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tic_manifest.errors import PersonError, RefusedError
from tic_manifest.formats.reference import parse_reference
from tic_manifest.formats.strict_json import MAX_DEPTH, load_json

from fuzzers import documents, seeds, sources
from fuzzers.archive import run_archive, run_packed
from fuzzers.command import Command
from fuzzers.saved import Saved


@dataclass(kw_only=True)
class Target:
    """One reader: `run` takes an input and raises when something is wrong; `prepare` gets a folder."""

    says: str
    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    longest: int = 4096
    prepare: Callable[[Path], None] = lambda _: None


def run_json(data: bytes) -> None:
    """Refused, or the same value that a plain reader sees, with no key twice and no deeper than allowed."""
    try:
        value = load_json(data, "input")
    except RefusedError:
        return
    pairs: list[int] = []
    plain = json.loads(data.decode(), object_pairs_hook=lambda found: _once(found, pairs))
    if json.dumps(plain, sort_keys=True) != json.dumps(value, sort_keys=True):
        raise AssertionError("another value than a plain reader sees")
    if _depth(value) > MAX_DEPTH:
        raise AssertionError("deeper than allowed")
    json.dumps(value, ensure_ascii=False).encode()
    if load_json(json.dumps(value).encode(), "again") != value:
        raise AssertionError("the value does not survive writing and reading")


def _once(found: list[tuple[str, Any]], pairs: list[int]) -> dict[str, Any]:
    made = dict(found)
    if len(made) != len(found):
        raise AssertionError("a key stands twice and was accepted")
    pairs.append(len(found))
    return made


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def run_reference(data: bytes) -> None:
    """No reference, or one that says itself again and whose host a URL keeps."""
    from urllib.parse import urlsplit

    text = data.decode("utf-8", "surrogateescape")
    try:
        found = parse_reference(text)
    except PersonError:
        return
    if (found.layout is None) == (found.registry is None):
        raise AssertionError("neither a layout nor a registry, or both")
    if found.registry is None:
        if any(ord(one) < 0x20 for one in str(found.layout)):
            raise AssertionError("a control character in a folder")
        return
    try:
        parts = urlsplit(f"https://{found.registry}/v2/{found.repository}")
        _ = parts.port
    except ValueError:
        raise AssertionError(f"no URL can name this host: {found.registry!r}") from None
    if (
        parts.netloc != found.registry
        or parts.path != f"/v2/{found.repository}"
        or ".." in parts.path.split("/")
    ):
        raise AssertionError("the URL leaves host or repository")


_COMMAND = Command()
_SAVED = Saved()

TARGETS = {
    "json": Target(says="the strict JSON reader", run=run_json, seeds=seeds.json_documents),
    "reference": Target(says="image references", run=run_reference, seeds=seeds.references, longest=600),
    "tar": Target(
        says="the archive of a layer, laid over and judged", run=run_archive, seeds=seeds.archives,
        longest=1 << 16,
    ),
    "packed": Target(
        says="gzip, zstd and tar layers as blobs", run=run_packed, seeds=seeds.packed, longest=1 << 15
    ),
    "documents": Target(
        says="OCI documents, Statements, envelopes, bundles, locks, receipts, policies, recipes",
        run=documents.run_documents, seeds=seeds.documents, longest=1 << 15,
    ),
    "listing": Target(
        says="listings of trees, entry points of wheels", run=sources.run_listing, seeds=sources.listings,
    ),
    "saved": Target(
        says="archives of docker save", run=_SAVED.run, seeds=_SAVED.seeds, longest=1 << 16,
        prepare=_SAVED.prepare,
    ),
    "cli": Target(
        says="tic-manifest verify on a delivery with one spoiled document or blob", run=_COMMAND.run,
        seeds=_COMMAND.seeds, longest=1 << 15, prepare=_COMMAND.prepare,
    ),
}  # fmt: skip
