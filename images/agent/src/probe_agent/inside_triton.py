"""Live specializations of Triton and winners of its autotuner, from state alone."""

from __future__ import annotations

import sys
from typing import Any, Dict, List

from .base import Json, attempt, clean
from .jit_values import (
    MAX_OBJECTS,
    digest_of,
    fields_of,
    function_place,
    instances,
    key_of,
    literal,
    path_text,
    state_of,
)

CHOSEN = (
    "num_warps",
    "num_stages",
    "num_ctas",
    "maxnreg",
    "enable_fp_fusion",
    "ptx_version",
    "ptx_options",
    "debug",
    "shared",
    "triton_version",
)


def loaded_names(module: str) -> Dict[str, Any]:
    """Dictionary of a loaded module; empty when it is not loaded. Nothing is imported."""
    return state_of(sys.modules.get(module))


def triton_state() -> Json:
    """Specializations that live JITFunctions hold, each with what it was compiled for and read from."""
    kind = loaded_names("triton.runtime.jit").get("JITFunction")
    if not isinstance(kind, type):
        return {"loaded": "triton" in sys.modules}
    rows: List[Json] = []
    functions = instances(kind)
    for thing in functions:
        if len(rows) < MAX_OBJECTS:
            found = attempt(_kernels, thing)
            rows += found if isinstance(found, list) else [found]
    return {
        "loaded": True,
        "functions": len(functions),
        "kernels": rows,
        "autotuned": attempt(autotuned),
    }


def _kernels(function: Any) -> List[Json]:
    own = state_of(function)
    name = "%s.%s" % (
        own.get("__module__") or own.get("module"),
        own.get("__qualname__") or own.get("__name__"),
    )
    file, line = function_place(own.get("fn"))
    caches = own.get("device_caches") or own.get("cache") or {}
    rows: List[Json] = []
    for device, entry in list(dict(caches).items())[:16]:
        kernels = entry[0] if isinstance(entry, tuple) else entry
        for key, kernel in list(kernels.items())[:1000]:
            row = {"function": clean(name, 300), "file": file, "line": line, "device": clean(device, 20)}
            rows.append(dict(row, key=clean(key, 1000), **_kernel(kernel)))
    return rows


def _kernel(kernel: Any) -> Json:
    """One compiled kernel: specialization, files it was read from, hash of the image given to the driver."""
    state = state_of(kernel)
    source, metadata = state_of(state.get("src")), fields_of(state.get("metadata"))
    group = state.get("metadata_group")
    target = literal(fields_of(metadata.get("target")))
    names = [key_of(name) for name in list(dict(source.get("signature") or {}))[:256]]
    return {
        "hash": clean(state.get("hash"), 100),
        "name": clean(state.get("name"), 300),
        "binary_sha256": digest_of(state.get("kernel")),
        "handed_over": state.get("module") is not None,
        "paths": {clean(k, 300): path_text(v) for k, v in list(group.items())[:32]}
        if isinstance(group, dict)
        else {},
        "specialization": {
            "arguments": names,
            "signature": literal(source.get("signature")),
            "constants": by_name(source.get("constants"), names),
            "attributes": by_name(source.get("attrs"), names),
            "target": target,
            **{name: literal(metadata[name]) for name in CHOSEN if name in metadata},
        },
    }


def by_name(values: Any, names: List[str]) -> Json:
    """Values that Triton keeps by the place of an argument, as `(2,)`, by its name."""
    found: Json = {}
    for key, value in list(dict(values or {}).items())[:256]:
        place = key[0] if type(key) is tuple and len(key) == 1 else key
        known = type(place) is int and 0 <= place < len(names)
        found[names[place] if known else key_of(key)] = literal(value)
    return found


def autotuned() -> List[Json]:
    """What the autotuner settled on, for each key of each function."""
    rows: List[Json] = []
    for tuner in instances(loaded_names("triton.runtime.autotuner").get("Autotuner")):
        own = state_of(tuner)
        file, line = function_place(own.get("base_fn"))
        name = clean(state_of(own.get("base_fn")).get("__qualname__") or "", 300)
        if not name and file:
            name = clean(own["base_fn"].__qualname__, 300)
        for key, config in list(dict(own.get("cache") or {}).items())[:1000]:
            rows.append(
                {
                    "function": name,
                    "file": file,
                    "line": line,
                    "key": literal(key),
                    "choice": literal({k: v for k, v in state_of(config).items() if k != "pre_hook"}),
                    "kept_on_disk": own.get("cache_results") is True,
                }
            )
    return rows
