"""Hooks for the probe. Without TIC_PROBE_OUT in the environment every call returns at once.

In the process that holds the model, `snapshot` loads the in-process part of the probe agent by path and lets
it look. The driver then says that it is ready and waits, so that the view from outside can be taken while the
same process lives.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

AGENT = "/opt/tic/probe_agent.py"
WAIT_S = 600.0


def _out() -> Path | None:
    folder = os.environ.get("TIC_PROBE_OUT")
    return Path(folder) if folder else None


def _agent() -> ModuleType:
    """The agent's module, by path: it is no part of any package and must not be found by name."""
    name = "tic_probe_agent"
    if name in sys.modules:
        return sys.modules[name]
    path = os.environ.get("TIC_PROBE_AGENT", AGENT)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"no probe agent at {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def snapshot(label: str) -> bool:
    """Take the inside view of this process under `label`; False where no probe is running."""
    out = _out()
    if out is None:
        return False
    _agent().inside_snapshot(str(out), label)
    return True


def hold(label: str, **facts: Any) -> None:
    """Write $TIC_PROBE_OUT/ready and wait for $TIC_PROBE_OUT/continue; raises TimeoutError after WAIT_S."""
    out = _out()
    if out is None:
        return
    mark = out / "ready.part"
    mark.write_text(json.dumps({"label": label, "driver_pid": os.getpid(), **facts}, sort_keys=True) + "\n")
    mark.replace(out / "ready")
    limit = time.monotonic() + float(os.environ.get("TIC_PROBE_WAIT_S", WAIT_S))
    while not (out / "continue").exists():
        if time.monotonic() > limit:
            raise TimeoutError(f"nobody wrote {out / 'continue'}")
        time.sleep(0.05)
