"""The shape of the package: sizes, layers, lazy imports, and who may touch the outside world."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "manifest" / "tic_manifest"
MODULES = sorted(PACKAGE.rglob("*.py"))
SCRIPTS = sorted(
    path
    for path in (ROOT / "scripts").rglob("*")
    if path.is_file()
    and "__pycache__" not in path.parts
    and path.read_bytes()[:32].startswith((b"#!/usr/bin/env py", b'"""'))
)
WORKERS = sorted((ROOT / "images" / "workers").rglob("*.py"))

MAX_LINES = 400
MAX_FUNCTION = 60
WARN_FUNCTION = 25
MEDIAN_FUNCTION = 12


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(paths: list[Path]) -> Iterator[tuple[str, int]]:
    """Name and length in lines, docstring left out, of every function."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                has_doc = ast.get_docstring(node) is not None
                first = node.body[1 if has_doc and len(node.body) > 1 else 0]
                yield f"{name_of(path)}:{node.name}", (node.end_lineno or 0) - first.lineno + 2


@pytest.mark.parametrize("path", [*MODULES, *SCRIPTS, *WORKERS], ids=name_of)
def test_modules_stay_below_400_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) < MAX_LINES


def test_functions_are_short() -> None:
    lengths = dict(functions([*MODULES, *SCRIPTS, *WORKERS]))
    for name, lines in sorted(lengths.items(), key=lambda one: -one[1]):
        if lines > WARN_FUNCTION:
            warnings.warn(f"{name} has {lines} lines", stacklevel=1)
    assert {name: lines for name, lines in lengths.items() if lines > MAX_FUNCTION} == {}
    assert statistics.median(lengths.values()) <= MEDIAN_FUNCTION


def test_public_names_have_docstrings() -> None:
    missing = [
        f"{name_of(path)}:{name}" for path in MODULES for name in undocumented(ast.parse(path.read_text()))
    ]
    assert missing == []


def undocumented(tree: ast.Module) -> Iterator[str]:
    """Public functions and classes of a module, and the module itself, without a docstring."""
    if tree.body and ast.get_docstring(tree) is None:
        yield "the module"
    for node in tree.body:
        named = node if isinstance(node, ast.FunctionDef | ast.ClassDef) else None
        if named and not named.name.startswith("_") and ast.get_docstring(named) is None:
            yield named.name


def test_import_linter_contracts_hold() -> None:
    tool = Path(sys.executable).with_name("lint-imports")
    assert tool.exists(), "import-linter is not installed: pip install -e '.[dev]'"
    argv = [str(tool), "--no-cache"]
    said = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr


def calls(path: Path) -> set[str]:
    """Dotted names that a module uses: `os.environ`, `print`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.add(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.add(node.func.id)
    return found


def layer(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


@pytest.mark.parametrize(
    "path", [one for one in MODULES if layer(one) not in ("cli", "__main__.py")], ids=name_of
)
def test_only_the_command_line_prints_and_reads_the_environment(path: Path) -> None:
    outside = {"print", "os.environ", "os.getenv", "sys.stdout", "sys.exit", "click.echo"}
    assert calls(path) & outside == set()


def asks_for_a_shell(key: ast.keyword) -> bool:
    """Only a plain `shell=False` is none."""
    return key.arg == "shell" and not (isinstance(key.value, ast.Constant) and key.value.value is False)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_shell_and_no_code_from_data(path: Path) -> None:
    tree = ast.parse(path.read_text())
    shells = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and any(map(asks_for_a_shell, node.keywords))
    ]
    assert shells == []
    assert (
        calls(path) & {"eval", "exec", "os.system", "os.popen", "pickle.loads", "pickle.load", "yaml.load"}
        == set()
    )


HEAVY = ("docker", "git", "python_on_whales", "torch", "requests", "urllib3", "jinja2", "elftools", "uv")
POSIX = ("fcntl", "pwd", "grp", "resource", "termios")


def fresh(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter of its own."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_command_line_imports_nothing_heavy() -> None:
    said = fresh(f"import sys, tic_manifest.cli.app; print([one for one in {HEAVY} if one in sys.modules])")
    assert said.stdout.strip() == "[]", said.stdout + said.stderr


def commands() -> list[str]:
    return sorted(path.stem for path in (PACKAGE / "cli").glob("*.py") if "command" in defined(path))


def defined(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", commands())
def test_every_command_module_loads_without_its_heavy_tools(name: str) -> None:
    """`--help` of any command works where no builder's dependency is installed."""
    tools = tuple(one for one in HEAVY if one not in ("requests", "urllib3", "jinja2"))
    block = f"import sys\nfor one in {tools}: sys.modules[one] = None\n"
    said = fresh(f"{block}from tic_manifest.cli.app import run; raise SystemExit(run(['{name}', '--help']))")
    assert said.returncode == 0, said.stderr


JUDGING = [
    path
    for path in MODULES
    if layer(path) in ("model", "formats", "rules", "render", "errors.py", "ports.py")
    or path.name in ("verify.py", "explain.py", "app.py", "output.py")
]


def module_of(path: Path) -> str:
    return ".".join(("tic_manifest", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )


def test_judging_needs_no_posix_module_and_no_builder() -> None:
    """`verify` runs on any system: nothing on its path imports what only POSIX or only a builder has."""
    tools = tuple(one for one in HEAVY if one not in ("requests", "urllib3", "jinja2"))
    code = f"""
import importlib, sys
for one in {POSIX + tools}: sys.modules[one] = None
for name in {[module_of(path) for path in JUDGING]}:
    try: importlib.import_module(name)
    except ImportError as error: print(name, error)
"""
    said = fresh(code)
    assert (said.returncode, said.stdout) == (0, ""), said.stdout + said.stderr


def test_templates_are_part_of_the_package() -> None:
    """hatchling ships every file below the package that git does not ignore."""
    templates = [name_of(path) for path in (PACKAGE / "render" / "templates").iterdir()]
    assert templates
    said = subprocess.run(
        ["git", "-C", str(ROOT), "check-ignore", "--", *templates],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.stdout == ""
