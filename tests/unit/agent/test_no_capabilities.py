"""A library that was replaced after it was loaded, seen with and without the right to open what is mapped."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

AGENT = Path(__file__).resolve().parents[3] / "images" / "agent" / "probe_agent.py"
LOADS = "import ctypes, sys\nctypes.CDLL(sys.argv[1])\nprint('ready', flush=True)\nsys.stdin.read()\n"
DROP = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("gcc") or not shutil.which("setpriv"),
    reason="needs root, gcc and setpriv",
)


def library(path: Path, value: int) -> bytes:
    """A shared library whose one function gives `value`; its bytes."""
    source = f"int demo(void) {{ return {value}; }}\n"
    argv = ["gcc", "-x", "c", "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o", str(path), "-"]
    subprocess.run(argv, input=source, text=True, check=True)
    return path.read_bytes()


@pytest.fixture
def replaced(tmp_path: Path) -> Iterator[tuple[int, Path, bytes]]:
    """A process without capabilities that holds a library, its path, and the bytes that were loaded."""
    place = tmp_path / "libdemo.so"
    loaded = library(place, 1)
    argv = [*DROP, sys.executable, "-S", "-c", LOADS, str(place)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
        library(tmp_path / "new.so", 2)
        (tmp_path / "new.so").replace(place)
        yield worker.pid, place, loaded
        worker.kill()


def seen(pid: int, place: Path, *before: str) -> tuple[Any, Any]:
    """The agent's row of the file, and the process's row of its mapping."""
    out = place.parent / "out.json"
    argv = [*before, sys.executable, "-I", str(AGENT), "snapshot", "--alone", f"--pid={pid}", f"--out={out}"]
    subprocess.run(argv, check=True)
    report = json.loads(out.read_bytes())
    index = next(n for n, row in enumerate(report["files"]) if row["path"] == str(place))
    mapped = report["snapshots"][-1]["processes"][0]["mapped"]
    return report["files"][index], next(row for row in mapped if row["file"] == index)


def test_with_the_right_the_bytes_that_were_loaded_are_hashed(replaced: tuple[int, Path, bytes]) -> None:
    pid, place, loaded = replaced
    file, mapped = seen(pid, place)
    assert file["deleted"] and file["sha256"] == hashlib.sha256(loaded).hexdigest()
    assert (mapped["read_by"], mapped["executing"]["verdict"]) == ("map_files", "same")


def test_without_it_each_field_says_what_stands_in(replaced: tuple[int, Path, bytes]) -> None:
    pid, place, _ = replaced
    with_right = seen(pid, place)[1]["kernel"]
    file, mapped = seen(pid, place, *DROP)
    assert file["deleted"] and "sha256" not in file and "map_files: PermissionError" in file["hash_reason"]
    assert mapped["read_by"] == "none" and mapped["executing"]["verdict"] == "unverifiable"
    assert "map_files: PermissionError" in mapped["executing"]["reason"]
    # the kernel still says which build id lies in memory, where it can be asked (Linux 6.11)
    assert mapped["kernel"] == with_right
