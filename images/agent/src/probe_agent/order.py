"""Libraries that would be other files had they been loaded first by somebody else: the order decides."""

from __future__ import annotations

import re
from typing import Any, Dict, List

from .base import Budget, Json, attempt, clean, digest_path
from .ldso import Linker

HWCAPS = re.compile(r"/glibc-hwcaps/[^/]+")
MAX_ROWS = 200


def order_dependent(
    rows: List[Json], loaded: Dict[str, str], bare: Linker, seconds: float = 10.0
) -> List[Json]:
    """Needed names of mapped files for which the file's own search finds other bytes than are mapped.

    `rows` are mapped files with their ELF facts, `loaded` paths by name, `bare` a linker for which nothing is
    loaded yet.
    """
    budget = Budget(seconds)
    hashes: Dict[str, Any] = {row["path"]: row.get("sha256") for row in rows}
    found: List[Json] = []
    for row in rows:
        facts = row.get("elf") or {}
        for name in facts.get("needed", []) if not facts.get("error") else ():
            mapped = loaded.get(name)
            if mapped is None or budget.spent() or len(found) >= MAX_ROWS:
                continue
            other = bare.find(name, row["path"], facts["runpath"], facts["rpath"])
            if other is None or HWCAPS.sub("", other) == HWCAPS.sub("", mapped):
                continue
            if other not in hashes:
                hashes[other] = attempt(digest_path, bare.root + other)
            if isinstance(hashes[other], str) and hashes[other] != hashes.get(mapped):
                found.append(_row(name, row["path"], mapped, other, hashes))
    return found


def _row(name: str, needed_by: str, mapped: str, other: str, hashes: Dict[str, Any]) -> Json:
    return {
        "library": clean(name),
        "needed_by": clean(needed_by),
        "mapped": clean(mapped),
        "mapped_sha256": hashes.get(mapped),
        "search": clean(other),
        "search_sha256": hashes[other],
    }
