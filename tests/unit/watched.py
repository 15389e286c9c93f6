"""Runs small workers under the agent as it ships, and finds things in what it reports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.probe import ProbeReport
from tic_manifest.rules.probe import judge_observation

ROOT = Path(__file__).resolve().parents[2]
AGENT = ROOT / "images" / "agent" / "probe_agent.py"
PRELUDE = f"""
import ctypes, importlib.util, mmap, os, signal, subprocess, sys, time
spec = importlib.util.spec_from_file_location("agent", {str(AGENT)!r})
agent = importlib.util.module_from_spec(spec); sys.modules["agent"] = agent; spec.loader.exec_module(agent)
out = os.environ["TIC_PROBE_OUT"]
def title(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
def hold(path):
    data = open(path, "rb").read()
    return bytearray(data)
def ready(label="ready"):
    agent.inside_snapshot(out, label)
    assert agent.wait_at_mark(out, "ready", 120)
"""
Report = dict[str, Any]
CODE = "int answer(void) { return %d; }\nint other(int x) { return x * 3 + answer(); }\n"


def observe(folder: Path, body: str, *options: str, env: dict[str, str] | None = None) -> Report:
    """Run a worker under the agent; the agent itself always ends with 0."""
    script = folder / "worker.py"
    script.write_text(PRELUDE + textwrap.dedent(body))
    out = folder / "out"
    command = [
        sys.executable,
        "-I",
        str(AGENT),
        "run",
        "--role",
        "trainer",
        "--out",
        str(out),
        "--timeout",
        "100",
    ]
    command += [*options, "--", sys.executable, str(script), str(folder)]
    done = subprocess.run(
        command, env=os.environ | (env or {}), capture_output=True, text=True, timeout=150, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    raw = (out / "probe.json").read_bytes()
    judge_observation(
        read_model(raw, ProbeReport, "probe.json")
    )  # whatever happened, the reader knows its shape
    return dict(json.loads(raw))


def build(folder: Path, name: str, source: str, *flags: str) -> Path:
    """A shared library made by gcc; without one the test is skipped, and that is printed."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed: apt-get install gcc libc6-dev")
    (folder / f"{name}.c").write_text(source)
    path = folder / f"{name}.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", path, folder / f"{name}.c", *flags], check=True)
    return path


def mapped(report: Report, name: str, snapshot: int = 0) -> dict[str, Any]:
    """Row of a mapped file, with the file's own row under `row`."""
    for process in report["snapshots"][snapshot]["processes"]:
        for row in process["mapped"]:
            if report["files"][row["file"]]["path"].endswith(name):
                return dict(row, row=report["files"][row["file"]])
    raise AssertionError(f"{name} is not mapped")
