"""JIT registries of this process, read by state: nothing is called that could compile or start a device."""

from __future__ import annotations

import gc
import sys
from typing import Any, Dict, List

from .base import Json, attempt, clean

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


def triton_state() -> Json:
    """Specializations that live JITFunctions hold. No reflection over kernels: it would start the device."""
    kind = names_of("triton.runtime.jit").get("JITFunction")
    if not isinstance(kind, type):
        return {"loaded": "triton" in sys.modules}
    rows: List[Json] = []
    functions = 0
    for thing in gc.get_objects():
        if type(thing) is kind and len(rows) < MAX_KERNELS:
            functions += 1
            rows += attempt_list(thing)
    return {"loaded": True, "functions": functions, "kernels": rows}


def attempt_list(function: Any) -> List[Json]:
    """Rows of one JITFunction, or one row with the error."""
    found = attempt(_kernels, function)
    return found if isinstance(found, list) else [found]


def _kernels(function: Any) -> List[Json]:
    own = function.__dict__
    name = "%s.%s" % (
        own.get("__module__") or own.get("module"),
        own.get("__qualname__") or own.get("__name__"),
    )
    caches = own.get("device_caches") or own.get("cache") or {}
    rows: List[Json] = []
    for device, entry in list(dict(caches).items())[:16]:
        kernels = entry[0] if isinstance(entry, tuple) else entry
        for key, kernel in list(kernels.items())[:1000]:
            state = object.__getattribute__(kernel, "__dict__")
            row = {"function": clean(name, 300), "device": clean(device, 20), "key": clean(key, 1000)}
            rows.append(
                dict(row, hash=clean(state.get("hash"), 100), metadata=clean(state.get("metadata"), 2000))
            )
    return rows


def jit_state() -> Json:
    """All families. One that is loaded but cannot be read yet is named under `unread`, never left out."""
    families = (
        "flashinfer",
        "deep_gemm",
        "cutlass",
        "tilelang",
        "transformer_engine",
        "numba",
        "cupy",
        "jax",
    )
    return {
        "inductor": attempt(inductor_state),
        "triton": attempt(triton_state),
        "unread": [name for name in families if name in sys.modules],
    }
