"""What reaches a report: no secret, no undecodable text, no traceback, one file on any Python."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
AGENT = ROOT / "images" / "agent" / "probe_agent.py"


def test_the_one_file_is_what_the_modules_give() -> None:
    command = [sys.executable, ROOT / "scripts" / "build-agent", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_agent_has_a_lint_target_of_its_own() -> None:
    tools = Path(sys.executable).parent
    agent = ROOT / "images" / "agent"
    commands = [
        [tools / "ruff", "check", "--config", agent / "ruff.toml", agent / "src"],
        [tools / "ruff", "format", "--check", "--config", agent / "ruff.toml", agent / "src"],
        [tools / "mypy", "--strict", "--python-version", "3.10", "--config-file", os.devnull, AGENT],
    ]
    if not (tools / "ruff").exists():
        pytest.skip("ruff is not installed: pip install -e '.[dev]'")
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.returncode == 0, done.stdout + done.stderr


def test_modules_stay_below_400_lines() -> None:
    for path in (ROOT / "images" / "agent" / "src" / "probe_agent").glob("*.py"):
        assert len(path.read_text("utf-8").splitlines()) < 400, path.name


def test_the_agent_imports_the_standard_library_only() -> None:
    tree = ast.parse(AGENT.read_text("utf-8"), feature_version=(3, 9))
    names = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    names |= {str(n.module).split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert names <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_every_python_here_runs_it(version: str, tmp_path: Path) -> None:
    candidates = [Path(f"/usr/bin/python{version}"), *Path(sys.prefix, "..").glob(f"{version}.*/bin/python3")]
    base = Path(sys.base_prefix).parent
    candidates += sorted(base.glob(f"{version}.*/bin/python3"))
    found = next((p for p in candidates if p.exists()), None)
    if found is None:
        pytest.skip(f"no Python {version} on this machine; its syntax is checked as 3.9's")
    out = tmp_path / "snapshot.json"
    command = [found, "-I", AGENT, "snapshot", "--pid", str(os.getpid()), "--out", out]
    subprocess.run(command, check=True)
    assert json.loads(out.read_text())["schema"] == "tic/probe-agent/v1"


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["--api-key", "hunter2", "x"], ["--api-key", "<redacted>", "x"]),
        (["--token=hunter2"], ["--token=<redacted>"]),
        (['{"API_KEY": "hunter2", "a": 1}'], ['{"API_KEY": "<redacted>", "a": 1}']),
        (["https://me:hunter2@host/x"], ["https://<redacted>@host/x"]),
        (["--port", "80"], ["--port", "80"]),
    ],
)
def test_arguments_are_redacted(agent: ModuleType, argv: list[str], shown: list[str]) -> None:
    assert agent.redact_argv(argv) == shown


def test_environment_values_are_clear_hashed_or_withheld(agent: ModuleType) -> None:
    view = agent.environment_view(
        [("LD_PRELOAD", "/x.so"), ("VLLM_API_KEY", "hunter2"), ("OTHER", "hunter2")]
    )
    assert view[0] == {"name": "LD_PRELOAD", "value": "/x.so"}
    assert set(view[1]) == {"name", "sha256"}
    assert view[2] == {"name": "VLLM_API_KEY", "secret": True}


@pytest.mark.parametrize(
    ("raw", "shown"), [(b"ok/\xc3\xa9", "ok/\u00e9"), (b"bad\xff", "bad\\xff"), (b"nl\n", "nl\n")]
)
def test_names_are_text_whatever_their_bytes(agent: ModuleType, raw: bytes, shown: str) -> None:
    assert agent.text(raw) == shown


def test_lone_surrogates_do_not_break_a_report(agent: ModuleType, tmp_path: Path) -> None:
    name = os.fsdecode(b"bad\xff")
    agent.write_json(str(tmp_path / "r.json"), {"name": agent.clean(name)})
    assert json.loads((tmp_path / "r.json").read_text())["name"] == "bad\\xff"


def test_nothing_half_written_is_left(agent: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        agent.write_json(str(tmp_path / "r.json"), {"x": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_links_are_followed_inside_the_root(agent: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "usr" / "lib").mkdir(parents=True)
    (tmp_path / "usr" / "lib" / "x").write_text("inside")
    (tmp_path / "lib").symlink_to("/usr/lib")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "up").symlink_to("../../../../usr/lib/x")
    root = str(tmp_path)
    assert agent.resolve_in_root(root, "/lib/x") == "/usr/lib/x"
    assert agent.resolve_in_root(root, "/up") == "/usr/lib/x"
    assert agent.resolve_in_root(root, "/loop") is None
    assert agent.resolve_in_root(root, "/etc/passwd") is None
