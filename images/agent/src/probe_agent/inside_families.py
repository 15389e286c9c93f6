"""The other JIT compilers of this process, read by state; one that cannot be read says why."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Tuple

from .base import Json, attempt, clean
from .inside_triton import loaded_names
from .jit_values import fields_of, function_place, instances, literal, path_text, state_of


def numba_state() -> List[Json]:
    """Compiled signatures of live dispatchers: found on disk or compiled now, and from which index."""
    rows: List[Json] = []
    for kind in (
        loaded_names("numba.core.registry").get("CPUDispatcher"),
        loaded_names("numba.core.dispatcher").get("Dispatcher"),
    ):
        for dispatcher in instances(kind):
            rows += _numba_rows(state_of(dispatcher))
    return rows[:20_000]


def _numba_rows(own: Dict[str, Any]) -> List[Json]:
    function = own.get("py_func")
    file, line = function_place(function)
    words = [getattr(function, word, "") for word in ("__module__", "__qualname__")] if file else []
    name = clean(".".join(words), 300)
    index = path_text(state_of(state_of(own.get("_cache")).get("_cache_file")).get("_index_path"))
    rows = []
    for signature, result in list(dict(own.get("overloads") or {}).items())[:200]:
        names = [clean(state_of(one).get("name"), 200) for one in signature]
        fields = fields_of(result)
        rows.append(
            {
                "function": name,
                "file": file,
                "line": line,
                "signature": names,
                "index": index,
                # numba keeps no metadata with what it loads (rules/probe.md, section 2)
                "from_disk": "metadata" in fields and fields["metadata"] is None,
            }
        )
    return rows


def extension_state() -> List[Json]:
    """Versions of extensions that torch.utils.cpp_extension built or found in this process."""
    versioner = loaded_names("torch.utils.cpp_extension").get("JIT_EXTENSION_VERSIONER")
    entries = state_of(versioner).get("entries")
    rows = []
    for name, entry in list(entries.items())[:1000] if isinstance(entries, dict) else ():
        rows.append({"name": clean(name, 300), "version": literal(fields_of(entry).get("version"))})
    return rows


def flashinfer_state() -> List[Json]:
    """Modules and sources that FlashInfer's registry names. Which file runs, only the memory map says."""
    registry = loaded_names("flashinfer.jit.core").get("jit_spec_registry")
    rows = []
    for name, spec in list(dict(state_of(registry).get("_specs") or {}).items())[:5000]:
        own = fields_of(spec)
        sources = own.get("sources")
        rows.append(
            {
                "name": clean(own.get("name") or name, 300),
                "sources": [path_text(one) for one in list(sources)[:200]]
                if isinstance(sources, (list, tuple))
                else [],
            }
        )
    return rows


def tilelang_state() -> List[Json]:
    """Keys of the kernels that TileLang's caches hold in memory."""
    rows = []
    for module, name in list(sys.modules.items()):
        if module.startswith("tilelang.cache"):
            for kind in state_of(name).values():
                cache = kind.__dict__.get("_instance") if isinstance(kind, type) else None
                held = state_of(cache).get("_memory_cache")
                keys = list(held)[:5000] if isinstance(held, dict) else []
                rows += [{"key": clean(key, 300)} for key in keys]
    return rows


def cute_state() -> List[Json]:
    """Functions that the CuTe DSL compiled; their cubin is only kept when CUTE_DSL_KEEP asked for it."""
    rows = []
    for name, kind in list(loaded_names("cutlass.base_dsl.jit_executor").items()):
        if name.endswith("JitCompiledFunction"):
            rows += [{"function": clean(state_of(one).get("function_name"), 300)} for one in instances(kind)]
    return rows


READERS: Dict[str, Tuple[str, Callable[[], List[Json]]]] = {
    "numba": ("numba", numba_state),
    "cpp_extension": ("torch.utils.cpp_extension", extension_state),
    "flashinfer": ("flashinfer", flashinfer_state),
    "tilelang": ("tilelang", tilelang_state),
    "cute_dsl": ("cutlass", cute_state),
}
UNREADABLE = {
    "deep_gemm": ("deep_gemm", "its table of kernels lies in C++; only its cache folder is read"),
    "transformer_engine": ("transformer_engine", "its NVRTC kernels lie in C++ and on no disk"),
    "cupy": ("cupy", "no reader"),
    "jax": ("jax", "no reader"),
}


def families_state() -> Json:
    """{family: {"rows": […]} or {"unread": reason}} of the families whose module is loaded."""
    found: Json = {}
    for family, (module, reader) in READERS.items():
        if module in sys.modules:
            rows = attempt(reader)
            found[family] = {"rows": rows} if isinstance(rows, list) else {"unread": rows["error"]}
    for family, (module, reason) in UNREADABLE.items():
        if module in sys.modules:
            found[family] = {"unread": reason}
    return found
