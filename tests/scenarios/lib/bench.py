"""Programs that run in the probe's bench: real JIT compilers, and a driver library that needs no GPU.

A scenario that uses it has a file `needs` with the line `probe-bench`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BENCH = Path(os.environ["TIC_PROBE_BENCH"])
PYTHON = str(BENCH / "bin" / "python")
TRITON = {
    "TRITON_DEFAULT_BACKEND": "nvidia",
    "TRITON_DEFAULT_FP_FUSION": "1",
    "TRITON_LIBCUDA_PATH": str(BENCH / "cuda"),
    "LD_LIBRARY_PATH": str(BENCH / "cuda"),
}
"""Triton compiles for compute capability 9.0 and launches against the stub driver library."""
SERVE = (
    "\nimport json as _json, os as _os, signal as _signal\n"
    "_json.dump({'pid': str(_os.getpid())}, open('vars.json.new', 'w'))\n"
    "_os.replace('vars.json.new', 'vars.json')\n"
    "print('ready', flush=True)\n_signal.pause()\n"
)


def environment(**env: str) -> dict[str, str]:
    """The caller's environment with Triton's variables, the bench's programs first in PATH, and `env`."""
    path = f"{BENCH / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return os.environ | TRITON | {"PATH": path} | env


def run(source: str, *, cwd: str | Path = ".", **env: str) -> str:
    """Run a Python program of the bench to its end; its output. The scenario ends when it fails."""
    done = subprocess.run(
        [PYTHON, "-c", source], cwd=cwd, env=environment(**env), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"a program of the bench ended with {done.returncode}: {done.stderr[-1500:]}")
    return done.stdout


def become(source: str, **env: str) -> None:
    """Become a Python program of the bench that says so itself, and stays, once it is through."""
    os.execve(PYTHON, [PYTHON, "-c", source + SERVE], environment(**env))
