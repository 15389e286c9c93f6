"""A tree of FlashInfer's layout: sources and a library compiled ahead of time in the wheel, a cache built by ninja.

The real package needs a CUDA toolkit to build anything, so the sources here are C, compiled by gcc under the names that
FlashInfer gives: `data/csrc/page.cu`, `data/aot/page/page.so`, `cached_ops/page/{build.ninja,page.so}`, and
`flashinfer.jit.core.jit_spec_registry` with its specs, which loads the first that can be loaded, as FlashInfer does.
"""

from __future__ import annotations

import base64
import hashlib
import os
import time
from pathlib import Path

from live import gcc, wheel_installed

CORE = """
import ctypes
import os
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]


class JitSpec:
    def __init__(self, name, sources):
        self.name, self.sources = name, sources


class JitSpecRegistry:
    def __init__(self):
        self._specs = {"page": JitSpec("page", [HERE / "data/csrc/page.cu"])}


jit_spec_registry = JitSpecRegistry()


def load(name):
    try:
        return ctypes.CDLL(str(HERE / f"data/aot/{name}/{name}.so"))
    except OSError:
        cache = os.environ["FLASHINFER_WORKSPACE_BASE"] + "/.cache/flashinfer/0.7/90a/cached_ops"
        return ctypes.CDLL(f"{cache}/{name}/{name}.so")
"""
SOURCE = "int answer(void) {{ return {value}; }}\n"


def package(*, aot: bool) -> Path:
    """The wheel below `site`, with a library compiled ahead of time or with none; the folder of its sources."""
    files = {"flashinfer/__init__.py": "", "flashinfer/jit/__init__.py": "", "flashinfer/jit/core.py": CORE}
    root = wheel_installed(
        "site", "flashinfer-python", files | {"flashinfer/data/csrc/page.cu": SOURCE.format(value=7)}
    )
    if aot:
        library = root / "flashinfer/data/aot/page/page.so"
        build(library, 7)
        record(root, library)
    return root / "flashinfer/data/csrc"


def build(library: Path, value: int) -> None:
    """A library of the source with this value."""
    library.parent.mkdir(parents=True)
    gcc(SOURCE.format(value=value), "-shared", "-fPIC", "-o", str(library))


def record(root: Path, file: Path) -> None:
    """A line of the wheel's RECORD for a file that is no text."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).rstrip(b"=").decode()
    with next(root.glob("flashinfer_python*.dist-info/RECORD")).open("a") as stream:
        stream.write(f"{file.relative_to(root)},sha256={digest},{file.stat().st_size}\n")


def cached(source: Path, value: int) -> None:
    """The entry of the workspace cache, as ninja leaves it."""
    folder = Path(".cache/flashinfer/0.7/90a/cached_ops/page").absolute()
    build(folder / "page.so", value)
    edge = (
        f"cxx = c++\nbuild page.cuda.o: cuda_compile {source / 'page.cu'}\nbuild page.so: link page.cuda.o\n"
    )
    (folder / "build.ninja").write_text(edge)
    time.sleep(1.5)  # older than the worker that starts next


def edit(source: Path, *, older: bool = False) -> None:
    """Let the shipped source say 8, with a time that is older than anything built where that is asked for."""
    (source / "page.cu").write_text(SOURCE.format(value=8))
    if older:
        os.utime(source / "page.cu", (1_700_000_000, 1_700_000_000))


def run(answer: int) -> str:
    """A program that loads the module and sees which code it got."""
    return f"from flashinfer.jit.core import load\nassert load('page').answer() == {answer}\n"
