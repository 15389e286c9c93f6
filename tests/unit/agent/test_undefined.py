"""Symbols that nobody defines: the deepest object that lacks one is named, and broken files are no crash."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

MANGLED = "_ZN3c1010ScalarType5kFp99Ev"


def gcc(folder: Path, source: str, *argv: str) -> None:
    command = ["gcc", "-x", "c", "-", "-shared", "-fPIC", "-Wl,-rpath,$ORIGIN", "-L.", *argv]
    subprocess.run(command, input=source, text=True, check=True, cwd=folder)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """libtop.so needs liblower.so, which needs a C++ function and a version that nobody has."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed: apt-get install gcc libc6-dev")
    folder = tmp_path_factory.mktemp("chain")
    for name in ("NEW", "OLD"):
        (folder / "map").write_text(f"{name} {{ global: given; local: *; }};\n")
        gcc(
            folder,
            "int given(void) { return 1; }",
            "-Wl,--version-script,map",
            "-Wl,-soname,libgiven.so",
            "-o",
            "libgiven.so",
        )
        if name == "NEW":
            gcc(folder, "int given(void); int asks(void) { return given(); }", "-o", "libasks.so", "-lgiven")
    gcc(folder, f"int {MANGLED}(void); int lower(void) {{ return {MANGLED}(); }}", "-o", "liblower.so")
    gcc(folder, "int lower(void); int top(void) { return lower(); }", "-o", "libtop.so", "-llower")
    return folder


def lacking(agent: ModuleType, path: Path, *mapped: Path) -> list[dict[str, object]]:
    known = {str(p) for p in mapped} | {"/lib/x86_64-linux-gnu/libc.so.6"}
    resolver = agent.Resolver("", known, agent.Linker("", [], {}))
    found: list[dict[str, object]] = resolver.lacking(str(path))
    return found


def test_the_first_broken_edge_is_named_and_not_the_importer(agent: ModuleType, chain: Path) -> None:
    row = {
        "symbol": MANGLED,
        "version": None,
        "needed_by": str(chain / "liblower.so"),
        "other_version_in": None,
    }
    assert lacking(agent, chain / "libtop.so") == [row]


def test_another_version_of_a_symbol_is_said_with_its_library(agent: ModuleType, chain: Path) -> None:
    (row,) = lacking(agent, chain / "libasks.so")
    assert (row["symbol"], row["version"]) == ("given", "NEW")
    assert row["other_version_in"] == str(chain / "libgiven.so")


def test_what_a_loaded_library_defines_is_not_lacking(agent: ModuleType, chain: Path) -> None:
    gcc(chain, f"int {MANGLED}(void) {{ return 1; }}", "-o", "libhelp.so")
    assert lacking(agent, chain / "libtop.so", chain / "libhelp.so") == []
    assert lacking(agent, chain / "libgiven.so") == []


def test_cxx_names_are_put_in_words_and_others_are_not(agent: ModuleType) -> None:
    assert agent.demangled([MANGLED, "given"]) == ["c10::ScalarType::kFp99()", None]
    assert agent.demangled([]) == []


def test_broken_files_give_symbols_or_an_error_and_nothing_else(
    agent: ModuleType, chain: Path, tmp_path: Path
) -> None:
    whole = (chain / "libasks.so").read_bytes()
    generator = random.Random(5)
    for at in range(400):
        data = bytearray(whole[: generator.randrange(len(whole))] if at % 2 else whole)
        for _ in range(generator.randrange(1, 40)):
            if data:
                data[generator.randrange(len(data))] = generator.randrange(256)
        path = tmp_path / "broken.so"
        path.write_bytes(data)
        try:
            for symbol in agent.dynamic_symbols(str(path)):
                assert len(symbol.name) <= 8000
        except (agent.ElfError, OSError, struct.error, OverflowError):
            continue
