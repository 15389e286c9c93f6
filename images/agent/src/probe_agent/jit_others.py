"""Families with plain folders: numba's index files, DeepGEMM, TileLang, vLLM's factors."""

from __future__ import annotations

import os
import pickletools
import re
from typing import Any, List, Optional, Set

from .base import Json, attempt, clean, read_file
from .jit_cpp import add_sources, changed_since
from .jit_entry import MAX_ENTRIES, CacheDisk, cubin_identity, entry

DEEP_GEMM = re.compile(r"/kernel\.([^/]+)\.([0-9a-f]+)/kernel\.cubin$")
TILELANG = re.compile(r"/kernels/([0-9a-f]{16,})/executable\.so$")
FACTORS = "cache_key_factors.json"


def numba_entries(disk: CacheDisk, live: List[Json]) -> List[Json]:
    """Compiled signatures that processes hold: found in an index, or compiled now."""
    rows: List[Json] = []
    for one in live[:MAX_ENTRIES]:
        index = disk.real(one["index"]) if one["index"] else None
        row = entry("numba", one["function"], index, loaded=True, key=one["index"] or None)
        row["specialization"] = {"signature": one["signature"], "from_disk": one["from_disk"]}
        row["origin"] = "this_run"
        if index is not None:
            row.update(sha256=disk.digest(index), **numba_index(disk, index))
            row["origin"] = disk.origin(oldest_data(disk, index)) if one["from_disk"] else "this_run"
        _numba_source(disk, row, one, index)
        rows.append(row)
    return rows


def oldest_data(disk: CacheDisk, index: str) -> str:
    """The oldest data file of an index: the index itself is written again for every new signature."""
    folder, base = os.path.dirname(index), os.path.basename(index)[: -len("nbi")]
    names = attempt(lambda: sorted(os.listdir(disk.root + folder))[:100_000])
    found = [n for n in names if n.startswith(base) and n.endswith(".nbc")] if isinstance(names, list) else []
    times = {name: attempt(os.lstat, disk.root + folder + "/" + name) for name in found[:1000]}
    known = [name for name in found[:1000] if isinstance(times[name], os.stat_result)]
    return folder + "/" + min(known, key=lambda name: times[name].st_ctime) if known else index


def _numba_source(disk: CacheDisk, row: Json, one: Json, index: Optional[str]) -> None:
    real = disk.real(one["file"])
    digest = disk.digest(real) if real else None
    if digest is None or real is None:
        return
    row["inputs"][one["file"]] = digest
    row["sources"] = [one["file"]]
    if (
        index is not None and one["from_disk"] and row["origin"] != "image"
    ):  # unpacking a layer sets change times
        reason = changed_since(disk, real, index)
        if reason:
            row["stale"].append(clean("%s %s" % (one["file"], reason)))


def numba_index(disk: CacheDisk, path: str) -> Json:
    """Version in an index file. It is a pickle: its opcodes are read, nothing is built of them."""
    found: Json = {"compiler": None}
    try:
        data = read_file(disk.root + path, 1 << 20)
        for count, (code, value, _) in enumerate(pickletools.genops(data)):
            if code.name in ("SHORT_BINUNICODE", "BINUNICODE") and found["compiler"] is None:
                found["compiler"] = clean("numba %s" % value, 100)
            if code.name == "STOP" or count > 1000:
                break
    except Exception as error:
        found["error"] = clean("index: %s" % error, 300)
    return found


def deep_gemm_entries(disk: CacheDisk, paths: List[str]) -> List[Json]:
    """Folders `kernel.NAME.HASH` with a source and a cubin."""
    rows: List[Json] = []
    for path in paths:
        match = DEEP_GEMM.search(path)
        if match and len(rows) < MAX_ENTRIES:
            row = entry("deep_gemm", match.group(1), path, key=match.group(2), origin=disk.origin(path))
            row["sha256"] = disk.digest(path)
            found = attempt(cubin_identity, disk.root + path)
            if isinstance(found, tuple):
                row.update(code_sha256=found[0], compiler=found[1])
            else:
                row["error"] = clean("artifact: %s" % found["error"], 300)
            source = os.path.dirname(path) + "/kernel.cu"
            add_sources(disk, row, [source])
            rows.append(row)
    return rows


def tilelang_entries(
    disk: CacheDisk, paths: List[str], live: Optional[List[Json]], mapped: Set[str]
) -> List[Json]:
    """Folders `kernels/SHA` with sources, parameters and a library."""
    held = {row["key"] for row in live or []}
    rows: List[Json] = []
    for path in paths:
        match = TILELANG.search(path)
        if match and len(rows) < MAX_ENTRIES:
            folder = os.path.dirname(path)
            row = entry("tilelang", None, path, key=match.group(1), origin=disk.origin(path))
            row["sha256"] = disk.digest(path)
            row["loaded"] = match.group(1) in held or path in mapped if live is not None else None
            for name in ("device_kernel.cu", "host_kernel.cu", "params.json"):
                digest = disk.digest(folder + "/" + name)
                if digest:
                    row["inputs"][name] = digest
            rows.append(row)
    return rows


def vllm_entries(disk: CacheDisk, paths: List[str]) -> List[Json]:
    """What vLLM's compile cache was keyed by, one row per folder."""
    rows: List[Json] = []
    for path in paths:
        if os.path.basename(path) == FACTORS and len(rows) < MAX_ENTRIES:
            row = entry("vllm", None, path, key=path.split("/")[-3][:64], origin=disk.origin(path))
            row["sha256"] = disk.digest(path)
            try:
                factors = disk.read_json(path)
                row["specialization"] = {clean(k, 100): _short(v) for k, v in list(factors.items())[:50]}
            except (OSError, ValueError, AttributeError) as error:
                row["error"] = clean("factors: %s" % error, 300)
            rows.append(row)
    return rows


def _short(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        return "%d entries" % len(value)
    return clean(value, 200)
