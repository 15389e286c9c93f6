"""JIT caches on disk: what is there, when it was made, by which compiler, under which kernel name."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import ModuleType

import pytest

WRAPPER = """
cpp_fused_ge_sum_0 = async_compile.cpp_pybinding(['const float*'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C" void kernel(const float* a) {}
''')
cpp_fused_add_1 = async_compile.cpp_pybinding(['const float*'], r'''
extern "C" void kernel(const float* other) {}
''')
"""
SOURCE = '#include <x>\n#include <torch/csrc/inductor/cpp_prefix.h>\nextern "C" void kernel(const float* a) {}\nint binding;\n'


def cache(folder: Path) -> Path:
    (folder / "tb").mkdir(parents=True)
    (folder / "l7").mkdir()
    (folder / "l7" / "wrap.py").write_text(WRAPPER)
    (folder / "tb" / "k.main.cpp").write_text(SOURCE)
    (folder / "tb" / "k.main.so").write_bytes(b"\x7fELF broken")
    (folder / "tb" / "probe.cpp").write_text("int probe;")
    (folder / "tb" / "probe.so").write_bytes(b"no elf")
    return folder


def test_a_kernel_is_named_by_the_wrapper_that_calls_it(agent: ModuleType, tmp_path: Path) -> None:
    folder = str(cache(tmp_path / "torchinductor_x"))
    places, rows = agent.scan_caches("", [("inductor", folder)], {folder + "/tb/k.main.so"}, 0.0)
    agent.name_kernels("", rows)
    named = {os.path.basename(r["path"]): r.get("kernels") for r in rows}
    assert named["k.main.so"] == named["k.main.cpp"] == ["cpp_fused_ge_sum_0"]
    assert named["probe.so"] is None
    assert [r["mapped"] for r in rows if r["path"].endswith(".so")] == [True, False]
    assert places[0]["files"] == places[0]["listed"] == 5
    assert all("error" in r["code"] for r in rows if r["path"].endswith(".so"))


def test_origin_follows_the_inode_not_the_time_that_a_copy_keeps(agent: ModuleType, tmp_path: Path) -> None:
    folder = cache(tmp_path / "c")
    os.utime(folder / "tb" / "k.main.so", (1, 1))
    _, rows = agent.scan_caches("", [("inductor", str(folder))], set(), time.time() - 60)
    assert {r["origin"] for r in rows} == {"this_run"}
    _, rows = agent.scan_caches("", [("inductor", str(folder))], set(), time.time() + 60)
    assert {r["origin"] for r in rows} == {"before_run"}


def test_a_cache_with_more_files_than_the_limit_is_cut_and_says_so(agent: ModuleType, tmp_path: Path) -> None:
    for i in range(80):
        (tmp_path / f"{i}.so").write_bytes(b"")
    (place,), _ = agent.scan_caches("", [("triton", str(tmp_path))], set(), 0.0, 50)
    assert (place["files"], place["cut_short"]) == (50, True)


def test_links_out_of_a_cache_are_not_followed(agent: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "out").symlink_to("/etc")
    (tmp_path / "c" / "x.so").symlink_to("/etc/passwd")
    assert agent.scan_caches("", [("triton", str(tmp_path / "c"))], set(), 0.0)[1] == []


@pytest.mark.parametrize(
    ("exe", "expected"),
    [
        ("/usr/bin/x86_64-linux-gnu-g++-12", True),
        ("/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", True),
        ("/usr/bin/clang++-15", True),
        ("/usr/local/cuda/bin/ptxas", True),
        ("/usr/bin/python3.11", False),
        ("/usr/bin/false", False),
        (None, False),
    ],
)
def test_compilers_are_known_by_their_program(agent: ModuleType, exe: str | None, expected: bool) -> None:
    assert agent.is_compiler(exe) is expected


def test_the_run_that_wrote_an_artifact_is_named(agent: ModuleType) -> None:
    image = {"title": "g++", "exe": "/usr/bin/g++-12", "argv": ["g++", "a.cpp", "-o", "/c/a.so"]}
    shell = {"title": "sh", "exe": "/bin/dash", "argv": ["sh", "-o", "/c/b.so"]}
    seen = [{"pid": 5, "images": [image]}, {"pid": 6, "images": [shell]}]
    assert agent.compile_commands(seen) == {"/c/a.so": {"pid": 5, "exe": "/usr/bin/g++-12"}}


def test_folders_follow_the_environment(agent: ModuleType) -> None:
    found = agent.places({"HOME": "/h", "USER": "u", "TRITON_CACHE_DIR": "/t"})
    assert ("inductor", "/tmp/torchinductor_u") in found
    assert ("triton", "/t") in found
    assert ("cpp_extension", "/h/.cache/torch_extensions") in found
