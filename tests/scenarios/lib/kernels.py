"""Kernels for the JIT scenarios: a wheel with a Triton kernel, and workers that launch it in the bench.

`installed()` puts the wheel into `site`; `launch(...)` is a program that launches and, as a worker does, writes its
view from inside where TIC_PROBE_OUT says.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from bench import BENCH, become, run
from live import wheel_installed

AGENT = Path(__file__).resolve().parents[3] / "images" / "agent"
KERNEL = '''
import triton
import triton.language as tl


@triton.jit
def add(x, y, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1.5, mask=i < n)


class Memory:
    """A device pointer that nothing is behind: the stub driver library runs nothing."""

    dtype = tl.float32

    def data_ptr(self):
        return 1 << 44


def launch(n=1000):
    add[(1,)](Memory(), Memory(), n, SIZE=128)
'''
VIEW = """
import os, sys
sys.path.append({agent!r})
import probe_agent
os.makedirs(os.environ["TIC_PROBE_OUT"], exist_ok=True)
probe_agent.inside_snapshot(os.environ["TIC_PROBE_OUT"], "now")
"""


def view() -> str:
    """Source of the line by which a worker writes its view from inside."""
    return VIEW.format(agent=str(AGENT))


def installed(site: str = "site", **files: str) -> Path:
    """The wheel with the kernel, below `site`; `files` are more modules of it."""
    modules = {f"tic_kernels/{name}.py": text for name, text in files.items()}
    return wheel_installed(site, "tic-kernels", {"tic_kernels/__init__.py": KERNEL, **modules})


def places(cache: str | Path = "cache", site: str = "site") -> dict[str, str]:
    """Variables of a worker: its cache, its modules, its output folder; nothing of the user's home."""
    here = Path.cwd()
    return {
        "TRITON_CACHE_DIR": str(here / cache),
        "PYTHONPATH": str(here / site),
        "TIC_PROBE_OUT": str(here / "views"),
        "HOME": str(here / "nobody"),
        "TORCHINDUCTOR_CACHE_DIR": str(here / "inductor"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def prewarm(source: str = "import tic_kernels\ntic_kernels.launch()\n", **env: str) -> None:
    """Fill the cache by a process of its own, and wait until it is older than what starts next."""
    run(source, **(places() | env))
    time.sleep(1.5)


def work(source: str = "import tic_kernels\ntic_kernels.launch()\n", **env: str) -> None:
    """Become the worker that is judged."""
    become(source + view(), **(places() | env))


def entry(cache: str | Path = "cache", name: str = "add") -> Path:
    """The folder of the one entry of a kernel."""
    (found,) = Path(cache).glob(f"*/{name}.cubin")
    return found.parent


def compiler_beside() -> Path:
    """A folder with a copy of the bench's ptxas programs, to be changed."""
    folder = Path("ptxas").absolute()
    folder.mkdir()
    for found in BENCH.glob("lib/python*/site-packages/triton/backends/nvidia/bin/ptxas*"):
        shutil.copy2(found, folder / found.name)
    return folder
