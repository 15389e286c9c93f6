"""One process's environment in four views: at exec, as Python has it, as libc has it, and what then counts.

A program can change what Python sees without libc (`os.environ` replaced), what libc sees without Python
(`putenv` in C), and neither changes what the dynamic linker or the interpreter read once, at the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from tic_manifest.model.probe_parts import Process, Variable
from tic_manifest.rules.probe_view import View

WITHHELD = "withheld"
READ_AT_START = re.compile(
    r"^(LD_|GLIBC_TUNABLES$|MALLOC_|PYTHON(HASHSEED|PATH|HOME|NOUSERSITE|STARTUP|OPTIMIZE|SAFEPATH)$)"
)
"""Read once by dynamic linker, allocator or interpreter: a change after the start does nothing."""
NUMERICS = re.compile(
    r"^(OMP_|KMP_|GOMP_|MKL_|OPENBLAS_|BLIS_|GOTO_|NUMEXPR_|ATEN_CPU_CAPABILITY$|DNNL_|ONEDNN_|CUBLAS|NVIDIA_TF32|"
    r"CUDNN_|NVTE_|PYTHONHASHSEED$|LD_PRELOAD$|LD_LIBRARY_PATH$|LD_AUDIT$|GLIBC_TUNABLES$|XLA_FLAGS$|"
    r"NCCL_(ALGO|PROTO|NVLS|COLLNET|MIN_|MAX_)|TORCH_ALLOW_TF32|VLLM_BATCH_INVARIANT$|TRITON_DEFAULT_FP_FUSION$)"
)
"""Variables that choose code, threads or rounding: a difference in one can change a score by itself."""
FRAMEWORKS = re.compile(
    r"^(VLLM_|TORCH|PYTORCH_|TRITON_|NCCL_|CUDA_|FLASHINFER_|DG_JIT_|TILELANG_|CUTE_DSL_|NUMBA_|XLA_|MALLOC_|"
    r"PYTHON(OPTIMIZE|PATH|NOUSERSITE|SAFEPATH)$)"
)
"""Variables of the frameworks: a difference may change which code runs."""
ASIDE = re.compile(
    r"^(VLLM|TORCH|PYTORCH|TRITON|NUMBA|FLASHINFER|TILELANG|CUTE_DSL|CUDA)\w*"
    r"(_DIR|_PATH|_ROOT|_FILE|_NAME|_IDENT|_ID|_PORT|_HOST|_ADDR|LOG\w*|USAGE\w*)$"
)
"""Places, addresses, names of one run, logs; what was loaded from a place is compared itself."""
READERS = {
    "VLLM_": "vllm", "NVTE_": "transformer-engine", "NUMEXPR_": "numexpr", "TRITON_": "triton",
    "TORCH": "torch", "PYTORCH_": "torch", "NUMBA_": "numba", "FLASHINFER_": "flashinfer-python",
    "TILELANG_": "tilelang", "DG_JIT_": "deep-gemm", "CUTE_DSL_": "nvidia-cutlass-dsl", "XLA_": "torch-xla",
}  # fmt: skip
"""The distribution that reads variables of a prefix: without it they mean nothing."""


@dataclass(frozen=True, kw_only=True)
class Views:
    """The views of one process by name of variable. A view that nobody gave is None.

    `overwritten`: the process wrote its title over the memory that holds the environment at exec, so that
    this view has lost entries.
    """

    exec: Mapping[str, str] | None
    python: Mapping[str, str] | None
    libc: Mapping[str, str] | None
    overwritten: bool = False
    hidden: frozenset[str] = field(default_factory=frozenset)

    def names(self) -> list[str]:
        """Every variable that some view has."""
        return sorted({name for view in (self.exec, self.python, self.libc) for name in view or ()})

    def of(self, name: str) -> dict[str, JsonValue]:
        """A variable in each view that was given; None where it is not set."""
        views = {"exec": self.exec, "python": self.python, "libc": self.libc}
        found: dict[str, JsonValue] = {key: view.get(name) for key, view in views.items() if view is not None}
        return {**found, "effective": self.effective(name)}

    def effective(self, name: str) -> str | None:
        """What counts: the value at the start for what is read once there, else what libc has last."""
        late = self.libc if self.libc is not None else self.python
        if self.exec is None:
            return (late or {}).get(name)
        if READ_AT_START.match(name):
            lost = late if self.overwritten else None
            return self.exec.get(name, (lost or {}).get(name))
        return (self.exec if late is None else late).get(name)


def views_of(view: View, process: Process) -> Views:
    """The environment of a process, from outside at exec and from its last view of itself."""
    insides = view.inside(process)
    last = insides[-1] if insides else None
    tables = [process.environ, last.environ if last else None, last.environ_libc if last else None]
    rows = [row for table in tables if isinstance(table, tuple) for row in table]
    return Views(
        exec=_table(process.environ),
        python=_table(last.environ) if last else None,
        libc=_table(last.environ_libc) if last else None,
        overwritten=_overwritten(process),
        hidden=frozenset(row.name for row in rows if row.secret),
    )


def _table(rows: object) -> dict[str, str] | None:
    if not isinstance(rows, tuple):
        return None
    return {row.name: shown(row) for row in rows if isinstance(row, Variable)}


def shown(row: Variable) -> str:
    """A value as a report may show it: in clear, as a hash, or withheld."""
    if row.secret:
        return WITHHELD
    return row.value if row.value is not None else f"sha256:{row.sha256}"


def _overwritten(process: Process) -> bool:
    """A rewritten title lies where arguments and environment were: one word that names no program."""
    argv = process.argv if isinstance(process.argv, tuple) else ()
    program = (process.exe or "").rpartition("/")[2]
    return bool(argv and program) and program.rstrip("0123456789.") not in argv[0]


def numerics(names: Iterable[str], distributions: Iterable[str]) -> list[str]:
    """The closed list: variables that change numerics or the frameworks that compute.

    Without places and names of one run, and without those of a framework that is not among `distributions`
    (normalized names).
    """
    there = set(distributions)
    return [
        name
        for name in names
        if (NUMERICS.match(name) or (FRAMEWORKS.match(name) and not ASIDE.match(name)))
        and all(reader in there for prefix, reader in READERS.items() if name.startswith(prefix))
    ]
