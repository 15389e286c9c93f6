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

AGENT = "/opt/tic/probe_agent.py"
WAIT_S = 600.0
ANSWERS = {"ready": "continue", "done": "finish"}


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


def hold(mark: str, pid: int) -> None:
    """Write the mark `ready` or `done` and wait for its answer, `continue` or `finish`, in $TIC_PROBE_OUT.

    `pid` is the process that holds the model. Raises TimeoutError after WAIT_S seconds.
    """
    out = _out()
    if out is None:
        return
    part, answer = out / f"{mark}.part", out / ANSWERS[mark]
    part.write_text(json.dumps({"pid": pid, "driver_pid": os.getpid()}, sort_keys=True) + "\n")
    part.replace(out / mark)
    limit = time.monotonic() + float(os.environ.get("TIC_PROBE_WAIT_S", WAIT_S))
    while not answer.exists():
        if time.monotonic() > limit:
            raise TimeoutError(f"nobody wrote {answer.name} after the mark {mark}")
        time.sleep(0.05)
