"""The JIT ledger on caches that nobody trusts: foreign, truncated, huge, linked, nested."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TTIR = """#loc = loc("/src/kernels.py":3:1)
module {
  tt.func public @add(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc)), %n: i64 loc("n"(#loc))) attributes {noinline = false} {
"""


def disk(agent: ModuleType, **mounts: str) -> Any:
    return agent.CacheDisk("", time.time() + 60, {"/": "ext4", **mounts}, {}, agent.Budget(60.0))


def cached(folder: Path, key: str = "KEY", children: Path | None = None) -> str:
    """An entry as Triton lays it out; its group file leads to `children`."""
    place = folder / key
    place.mkdir(parents=True)
    target = (children or place).absolute()
    (place / "add.ttir").write_text(TTIR)
    (place / "add.cubin").write_bytes(b"\x7fELF broken")
    (place / "add.json").write_text(
        json.dumps({"num_warps": 4, "triton_version": "3.9.0", "target": {"arch": 90}})
    )
    names = ("add.ttir", "add.cubin", "add.json")
    (place / "__grp__add.json").write_text(json.dumps({"child_paths": {n: str(target / n) for n in names}}))
    return str(place / "__grp__add.json")


def test_what_the_files_say(agent: ModuleType, tmp_path: Path) -> None:
    (row,) = agent.triton_entries(disk(agent), [cached(tmp_path)], [], False)
    assert row["specialization"]["signature"] == {"x": "!tt.ptr<f32>", "n": "i64"}
    assert row["specialization"]["attributes"]["x"] == "tt.divisibility = 16 : i32"
    assert row["specialization"]["num_warps"] == 4 and row["specialization"]["constants"] is None
    assert (row["origin"], row["loaded"], row["made_from"]) == ("left_over", None, "/src/kernels.py")
    assert row["foreign"] == ["made from /src/kernels.py, which is not here"]
    assert row["error"].startswith("artifact: ")


def test_a_group_file_that_leads_elsewhere(agent: ModuleType, tmp_path: Path) -> None:
    cached(tmp_path / "old")
    path = cached(tmp_path / "new", children=tmp_path / "old" / "KEY")
    (row,) = agent.triton_entries(disk(agent), [path], [], True)
    assert row["origin"] == "elsewhere" and row["loaded"] is False
    assert row["foreign"][0] == f"its group file leads to {tmp_path / 'old' / 'KEY'}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "group file"),
        ("{", "group file"),
        ("[]", "no child_paths"),
        ('{"child_paths": 3}', "no child_paths"),
        ("[" * 100_000, "group file"),
        ('{"child_paths": {"add.json": 5}}', "names no metadata"),
        ('{"child_paths": {"add.json": "../../../../etc/passwd"}}', "metadata"),
    ],
)
def test_broken_group_files_are_said(text: str, said: str, agent: ModuleType, tmp_path: Path) -> None:
    path = cached(tmp_path)
    Path(path).write_text(text)
    (row,) = agent.triton_entries(disk(agent), [path], [], True)
    assert said in row["error"]


def test_a_huge_json_is_not_read(agent: ModuleType, tmp_path: Path) -> None:
    path = cached(tmp_path)
    with (tmp_path / "KEY" / "add.json").open("wb") as stream:
        stream.truncate(1 << 33)
    (row,) = agent.triton_entries(disk(agent), [path], [], True)
    assert row["error"] and row["specialization"]["signature"]


def test_entries_are_bounded(agent: ModuleType, tmp_path: Path) -> None:
    path = cached(tmp_path)
    assert len(agent.triton_entries(disk(agent), [path] * 6000, [], True)) == agent.MAX_ENTRIES


@pytest.mark.parametrize(
    ("fstype", "origin"),
    [("overlay", "image"), ("squashfs", "image"), ("tmpfs", "left_over"), ("ext4", "left_over")],
)
def test_origin_by_the_file_system(fstype: str, origin: str, agent: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "x.so"
    file.write_bytes(b"")
    assert disk(agent, **{str(tmp_path): fstype}).origin(str(file)) == origin


def test_a_file_written_after_the_start_is_of_this_run(agent: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "x.so"
    file.write_bytes(b"")
    os.utime(file, (1, 1))
    assert agent.CacheDisk("", time.time() - 60, {}, {}, agent.Budget(1.0)).origin(str(file)) == "this_run"


def test_sources_of_a_ninja_file(agent: ModuleType) -> None:
    text = "cxx = c++\nbuild main.o: compile /a$ b/main.cpp /c/d.cpp | extra\nbuild x.so: link main.o\n"
    assert agent.ninja_sources(text) == ["/a b/main.cpp", "/c/d.cpp"]


def test_a_source_with_an_older_time_that_was_written_later(agent: ModuleType, tmp_path: Path) -> None:
    artifact, source = tmp_path / "x.so", tmp_path / "x.cpp"
    artifact.write_bytes(b"")
    time.sleep(0.02)
    source.write_text("")
    os.utime(source, (1, 1))
    assert "with an older time" in agent.changed_since(disk(agent), str(source), str(artifact))
    os.utime(source, (time.time() + 9, time.time() + 9))
    assert "newer" in agent.changed_since(disk(agent), str(source), str(artifact))


def test_a_pickle_is_never_built(agent: ModuleType, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    index = tmp_path / "m.f-1.py311.nbi"
    index.write_bytes(b"\x80\x04\x8c\x060.68.1\x94.cos\nsystem\n(S'touch " + str(trap).encode() + b"'\ntR.")
    assert agent.numba_index(disk(agent), str(index)) == {"compiler": "numba 0.68.1"}
    index.write_bytes(b"\x80\x04\x8c\xff")
    assert "error" in agent.numba_index(disk(agent), str(index))
    assert not trap.exists()


@pytest.mark.parametrize(
    "flag",
    ["-fplugin=/tmp/x.so", "-specs=/tmp/x", "-wrapper", "-B/tmp", "@/tmp/flags", "-Wl,-plugin,/tmp/x.so"],
)
def test_flags_that_could_run_something_are_not_repeated(
    flag: str, agent: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "build.ninja").write_text(f"cxx = c++\ncflags = -O2 {flag}\n")
    row = {"artifact": str(tmp_path / "x.so"), "sources": []}
    found = agent.extension_again(row, agent.Budget(5.0))
    assert found["verdict"] == "not_run" and flag in found["reason"]


def numba_row(agent: ModuleType, tmp_path: Path, fstype: str) -> Any:
    source, index = tmp_path / "m.py", tmp_path / "m.f-1.py311.nbi"
    index.write_bytes(b"\x80\x04\x8c\x060.68.1\x94.")
    (tmp_path / "m.f-1.py311.1.nbc").write_bytes(b"")
    time.sleep(0.02)
    source.write_text("x")
    os.utime(source, (1, 1))
    live = {
        "function": "m.f",
        "file": str(source),
        "index": str(index),
        "signature": ["int64"],
        "from_disk": True,
    }
    (row,) = agent.numba_entries(disk(agent, **{str(tmp_path): fstype}), [live])
    return row


def test_numba_takes_an_index_whose_source_was_written_later(agent: ModuleType, tmp_path: Path) -> None:
    row = numba_row(agent, tmp_path, "ext4")
    assert row["origin"] == "left_over" and "with an older time" in row["stale"][0]
    assert row["compiler"] == "numba 0.68.1"


def test_change_times_of_a_layer_say_nothing(agent: ModuleType, tmp_path: Path) -> None:
    row = numba_row(agent, tmp_path, "overlay")
    assert (row["origin"], row["stale"]) == ("image", [])


def test_every_family_has_a_row(agent: ModuleType) -> None:
    report = {"jit": {"artifacts": [], "places": []}, "inside": []}
    found = agent.build_ledger("", report, 0.0, [], set())
    assert {row["family"] for row in found["families"]} == set(agent.FAMILIES)
    assert all(row["reason"] for row in found["families"])


def report_of(agent: ModuleType, tmp_path: Path) -> Any:
    rows = agent.triton_entries(disk(agent), [cached(tmp_path)], [], False)
    numba = agent.entry("numba", "f", None)
    return {"jit": {"ledger": [*rows, numba]}, "inside": []}


def test_what_cannot_be_made_again_says_why(agent: ModuleType, tmp_path: Path) -> None:
    report = report_of(agent, tmp_path)
    agent.rederive(report, "", str(tmp_path / "no-python"), 10.0)
    kernel, numba = (row["rederived"] for row in report["jit"]["ledger"])
    assert kernel["verdict"] == numba["verdict"] == "not_run"
    assert "no-python" in kernel["reason"] and "memory only" in numba["reason"]


def test_nothing_of_another_root_is_run(agent: ModuleType, tmp_path: Path) -> None:
    report = report_of(agent, tmp_path)
    trap = tmp_path / "python"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    trap.chmod(0o755)
    agent.rederive(report, "/proc/1/root", str(trap), 10.0)
    assert {row["rederived"]["reason"] for row in report["jit"]["ledger"]} == {
        "the process has another root: run the agent inside it"
    }
    assert not (tmp_path / "ran").exists()


def test_a_child_that_says_nonsense_proves_nothing(agent: ModuleType, tmp_path: Path) -> None:
    report = report_of(agent, tmp_path)
    liar = tmp_path / "python"
    liar.write_text("#!/bin/sh\necho 'no json'; echo '[3]'; echo '{\"job\": \"0\"}'; exit 3\n")
    liar.chmod(0o755)
    agent.rederive(report, "", str(liar), 10.0)
    assert report["jit"]["ledger"][0]["rederived"]["verdict"] == "not_run"
    assert "ended with 3" in report["jit"]["ledger"][0]["rederived"]["reason"]
