"""Processes that make a probe's life hard: tens of thousands of mappings, and an end in the middle of a look."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

AGENT = Path(__file__).resolve().parents[3] / "images" / "agent" / "probe_agent.py"
RANGES = 60_000
MANY = f"""
import ctypes, mmap, sys
private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
area = mmap.mmap(-1, {RANGES} * mmap.PAGESIZE, private, mmap.PROT_READ | mmap.PROT_WRITE)
first = ctypes.addressof(ctypes.c_char.from_buffer(area))
protect = ctypes.CDLL(None).mprotect
protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for number in range(0, {RANGES}, 2):
    if protect(first + number * mmap.PAGESIZE, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC):
        sys.exit("mprotect")
print("ready", flush=True)
sys.stdin.read()
"""

MEASURED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""A small program between: a child starts with the peak memory of whoever made it, here the test runner."""


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[str]]:
    """A process with 60,000 mappings, every second one executable."""
    argv = [sys.executable, "-S", "-c", MANY]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stdout.readline() == "ready\n"
        yield running
        running.kill()


def agent_argv(pid: int, out: Path) -> list[str]:
    return [sys.executable, "-I", str(AGENT), "snapshot", "--alone", f"--pid={pid}", f"--out={out}"]


def test_sixty_thousand_mappings_are_counted_within_bounds(
    worker: subprocess.Popen[str], tmp_path: Path
) -> None:
    began = time.monotonic()
    argv = [sys.executable, "-S", "-c", MEASURED, *agent_argv(worker.pid, tmp_path / "out.json")]
    used = int(subprocess.run(argv, check=True, timeout=60, stdout=subprocess.PIPE, text=True).stdout)
    report: Any = json.loads((tmp_path / "out.json").read_bytes())
    maps = report["snapshots"][-1]["processes"][0]["maps"]
    assert maps["lines"] > RANGES and not maps["truncated"] and maps["malformed"] == 0
    assert maps["anonymous_executable"]["count"] == RANGES // 2
    assert time.monotonic() - began < 30
    assert used < 200 << 10  # KiB


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.2, 0.3, 0.5])
def test_a_process_that_ends_meanwhile_is_gone_or_reported(
    worker: subprocess.Popen[str], tmp_path: Path, delay: float
) -> None:
    out = tmp_path / "out.json"
    with subprocess.Popen(agent_argv(worker.pid, out), stderr=subprocess.PIPE, text=True) as looking:
        time.sleep(delay)
        worker.kill()
        worker.wait()
        _, said = looking.communicate(timeout=60)
    if looking.returncode == 0:
        assert json.loads(out.read_bytes())["schema"].startswith("tic/probe-agent/")
        return
    assert not out.exists()
    assert "ProcessLookupError" in said.splitlines()[-1]
    assert os.path.exists(f"/proc/{worker.pid}") is False
