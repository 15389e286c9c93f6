"""Live code against source: what the source says is no patch, what it does not say is one."""

from __future__ import annotations

import ast
import sys
import types
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SOURCE = """
import os
from os import path as place
from .near import close
from a.b import far as away

def plain(): pass

@os.fspath
def decorated(): pass

if True:
    def under(): pass

class Layer:
    def forward(self): pass
    name = plain
    class Inner:
        def deep(self): pass

@place
class Made:
    def forward(self): pass

given = plain
Layer.late = plain

def change():
    global moved
    moved = 1
def moved(): pass
"""
FACTS = {
    "plain": "def", "decorated": "other", "under": "def", "Layer": "def", "Layer.forward": "def",
    "Layer.name": "other", "Layer.Inner.deep": "def", "Layer.late": "other", "Layer.none": "absent",
    "Made": "other", "Made.forward": "other", "given": "other", "moved": "other", "none": "absent",
    "os": "other",
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), FACTS.items())
def test_what_a_source_says_of_a_name(agent: ModuleType, name: str, kind: str) -> None:
    assert agent.Source("p.q", False, ast.parse(SOURCE)).fact(name)[0] == kind


@pytest.mark.parametrize(
    ("package", "name", "origin"), [(True, "close", "p.q.near:close"), (False, "close", "p.near:close"),
                                    (False, "away", "a.b:far"), (False, "place", "os:path")]
)  # fmt: skip
def test_where_a_source_imports_a_name_from(agent: ModuleType, package: bool, name: str, origin: str) -> None:
    assert agent.Source("p.q", package, ast.parse(SOURCE)).fact(name) == ("import", origin)


def digest(agent: ModuleType, source: str, name: str = "<x>") -> str:
    found: str = agent.code_digest(compile(source, name, "exec"), {})
    return found


def test_a_digest_is_of_what_code_does_not_of_where_it_lies(agent: ModuleType) -> None:
    base = "def f(x):\n    return {1, 2, 'a'} and x in {'b', 'c', 'd'}\n"
    assert digest(agent, base) == digest(agent, base, "/elsewhere.py")
    changed = [base.replace("1", "1.0"), base.replace("1", "True"), base.replace("'a'", "b'a'"), "\n" + base]
    changed += [
        base.replace("(x)", "(x=1)"),
        base.replace("return", "yield"),
        base.replace("x in", "x not in"),
    ]
    assert len({digest(agent, one) for one in [base, *changed]}) == len(changed) + 1


def test_a_live_function_equals_its_source_after_it_got_hot(agent: ModuleType, tmp_path: Path) -> None:
    source = (
        "def add(a, b):\n    total = 0\n    for x in range(a):\n        total += x * b\n    return total\n"
    )
    file = tmp_path / "hot.py"
    file.write_text(source)
    names: dict[str, Any] = {}
    exec(compile(source, str(file), "exec"), names)
    for _ in range(2000):
        names["add"](3, 4)
    code = names["add"].__code__
    rows = agent.compiled_digests(compile(source, "/other", "exec"))
    assert (code.co_firstlineno, agent.code_digest(code, {})) in rows


@pytest.mark.parametrize(
    ("other_release", "live", "differs", "unsure"),
    [
        (False, "return a + b", [["f", 1]], 0),  # other instructions, by the very release that compares
        (True, "return a + b", [], 1),  # another release may have made them
        (True, "return a - g", [["f", 1]], 0),  # another name: no release makes that
        (True, "return a - b", [], 0),
    ],
)
def test_other_instructions_prove_a_change_only_within_one_release(
    agent: ModuleType, tmp_path: Path, other_release: bool, live: str, differs: list[Any], unsure: int
) -> None:
    file = tmp_path / "m.py"
    file.write_text("def f(a, b, c):\n    return a - b\n")
    names: dict[str, Any] = {}
    exec(compile(f"def f(a, b, c):\n    {live}\n", str(file), "exec", dont_inherit=True), names)
    rows = [["f", 1, agent.code_digest(names["f"].__code__, {})]]
    row = {"name": "m", "file": str(file), "live": rows, "attributes": [], "optimize": 0}
    answer = agent.judge_source("", {**row, "other_release": other_release})
    assert (answer["differs"], answer["unsure"]) == (differs, unsure)


class Trap(ModuleType):
    """A module that would do things when it is asked for names."""

    asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        Trap.asked.append(name)
        raise RuntimeError(name)


class Liar:
    """An object that says it is of any type."""

    @property
    def __class__(self) -> Any:
        Trap.asked.append("__class__")
        raise RuntimeError("asked")


def scanned(agent: ModuleType, *modules: ModuleType) -> dict[str, Any]:
    scan = agent.Scan()
    scan.modules = {m.__dict__["__name__"]: m for m in modules}
    scan.files = {n: scan._file(m) for n, m in scan.modules.items()}
    found: dict[str, Any] = scan.run(agent.Budget(30))
    return found


def test_looking_at_modules_asks_them_nothing(agent: ModuleType) -> None:
    trap = Trap("trap")
    trap.__dict__.update(__file__=3, liar=Liar(), f=test_a_digest_is_of_what_code_does_not_of_where_it_lies)
    trap.__dict__[5] = "a name that is no string"
    result = scanned(agent, trap)
    assert Trap.asked == [] and result["errors"] == 0
    assert [r["attribute"] for r in result["foreign"]] == ["f"]


def test_a_scan_says_when_it_was_cut(agent: ModuleType) -> None:
    scan = agent.Scan()
    assert scan.run(agent.Budget(0))["cut_short"] is True


def function(file: str, name: str = "f", line: int = 1) -> types.FunctionType:
    names: dict[str, Any] = {}
    exec(compile("\n" * (line - 1) + f"def {name}(): pass", file, "exec"), names)
    found: types.FunctionType = names[name]
    return found


def test_the_own_package_and_the_standard_library_are_not_foreign(agent: ModuleType) -> None:
    module = ModuleType("pkg")
    module.__dict__.update(
        __file__="/s/pkg/__init__.py", own=function("/s/pkg/__init__.py"), near=function("/s/pkg/sub/x.py"),
        std=ast.parse, else_=function("/s/pkgother/x.py", line=4), frozen=function("<frozen x>"),
    )  # fmt: skip
    found = scanned(agent, module)
    assert [(r["attribute"], r["file"], r["line"]) for r in found["foreign"]] == [
        ("else_", "/s/pkgother/x.py", 4)
    ]
    assert [row[0] for row in found["live"]["pkg"]] == ["own"]


def test_the_child_is_killed_when_its_time_is_over(agent: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "big.py").write_text("x = [" + "1," * 2_000_000 + "]\n")
    row = {
        "name": "big",
        "file": str(tmp_path / "big.py"),
        "live": [["f", 1, "0"]],
        "attributes": [],
        "optimize": 0,
    }
    answers, reason = agent.compile_in_child("", [row], 0.0)
    assert answers == {} and "not all sources" in reason


@pytest.mark.parametrize("source", [b"def f(:", b"\0", b"\xff\xfe", b"(" * 5000, b"-" * 100_000 + b"1"])
def test_broken_sources_are_no_answer_and_no_crash(agent: ModuleType, tmp_path: Path, source: bytes) -> None:
    for name, data in (("broken", source), ("good", b"def f(): pass\n")):
        (tmp_path / (name + ".py")).write_bytes(data)
    rows = [
        {
            "name": n,
            "file": str(tmp_path / (n + ".py")),
            "live": [["f", 1, "0"]],
            "attributes": ["f"],
            "optimize": 0,
        }
        for n in ("good", "broken")
    ]
    answers, _ = agent.compile_in_child("", rows, 60.0)
    assert answers["good"]["differs"] == [["f", 1]]
    assert "differs" not in answers.get("broken", {})


@pytest.mark.parametrize(
    ("source", "reason"), [("def f(): pass\n", None), ("def f(:\n", "1 sources"), (None, "1 s")]
)
def test_a_source_that_gives_no_answer_is_said(
    agent: ModuleType, tmp_path: Path, source: str | None, reason: str | None
) -> None:
    file = tmp_path / "m.py"
    if source:
        file.write_text(source)
    names: dict[str, Any] = {}
    exec(compile("def f(): pass\n", str(file), "exec", dont_inherit=True), names)
    live = {"m": [["f", 1, agent.code_digest(names["f"].__code__, {})]]}
    view = {
        "modules": [{"name": "m", "file": str(file)}],
        "python": {"version": sys.version, "flags": {}},
        "code": {"functions": 1, "live": live, "foreign": []},
    }
    said = agent.Running("", view).run()
    assert said["reason"] == reason if reason is None else said["reason"].startswith(reason)
    assert said["compared"] == (0 if reason else 1)


DUMP = """name: aten::mm
schema: aten::mm(Tensor self, Tensor mat2) -> Tensor
debug: registered at /b/RegisterSchema.cpp:6
CPU: registered at {file}:3 :: (none) [ boxed ]
CPU (inactive): registered at /b/RegisterCPU_0.cpp:3234 :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]
Autograd[alias]: registered at /b/VariableType_8.cpp:9410 :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]
"""


@pytest.mark.parametrize("file", ["/x/disp.py", "<string>", "/x/a b:c.py"])
def test_a_kernel_that_python_registered_is_found(agent: ModuleType, file: str) -> None:
    rows = agent.python_kernels("aten::mm", DUMP.format(file=file))
    assert [(r["key"], r["file"], r["line"]) for r in rows] == [("CPU", file, 3)]
    assert rows[0]["inactive"] == "/b/RegisterCPU_0.cpp:3234"


def test_kernels_of_compiled_code_and_operators_of_python_are_none(agent: ModuleType) -> None:
    assert agent.python_kernels("aten::mm", DUMP.format(file="/b/x.cpp")) == []
    own = "debug: registered at /x/custom.py:9\nCPU: registered at /x/custom.py:9 :: (none) [ boxed ]\n"
    assert agent.python_kernels("mine::op", own) == []


def test_without_torch_nothing_is_asked(agent: ModuleType) -> None:
    assert "torch" not in sys.modules
    view = agent.operators_view()
    assert view["torch_loaded"] is False and view["overrides"] == []
