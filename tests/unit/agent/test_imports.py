"""Swallowed import errors, found in sources and on disk."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TABLE = [
    ("try:\n    import a.b\nexcept ImportError:\n    pass\n", [("a.b", "module")]),
    ("try:\n    import a\nexcept (ValueError, ImportError) as e:\n    x = 1\n", [("a", "module")]),
    ("try:\n    import a\nexcept Exception:\n    pass\n", [("a", "module")]),
    ("try:\n    import a\nexcept:\n    pass\n", [("a", "module")]),
    ("try:\n    import a\nexcept ValueError:\n    pass\n", []),
    ("try:\n    import a\nexcept ValueError:\n    pass\nexcept ImportError:\n    pass\n", [("a", "module")]),
    ("try:\n    import a\nfinally:\n    pass\n", []),
    ("import a\n", []),
    ("def f():\n    try:\n        import a\n    except ImportError:\n        pass\n", [("a", "function")]),
    ("class C:\n    try:\n        import a\n    except ImportError:\n        pass\n", [("a", "module")]),
    ("if X:\n    try:\n        import a\n    except ImportError:\n        pass\n", [("a", "conditional")]),
    ("with suppress(ImportError):\n    import a\n", [("a", "module")]),
    ("with contextlib.suppress(KeyError):\n    import a\n", []),
    ("try:\n    if X:\n        import a\nexcept ImportError:\n    pass\n", []),
    (
        "try:\n    # why\n    x = 1\n    import a  # here\n\nexcept ImportError:\n    pass\n",
        [("a", "module")],
    ),
    ("try:\n  import (\nexcept ImportError:\n  pass\n", []),
]


@pytest.mark.parametrize(("source", "expected"), TABLE)
def test_guarded_imports(agent: ModuleType, source: str, expected: list[tuple[str, str]]) -> None:
    assert [(g.module, g.where) for g in agent.guarded_imports(source)] == expected


@pytest.mark.parametrize(
    ("level", "module", "package", "expected"),
    [
        (0, "x.y", False, "x.y"),
        (1, "z", False, "p.q.z"),
        (1, "z", True, "p.q.r.z"),
        (2, "", False, "p"),
        (9, "z", False, None),
    ],
)
def test_relative_names(
    agent: ModuleType, level: int, module: str, package: bool, expected: str | None
) -> None:
    guarded = agent.Guarded(module, (), level, 1, "module", 0)
    assert agent.absolute_name(guarded, "p.q.r", package) == expected


def inside_view(site: Path, *names: str) -> dict[str, Any]:
    modules = [{"name": name, "file": str(site / name.replace(".", "/")) + ".py"} for name in names]
    return {
        "modules": modules,
        "python": {
            "path": [str(site)],
            "builtin_modules": ["sys"],
            "extension_suffixes": [".abi3.so", ".so"],
        },
    }


def test_present_but_not_loaded_is_broken_absent_is_a_note(agent: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "try:\n    import there\nexcept ImportError:\n    there = None\n"
        "try:\n    import nowhere\nexcept ImportError:\n    nowhere = None\n"
        "try:\n    import nowhere, there\nexcept ImportError:\n    pass\n"
    )
    (tmp_path / "there.py").write_text("raise ImportError('built for another torch')\n")
    report = agent.Swallowed("", inside_view(tmp_path, "app"), []).run()
    assert [(b["module"], b["line"]) for b in report["broken"]] == [("there", 2)]
    assert [(b["module"], b["line"]) for b in report["absent"]] == [("nowhere", 6), ("nowhere", 10)]


@pytest.mark.parametrize(
    "need",
    [
        "import h2\n",
        "import middle\n",
        "try:\n    import h2\nexcept ImportError:\n    raise RuntimeError\n",
        "from h2 import x\n",
    ],
)
def test_a_module_that_lacks_an_optional_dependency_is_absent_because_of_it(
    agent: ModuleType, tmp_path: Path, need: str
) -> None:
    (tmp_path / "app.py").write_text("try:\n    import there\nexcept ImportError:\n    pass\n")
    (tmp_path / "there.py").write_text(need)
    (tmp_path / "middle.py").write_text("import h2\nimport middle\n")
    report = agent.Swallowed("", inside_view(tmp_path, "app"), []).run()
    assert report["broken"] == []
    assert [(b["module"], b["because"]) for b in report["absent"]] == [("there", "h2")]


def test_text_that_looks_like_an_import_is_none(agent: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("x = '''\ntry:\n    import there\nexcept:\n    pass\n'''\n")
    (tmp_path / "there.py").write_text("")
    report = agent.Swallowed("", inside_view(tmp_path, "app"), []).run()
    assert (report["broken"], report["absent"]) == ([], [])


def test_an_import_inside_a_function_counts_only_when_it_cannot_work(
    agent: ModuleType, tmp_path: Path
) -> None:
    source = "def f():\n    try:\n        import {0}\n    except ImportError:\n        pass\n"
    (tmp_path / "app.py").write_text(source.format("there") + source.format("lib._C"))
    (tmp_path / "there.py").write_text("")
    lacking = {
        "module": "lib._C",
        "path": "/x/lib/_C.abi3.so",
        "missing": [{"library": "libnuma.so.1", "needed_by": "/x"}],
    }
    report = agent.Swallowed("", inside_view(tmp_path, "app"), [lacking]).run()
    assert [(b["module"], b["where"], b["missing"][0]["library"]) for b in report["broken"]] == [
        ("lib._C", "function", "libnuma.so.1")
    ]


def test_a_module_whose_file_lies_is_counted_as_not_scanned(agent: ModuleType, tmp_path: Path) -> None:
    report = agent.Swallowed("", inside_view(tmp_path, "no_such_module"), []).run()
    assert (report["scanned"], report["not_scanned"]) == (0, 1)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pkg/_C.abi3.so", "pkg._C"),
        ("pkg/lib/libfoo.so", None),
        ("pkg.libs/libgomp-1.so", None),
        ("solo.so", "solo"),
    ],
)
def test_names_of_extension_modules(agent: ModuleType, name: str, expected: str | None) -> None:
    assert agent.module_of("/site/" + name, "/site", [".abi3.so", ".so"]) == expected
