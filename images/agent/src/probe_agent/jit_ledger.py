"""The JIT ledger of one root: an entry for each specialization, a row for each family, read or not."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Set, Tuple

from .base import Budget, Json, attempt, clean
from .jit_cpp import aot_entries, inductor_entries, ninja_entries
from .jit_entry import MAX_ENTRIES, CacheDisk, entry
from .jit_others import deep_gemm_entries, numba_entries, tilelang_entries, vllm_entries
from .jit_triton import triton_entries, tuned_entries

LEDGER_SECONDS = 60.0
FAMILIES = (
    "triton",
    "inductor",
    "cpp_extension",
    "numba",
    "flashinfer",
    "deep_gemm",
    "cute_dsl",
    "tilelang",
    "transformer_engine",
    "vllm",
    "cuda_driver",
)
OPAQUE = {
    "cuda_driver": "its files are the driver's own and say no kernel",
    "cute_dsl": "its files say no function; CUTE_DSL_KEEP keeps what could be read",
}


class Live:
    """What the last view from inside of each process says about its JIT compilers."""

    def __init__(self, views: List[Json]) -> None:
        self.views = [v["jit"] for v in views if v.get("modules") and isinstance(v.get("jit"), dict)]
        self.read = [v for v in self.views if isinstance(v.get("triton"), dict)]
        self.cuda = any((v.get("torch") or {}).get("cuda") for v in views if isinstance(v.get("torch"), dict))

    def triton(self, key: str) -> List[Json]:
        """Rows of Triton's registries."""
        rows = [row for v in self.read for row in _list(v["triton"].get(key))]
        return [row for row in rows if isinstance(row, dict) and "error" not in row]

    def triton_is_whole(self) -> bool:
        """Whether no kernel can be loaded past these rows: Inductor's launcher for CUDA keeps its own."""
        inductor = any((v.get("inductor") or {}).get("loaded") for v in self.views)
        return bool(self.read) and len(self.read) == len(self.views) and not (inductor and self.cuda)

    def rows(self, family: str) -> List[Json]:
        """Rows of another family."""
        found = [f.get(family) for f in self.families()]
        rows = [row for one in found if isinstance(one, dict) for row in _list(one.get("rows"))]
        return [row for row in rows if isinstance(row, dict)]

    def families(self) -> Iterator[Json]:
        """The tables `families` of all views."""
        return (v["families"] for v in self.views if isinstance(v.get("families"), dict))

    def unread(self, family: str) -> str:
        """Why a family that is loaded cannot be read from inside."""
        for found in self.families():
            reason = (found.get(family) or {}).get("unread")
            if reason:
                return clean(reason, 300)
        return ""


def _list(value: Any) -> List[Any]:
    return value if isinstance(value, list) else []


def build_ledger(root: str, report: Json, since: float, mounts: List[List[Json]], mapped: Set[str]) -> Json:
    """{"ledger": rows, "families": rows}; every reader is on its own, a broken one is its family's reason."""
    artifacts = report["jit"]["artifacts"]
    known = {row["path"]: row["sha256"] for row in artifacts if isinstance(row.get("sha256"), str)}
    points = {m["mount_point"]: m["fstype"] for rows in mounts for m in rows}
    disk = CacheDisk(root, since, points, known, Budget(LEDGER_SECONDS))
    live = Live(report["inside"])
    tiles = live.rows("tilelang") if live.read else None
    paths = [row["path"] for row in artifacts]
    readers = {
        "triton": lambda: (
            triton_entries(disk, paths, live.triton("kernels"), live.triton_is_whole())
            + tuned_entries(disk, paths, live.triton("autotuned"))
        ),
        "inductor": lambda: inductor_entries(disk, artifacts, mapped),
        "cpp_extension": lambda: ninja_entries(disk, artifacts, mapped),
        "flashinfer": lambda: aot_entries(disk, mapped, live.rows("flashinfer")),
        "numba": lambda: numba_entries(disk, live.rows("numba")),
        "deep_gemm": lambda: deep_gemm_entries(disk, paths),
        "tilelang": lambda: tilelang_entries(disk, paths, tiles, mapped),
        "vllm": lambda: vllm_entries(disk, paths),
        "cute_dsl": lambda: [
            entry("cute_dsl", row.get("function"), None, loaded=True) for row in live.rows("cute_dsl")
        ],
    }
    rows: List[Json] = []
    broken: Dict[str, str] = {}
    for family, reader in readers.items():
        found = attempt(reader)
        if isinstance(found, list):
            rows += found
        else:
            broken[family] = found["error"]
    return {"ledger": rows[:MAX_ENTRIES], "families": families_of(report, live, rows, broken)}


def families_of(report: Json, live: Live, rows: List[Json], broken: Dict[str, str]) -> List[Json]:
    """One row per family: read, disk_only, unread or absent, each but `read` with its reason."""
    found = []
    for name in FAMILIES:
        files = sum(p["files"] for p in report["jit"]["places"] if p["family"] == name)
        count = sum(row["family"] == name for row in rows)
        state, reason = _state(name, live, files, count, broken)
        found.append({"family": name, "state": state, "reason": reason, "entries": count, "files": files})
    for table in live.families():
        for name in sorted(set(table) - set(FAMILIES)):
            found.append(
                {"family": name, "state": "unread", "reason": live.unread(name), "entries": 0, "files": 0}
            )
    return found


def _state(name: str, live: Live, files: int, count: int, broken: Dict[str, str]) -> Tuple[str, str]:
    why = broken.get(name) or live.unread(name)
    if why:
        return ("disk_only" if count else "unread"), why
    if not count and files:
        return "unread", "%d files: %s" % (files, OPAQUE.get(name, "none of a kind that is read"))
    if live.read:
        return ("read" if count else "absent"), ""
    blind = "no process gave a view from inside: what they hold is not known"
    return ("disk_only", blind) if count else ("absent", "on disk; " + blind)


def ledger_paths(jit: Json) -> Set[str]:
    """Artifacts and sources that an owner is asked for."""
    found: Set[str] = set()
    for row in jit.get("ledger", ()):
        found.update(path for path in (row["artifact"], *row["inputs"]) if path and path.startswith("/"))
    return found
