"""JIT registries of this process, read by state: nothing is called that could compile or start a device."""

from __future__ import annotations

import sys
from typing import Any, Dict

from .base import Json, attempt, clean
from .inside_families import families_state
from .inside_triton import triton_state

MAX_KERNELS = 20_000


def names_of(module: str) -> Dict[str, Any]:
    """Dictionary of a loaded module; empty when it is not loaded. Nothing is imported."""
    found = getattr(sys.modules.get(module), "__dict__", {})
    return found if isinstance(found, dict) else {}


def inductor_state() -> Json:
    """Python modules that Inductor generated here, its cache counters and its compiler setting."""
    if "torch._inductor" not in sys.modules:
        return {"loaded": False}
    cache = names_of("torch._inductor.codecache").get("PyCodeCache")
    registered = getattr(cache, "modules", []) if cache is not None else []
    rows = list(registered.values()) if isinstance(registered, dict) else list(registered)
    files = sorted({clean(getattr(m, "__file__", None)) for m in rows[:MAX_KERNELS]})
    return {"loaded": True, "python_modules": files, "counters": attempt(_counters), "cpp": attempt(_cpp)}


def _counters() -> Json:
    counters = names_of("torch._dynamo.utils").get("counters") or {}
    return {
        clean(k): {clean(n, 200): int(v) for n, v in list(c.items())[:500]}
        for k, c in list(counters.items())[:50]
    }


def _cpp() -> Json:
    """Inductor's settings without running its configuration code: the stored values only."""
    config = names_of("torch._inductor.config").get("_config") or {}
    wanted = ("cpp.cxx", "cpp.simdlen", "cpp.threads", "cpp.enable_floating_point_contract_flag")
    found: Json = {}
    for name in wanted:
        entry = config.get(name)
        for field in ("user_override", "default"):
            value = getattr(entry, field, None)
            if type(value) in (str, int, bool, tuple, list):
                found[name] = clean(value, 300)
                break
    return found


def jit_state() -> Json:
    """All families. One that is loaded but cannot be read is named under `unread`, never left out."""
    families = attempt(families_state)
    return {
        "inductor": attempt(inductor_state),
        "triton": attempt(triton_state),
        "families": families,
        "unread": sorted(name for name, found in families.items() if "unread" in found),
    }
