"""Which mapped object answers to key functions of this process: looked up, never called."""

from __future__ import annotations

import os
from typing import List, Optional

from .base import Json, attempt, text
from .ledger import link_map
from .maps import Mapping, read_maps
from .memory import symbol_value

KEY_SYMBOLS = (
    "cos", "expf", "malloc", "free", "memcpy", "pthread_create", "omp_get_max_threads", "GOMP_parallel",
    "__kmpc_fork_call", "cblas_sgemm", "sgemm_", "dnnl_sgemm", "mkl_get_version", "cudaRuntimeGetVersion",
    "cudaLaunchKernel", "cuGetProcAddress", "cuModuleLoadData", "cublasLtMatmul", "cudnnGetVersion",
    "ncclGetVersion", "ncclCommSuspend", "nvrtcCompileProgram", "nvshmem_my_pe",
)  # fmt: skip


def symbol_bindings() -> List[Json]:
    """`{"name", "object"}` of each key function in the global scope; None: no object there offers it."""
    import ctypes

    lookup = ctypes.CDLL(None).dlsym
    lookup.restype, lookup.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
    mappings, objects = read_maps(os.getpid())[0], link_map()["objects"]
    program = os.path.realpath("/proc/self/exe")
    rows: List[Json] = []
    for name in KEY_SYMBOLS:
        found = object_at(mappings, lookup(None, name.encode("ascii")))
        rows.append({"name": name, "object": provider(name, program, objects) if found == program else found})
    return rows


def provider(name: str, program: str, objects: List[str]) -> Optional[str]:
    """Behind an address in the program: it may be its own stub for the first object that defines the name."""
    for path in [program, *objects[:200]]:
        if path.startswith("/"):
            defined = attempt(symbol_value, path, name.encode("ascii"))
            if isinstance(defined, int):
                return path
    return None


def object_at(mappings: List[Mapping], address: Optional[int]) -> Optional[str]:
    """The file that is mapped at an address, as the memory map names it."""
    for one in mappings:
        if address is not None and one.start <= address < one.end:
            return text(one.path)
    return None
