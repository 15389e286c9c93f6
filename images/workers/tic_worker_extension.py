"""Mixed into vLLM's worker class (`worker_extension_cls`): runs in the process that really holds the model.

vLLM imports this module in that process before the model is loaded, hence the snapshot at import.
"""

from __future__ import annotations

import os
from typing import Any

import tic_hooks
import torch

tic_hooks.snapshot("start")


class WorkerExtension:
    """Calls made by `LLM.collective_rpc`; `self` is vLLM's worker."""

    def tic_snapshot(self, label: str) -> dict[str, Any]:
        """Inside view of the model holder; answers with its pid and whether a probe was there."""
        return {"pid": os.getpid(), "taken": tic_hooks.snapshot(label)}

    def tic_backends(self) -> dict[str, Any]:
        """The kernels this worker really uses, read from its loaded model."""
        model = self.model_runner.model  # type: ignore[attr-defined]
        gemm: set[str] = set()
        attention: set[str] = set()
        for module in model.modules():
            code = getattr(getattr(module, "cpu_linear", None), "__code__", None)
            if code is not None:
                gemm.add(next(reversed(code.co_names), "unknown"))
            if getattr(module, "attn_backend", None) is not None:
                attention.add(f"{module.attn_backend.get_name()}/{getattr(module, 'isa', 'unknown')}")
        return {
            "pid": os.getpid(),
            "attention": ",".join(sorted(attention)),
            "gemm": ",".join(sorted(gemm)),
            "model": type(model).__name__,
            "weights": ",".join(sorted({str(p.dtype) for p in model.parameters()})),
            "kv_cache": ",".join(sorted({str(cache.dtype) for cache in self.model_runner.kv_caches})),  # type: ignore[attr-defined]
            "threads": torch.get_num_threads(),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        }
