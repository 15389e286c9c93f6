"""What JIT compilers left on disk: artifacts, whether they are mapped, when and by what they were made."""

from __future__ import annotations

import os
import re
from typing import Dict, Iterator, List, Optional, Set, Tuple

from .base import MAX_CACHE_FILES, Budget, Json, attempt, clean, digest_path, resolve_in_root
from .elf import code_identity

# family, variable, below it, default place ({home}, {user}); per-JIT table in docs/probe-agent.md
PLACES: Tuple[Tuple[str, str, str, str], ...] = (
    ("inductor", "TORCHINDUCTOR_CACHE_DIR", "", "/tmp/torchinductor_{user}"),
    ("triton", "TRITON_CACHE_DIR", "", ""),
    ("triton", "TRITON_HOME", "/.triton/cache", "{home}/.triton/cache"),
    ("vllm", "VLLM_CACHE_ROOT", "", "{home}/.cache/vllm"),
    ("cpp_extension", "TORCH_EXTENSIONS_DIR", "", "{home}/.cache/torch_extensions"),
    ("flashinfer", "FLASHINFER_WORKSPACE_BASE", "/.cache/flashinfer", "{home}/.cache/flashinfer"),
    ("deep_gemm", "DG_JIT_CACHE_DIR", "", "{home}/.deep_gemm"),
    ("tilelang", "TILELANG_CACHE_DIR", "", "{home}/.tilelang/cache"),
    ("cute_dsl", "CUTE_DSL_CACHE_DIR", "", ""),
    ("numba", "NUMBA_CACHE_DIR", "", ""),
    ("cuda_driver", "CUDA_CACHE_PATH", "", "{home}/.nv/ComputeCache"),
)
ARTIFACTS = (
    ".so",
    ".o",
    ".cubin",
    ".ptx",
    ".source",
    ".ttir",
    ".ttgir",
    ".llir",
    ".cpp",
    ".cu",
    ".py",
    ".json",
    ".nbi",
    ".nbc",
    ".ninja",
)
COMPILER = re.compile(
    r"^(?:[\w.]+-linux-gnu-)?(?:g\+\+|gcc|c\+\+|cc|clang(?:\+\+)?|cc1(?:plus)?|nvcc|cicc|ptxas|"
    r"ld(?:\.\w+)?|as)(?:-[\d.]+)?$"
)
MAX_ARTIFACTS = 5000


def environ_of(*views: object) -> Dict[str, str]:
    """Values in clear of several environment views; a later view wins."""
    found: Dict[str, str] = {}
    for view in views:
        if isinstance(view, list):
            found.update({e["name"]: e["value"] for e in view if "value" in e})
    return found


def places(environ: Dict[str, str]) -> List[Tuple[str, str]]:
    """(family, folder) for every cache that this environment names or implies."""
    words = {
        "home": environ.get("HOME", "/root"),
        "user": environ.get("USER") or environ.get("LOGNAME") or "root",
    }
    found = []
    for family, variable, below, default in PLACES:
        if environ.get(variable):
            found.append((family, environ[variable] + below))
        elif default:
            found.append((family, default.format(**words)))
    return found


def guess_family(path: str) -> Optional[str]:
    """Family of a file by its place, for caches that no variable names."""
    for family, mark in (
        ("inductor", "/torchinductor_"),
        ("inductor", "/inductor_cache/"),
        ("vllm", "/torch_compile_cache/"),
        ("vllm", "/torch_aot_compile/"),
        ("triton", "/.triton/cache/"),
        ("cpp_extension", "/torch_extensions/"),
    ):
        if mark in path:
            return family
    return None


def walk(root: str, folder: str, budget: Budget, most: int) -> Iterator[Tuple[str, os.stat_result]]:
    """Regular files below a folder, bounded in number and time; links are not followed."""
    count = 0
    for base, folders, names in os.walk(root + folder, followlinks=False):
        folders.sort()
        for name in sorted(names):
            count += 1
            if count > most or budget.spent():
                return
            try:
                info = os.lstat(base + "/" + name)
            except OSError:
                continue
            if (info.st_mode & 0o170000) == 0o100000:
                yield (base + "/" + name)[len(root) :], info


def artifact_row(root: str, path: str, info: os.stat_result, family: str, since: float) -> Json:
    """Facts about one artifact. Made in this run when its inode changed after the worker was started."""
    row: Json = {"path": clean(path), "family": family, "size": info.st_size, "mtime_ns": info.st_mtime_ns}
    row["origin"] = "this_run" if info.st_ctime >= since - 0.5 else "before_run"
    if info.st_size <= 256 << 20:
        row["sha256"] = attempt(digest_path, root + path)
    if path.endswith(".so"):
        row["code"] = attempt(code_identity, root + path)
    return row


def scan_caches(
    root: str, folders: List[Tuple[str, str]], mapped: Set[str], since: float, most: int = MAX_CACHE_FILES
) -> Tuple[List[Json], List[Json]]:
    """(one row per cache folder, one row per artifact); what does not fit is counted in the folder's row."""
    budget = Budget(60.0)
    rows: List[Json] = []
    places_seen: Dict[str, Json] = {}
    listed: Set[str] = set()
    for family, folder in folders:
        real = resolve_in_root(root, folder) if folder.startswith("/") else None
        if real in (None, "/") or real in places_seen:
            continue
        place: Json = {"family": family, "path": clean(real), "files": 0, "listed": 0, "cut_short": False}
        places_seen[str(real)] = place
        for path, info in walk(root, str(real), budget, most):
            place["files"] += 1
            if path.endswith(ARTIFACTS) and path not in listed and len(rows) < MAX_ARTIFACTS:
                listed.add(path)
                place["listed"] += 1
                rows.append(
                    dict(
                        artifact_row(root, path, info, guess_family(path) or family, since),
                        mapped=path in mapped,
                    )
                )
        place["cut_short"] = budget.spent() or place["files"] >= most or len(rows) >= MAX_ARTIFACTS
    return list(places_seen.values()), rows


def is_compiler(exe: Optional[str]) -> bool:
    """True for the programs that turn JIT sources into code."""
    return bool(exe) and bool(COMPILER.match(os.path.basename(str(exe))))


def find_program(root: str, name: str, search: str) -> Optional[str]:
    """Real path of a program as PATH would find it."""
    places_to_look = (
        [name] if name.startswith("/") else [d + "/" + name for d in search.split(":") if d.startswith("/")]
    )
    for place in places_to_look:
        real = resolve_in_root(root, place)
        if real is not None and os.path.isfile(root + real):
            return real
    return None


def compiler_rows(root: str, seen: List[Json], environ: Dict[str, str]) -> List[Json]:
    """Compilers seen running below the worker, and those that its environment would choose."""
    rows: Dict[str, Json] = {}
    for process in seen:
        for image in process["images"]:
            if is_compiler(image.get("exe")):
                row = rows.setdefault(
                    image["exe"], {"path": image["exe"], "seen_running": 0, "configured_as": []}
                )
                row["seen_running"] += 1
    for name in {environ.get("CXX") or "g++", environ.get("CC") or "gcc"}:
        path = find_program(root, name.split()[0], environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"))
        if path is not None:
            row = rows.setdefault(path, {"path": path, "seen_running": 0, "configured_as": []})
            row["configured_as"].append(clean(name, 200))
    for path, row in rows.items():
        row["sha256"] = attempt(digest_path, root + path)
    return [rows[path] for path in sorted(rows)]


def compile_commands(seen: List[Json]) -> Dict[str, Json]:
    """{output path: {"pid", "exe"}} of compiler runs that were seen with an `-o`."""
    found: Dict[str, Json] = {}
    for process in seen:
        for image in process["images"]:
            argv = image.get("argv")
            if is_compiler(image.get("exe")) and isinstance(argv, list) and "-o" in argv[:-1]:
                output = argv[argv.index("-o") + 1]
                found.setdefault(output, {"pid": process["pid"], "exe": image["exe"]})
    return found
