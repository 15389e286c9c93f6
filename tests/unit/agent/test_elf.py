"""ELF files of every brokenness: an observation, never an exception, never a wrong answer."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shared object with a SONAME, a needed library and a RUNPATH."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed: apt-get install gcc libc6-dev")
    folder = tmp_path_factory.mktemp("elf")
    (folder / "dep.c").write_text("int dep(void) { return 1; }\n")
    (folder / "top.c").write_text("int dep(void); int top(void) { return dep(); }\n")
    gcc = ["gcc", "-shared", "-fPIC", "-Wl,--build-id=sha1"]
    subprocess.run([*gcc, "-Wl,-soname,libdep.so.1", "-o", "libdep.so", "dep.c"], cwd=folder, check=True)
    flags = ["-Wl,-soname,libtop.so.2", "-Wl,-rpath,$ORIGIN/x:/opt/y", "-Wl,--enable-new-dtags"]
    subprocess.run([*gcc, *flags, "-o", "libtop.so", "top.c", "-L.", "-ldep"], cwd=folder, check=True)
    return folder / "libtop.so"


def test_identity_and_dependencies_are_those_that_readelf_prints(agent: ModuleType, library: Path) -> None:
    facts = agent.inspect_elf(str(library))
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True).stdout
    assert facts["build_id"] in notes
    assert facts["soname"] == "libtop.so.2"
    assert facts["needed"][0] == "libdep.so.1"
    assert facts["runpath"] == ["$ORIGIN/x", "/opt/y"]
    assert facts["machine"] == "x86_64"


def test_code_identity_ignores_what_lies_outside_the_code(agent: ModuleType, library: Path) -> None:
    first = agent.code_identity(str(library))
    other = library.with_name("other.so")
    subprocess.run(["strip", "--strip-debug", "-o", other, library], check=True)
    assert agent.digest_path(str(other)) != agent.digest_path(str(library))
    assert agent.code_identity(str(other))["text_sha256"] == first["text_sha256"]
    assert first["comment"][0].startswith("GCC:")


def test_every_truncation_is_an_error_or_the_same_answer(
    agent: ModuleType, library: Path, tmp_path: Path
) -> None:
    whole = library.read_bytes()
    expected = agent.inspect_elf(str(library))
    broken = tmp_path / "broken.so"
    for size in range(0, len(whole), 97):
        broken.write_bytes(whole[:size])
        facts = agent.inspect_elf(str(broken))
        assert "error" in facts or facts == expected


def test_random_damage_never_raises(agent: ModuleType, library: Path, tmp_path: Path) -> None:
    chance = random.Random(20261130)
    whole = library.read_bytes()
    broken = tmp_path / "broken.so"
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 12)):
            data[chance.randrange(min(len(data), 2048))] = chance.randrange(256)
        broken.write_bytes(data)
        assert isinstance(agent.inspect_elf(str(broken)), dict)
        assert isinstance(agent.attempt(agent.code_identity, str(broken)), dict)


def test_huge_counts_in_a_tiny_file_cost_nothing(agent: ModuleType, tmp_path: Path) -> None:
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 2**63, 0, 64, 56, 65535, 64, 65535, 1)
    path = tmp_path / "huge.so"
    path.write_bytes(header)
    assert "error" in agent.inspect_elf(str(path))


@pytest.mark.parametrize("content", [b"", b"\x7fEL", b"MZ" * 100, b"\x7fELF\x09\x09" + bytes(100)])
def test_what_is_no_elf_says_so(agent: ModuleType, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "no.so"
    path.write_bytes(content)
    assert "error" in agent.inspect_elf(str(path))


def test_a_fifo_does_not_make_the_agent_wait(agent: ModuleType, tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe.so")
    assert "not a regular file" in agent.inspect_elf(str(tmp_path / "pipe.so"))["error"]


def test_missing_libraries_are_named_with_the_broken_edge(agent: ModuleType, library: Path) -> None:
    linker = agent.Linker("", [], {})
    broken = linker.missing(str(library))
    assert broken == [{"library": "libdep.so.1", "needed_by": str(library)}]


def test_a_loaded_soname_or_a_folder_of_the_environment_answers(agent: ModuleType, library: Path) -> None:
    assert agent.Linker("", [], {"libdep.so.1": "/elsewhere/libdep.so"}).missing(str(library)) == []
    folder = library.parent / "env"
    folder.mkdir(exist_ok=True)
    (folder / "libdep.so.1").write_bytes((library.parent / "libdep.so").read_bytes())
    assert agent.Linker("", [str(folder)], {}).missing(str(library)) == []


def test_the_linker_cache_agrees_with_ldconfig(agent: ModuleType) -> None:
    cache = agent.parse_cache(Path("/etc/ld.so.cache").read_bytes())
    printed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    for line in printed.splitlines()[1:]:
        if "=>" in line:
            assert line.rpartition("=> ")[2] in cache[line.split()[0]]


@pytest.mark.parametrize("cut", [0, 10, 40, 60, 500, 5000])
def test_a_cut_linker_cache_gives_what_it_holds(agent: ModuleType, cut: int) -> None:
    assert isinstance(agent.parse_cache(Path("/etc/ld.so.cache").read_bytes()[:cut]), dict)
