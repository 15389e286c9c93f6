"""C++ compiled while a worker runs: Inductor's kernels, cpp_extension, FlashInfer, from their folders."""

from __future__ import annotations

import os
import re
from typing import Dict, List, Optional, Set, Tuple

from .base import Json, attempt, clean
from .elf import code_identity
from .jit_entry import MAX_ENTRIES, CacheDisk, entry

NINJA_EDGE = re.compile(r"^build (\S+\.o): \w+ (.+)$", re.MULTILINE)
VERSIONED = re.compile(r"^(.*?)(?:_v(\d+))?\.so$")
AOT = re.compile(r"/(?:data/aot|flashinfer_jit_cache(?:/jit_cache)?)/([^/]+)/\1\.so$")


def inductor_entries(disk: CacheDisk, artifacts: List[Json], mapped: Set[str]) -> List[Json]:
    """One row per library of Inductor; one that no generated module names is a probe of the compiler."""
    rows: List[Json] = []
    for found in artifacts:
        path = found["path"]
        if found["family"] in ("inductor", "vllm") and path.endswith(".so") and len(rows) < MAX_ENTRIES:
            if "/triton/" in path and "cuda_utils" in path:
                continue
            names = found.get("kernels") or []
            row = library(disk, found["family"], ", ".join(names) or None, path, mapped)
            row["key"] = os.path.basename(path).split(".")[0]
            source = path[: -len(".so")] + ".cpp"
            digest = disk.digest(source)
            if digest:
                row["inputs"]["cpp"] = digest
                row["paths"] = {"cpp": source}
            rows.append(row)
    return rows


def library(disk: CacheDisk, family: str, kernel: Optional[str], path: str, mapped: Set[str]) -> Json:
    """The row of a shared object: hashes, compiler that it names, whether it is mapped."""
    row = entry(
        family, kernel, path, loaded=path in mapped, origin=disk.origin(path), sha256=disk.digest(path)
    )
    code = attempt(code_identity, disk.root + path)
    if "error" in code:
        row["error"] = clean("artifact: %s" % code["error"], 300)
    else:
        row.update(code_sha256=code["text_sha256"], compiler="; ".join(code["comment"]) or None)
    return row


def ninja_entries(disk: CacheDisk, artifacts: List[Json], mapped: Set[str]) -> List[Json]:
    """Modules that ninja built, of cpp_extension and FlashInfer: every library beside a build.ninja."""
    rows: List[Json] = []
    for found in artifacts:
        folder, name = os.path.split(found["path"])
        if name != "build.ninja" or len(rows) >= MAX_ENTRIES:
            continue
        sources = ninja_sources(disk.text(found["path"]))
        family = "flashinfer" if found["family"] == "flashinfer" else "cpp_extension"
        libraries = [a["path"] for a in artifacts if os.path.dirname(a["path"]) == folder]
        for path in sorted(p for p in libraries if p.endswith(".so")):
            rows.append(_ninja_module(disk, family, path, sources, mapped))
        _versions([row for row in rows if os.path.dirname(str(row["artifact"])) == folder])
    return rows


def ninja_sources(text: str) -> List[str]:
    """Source files of the object edges, escapes undone."""
    found: Dict[str, None] = {}
    for _, sources in NINJA_EDGE.findall(text):
        for word in re.split(r"(?<!\$) ", sources.split(" | ")[0]):
            path = re.sub(r"\$([ :$])", r"\1", word).strip()
            if path.startswith("/"):
                found.setdefault(path)
    return list(found)[:500]


def _ninja_module(disk: CacheDisk, family: str, path: str, sources: List[str], mapped: Set[str]) -> Json:
    match = VERSIONED.match(os.path.basename(path))
    name = match.group(1) if match else os.path.basename(path)
    row = library(disk, family, name, path, mapped)
    row["specialization"] = {"version": int(match.group(2) or 0) if match else 0}
    add_sources(disk, row, sources)
    return row


def add_sources(disk: CacheDisk, row: Json, sources: List[str]) -> None:
    """Hash the sources; a source that was written after the artifact was made leaves the artifact stale."""
    row["sources"] = [clean(path) for path in sources]
    for path in sources:
        real = disk.real(path)
        digest = disk.digest(real) if real else None
        if digest is None:
            row["stale"].append(clean("its source %s cannot be read" % path))
            continue
        row["inputs"][clean(path)] = digest
        reason = changed_since(disk, str(real), str(row["artifact"]))
        if reason and row["origin"] != "image":
            row["stale"].append(clean("%s %s" % (path, reason)))


def changed_since(disk: CacheDisk, source: str, artifact: str) -> str:
    """How the times say that a source changed after an artifact was made; empty when they do not."""
    try:
        before, after = os.stat(disk.root + artifact), os.stat(disk.root + source)
    except OSError:
        return ""
    if after.st_mtime > before.st_mtime:
        return "is newer than the artifact"
    if after.st_ctime > before.st_ctime:
        return "was written after the artifact, with an older time"
    return ""


def _versions(rows: List[Json]) -> None:
    """Two versions of one module that are both mapped: the older one's source is no longer there."""
    live = [row for row in rows if row["loaded"]]
    newest = max((row["specialization"]["version"] for row in live), default=0)
    for row in live:
        if row["specialization"]["version"] < newest:
            row["stale"].append("version %d of the module is mapped beside it" % newest)


def aot_entries(disk: CacheDisk, mapped: Set[str], live: List[Json]) -> List[Json]:
    """Mapped FlashInfer modules that were compiled ahead of time; sources as its registry names them."""
    sources = {row["name"]: row["sources"] for row in live}
    rows: List[Json] = []
    for path in sorted(mapped):
        match = AOT.search(path)
        if match and len(rows) < MAX_ENTRIES:
            row = library(disk, "flashinfer", match.group(1), path, mapped)
            row["specialization"] = {"compiled": "ahead of time"}
            named = sources.get(match.group(1), [])
            add_sources(disk, row, named)
            row["stale"] = []  # installers give files the times of the archive: RECORD decides, not times
            rows.append(row)
    return rows


def compile_lines(seen: List[Json]) -> List[Tuple[str, List[str]]]:
    """(output, argv) of every compiler run that was seen."""
    found = []
    for process in seen:
        for image in process["images"]:
            argv = image.get("argv")
            if isinstance(argv, list) and "-o" in argv[:-1]:
                found.append((str(argv[argv.index("-o") + 1]), [str(one) for one in argv]))
    return found
