"""What CI systems read: valid YAML, options that exist, everything pinned, no token where others can read it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from tic_manifest.cli.app import app

ROOT = Path(__file__).resolve().parents[3]
ACTION, WORKFLOW = ROOT / "ci" / "github" / "action.yml", ROOT / "ci" / "github" / "gate.yml"
BUILDKITE, HOOKS = ROOT / "ci" / "buildkite" / "gate.yml", ROOT / ".pre-commit-hooks.yaml"
FILES = (ACTION, WORKFLOW, BUILDKITE, HOOKS)
CANARY = "canary-6d1f0c"


def read(path: Path) -> Any:
    """The document, by the safe loader."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every string with the key that it stands under."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from texts(one, str(name))
    elif isinstance(value, list):
        for one in value:
            yield from texts(one, key)
    elif isinstance(value, str):
        yield key, value


def commands() -> list[tuple[str, str]]:
    """Every line of shell, by file."""
    keys = {"run", "command", "entry"}
    return [(path.name, text) for path in FILES for key, text in texts(read(path)) if key in keys]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_valid_yaml_without_a_mirror(path: Path) -> None:
    assert read(path)
    assert "index-url" not in path.read_text(encoding="utf-8")


def test_only_options_that_exist_are_used() -> None:
    seen = 0
    for name, text in commands():
        plain = text.replace("\\\n", " ").replace("$$", "$")
        for line in re.findall(r"tic-manifest\"?((?: --progress plain)? (?:gate|lock)\b[^|&\n]*)", plain):
            words = shlex.split(line.replace('"${more[@]}"', ""))
            command = next(word for word in words if word in {"gate", "lock"})
            known = options(command)
            used = [word for word in words if word.startswith("--") and word != "--"]
            assert set(used) <= known, f"{name}: {set(used) - known}"
            seen += 1
    assert seen >= 4


def options(command: str) -> set[str]:
    """Options of a command and of the program."""
    context = click.Context(app)
    found = app.get_command(context, command)
    assert found is not None
    return {option for one in (*found.params, *app.params) for option in one.opts}


def test_the_action_adds_only_options_that_exist() -> None:
    script = next(step["run"] for step in read(ACTION)["runs"]["steps"] if step.get("id") == "gate")
    assert set(re.findall(r"more\+=\((--[a-z-]+)", script)) == {"--only", "--record"}
    assert {"--only", "--record"} <= options("gate")


def test_every_action_is_pinned_by_a_whole_commit() -> None:
    uses = [text for path in (ACTION, WORKFLOW) for key, text in texts(read(path)) if key == "uses"]
    assert uses
    for one in uses:
        assert one.startswith("./") or re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", one), one


def test_every_package_is_pinned_by_hash() -> None:
    text = (ROOT / "ci" / "requirements.txt").read_text(encoding="utf-8")
    entries = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert entries
    assert all(re.match(r"^[a-z0-9][a-z0-9._-]*==[^ ]+( ;[^\\]+)? \\$", line) for line in entries)
    assert len(re.findall(r"==[^\n]*\\\n    --hash=sha256:[0-9a-f]{64}", text)) == len(entries)
    for hook in read(HOOKS):
        assert all("==" in one for one in hook["additional_dependencies"])


def test_no_expression_and_no_token_stands_in_a_command() -> None:
    for name, text in commands():
        assert "${{" not in text, f"{name}: an expression in shell"
        assert not re.search(r"TOKEN|SECRET|PASSWORD", text), name


def test_permissions_are_the_least() -> None:
    workflow = read(WORKFLOW)
    assert workflow["permissions"] == {}
    given = workflow["jobs"]["gate"]["permissions"]
    assert given == {"contents": "read", "pull-requests": "read", "security-events": "write"}
    checkouts = [one for one in workflow["jobs"]["gate"]["steps"] if "checkout" in one.get("uses", "")]
    assert all(one["with"]["persist-credentials"] is False for one in checkouts)


FAKE = '#!/bin/sh\necho "$0 $*" >> "$LOG"\n[ "$STATUS" = 2 ] || for one in gate.json gate.sarif gate.xml gate.md; do\n  : > "$PLACE/$one"\ndone\nexit "$STATUS"\n'


def fake(path: Path, text: str) -> None:
    """An executable that stands in for a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4, 70])
def test_the_action_ends_as_the_gate_does(status: int, tmp_path: Path) -> None:
    step = next(one for one in read(ACTION)["runs"]["steps"] if one.get("id") == "gate")
    out = tmp_path / "tic-gate"
    fake(tmp_path / "tic-manifest" / "bin" / "tic-manifest", FAKE)
    env = {
        "PATH": os.environ["PATH"], "RUNNER_TEMP": str(tmp_path), "GITHUB_OUTPUT": str(tmp_path / "output"),
        "LOG": str(tmp_path / "log"), "PLACE": str(out), "STATUS": str(status), "GITHUB_TOKEN": CANARY,
        "TIC_RECIPE": "a b; $(touch x).yaml", "TIC_ONLY": "vllm", "TIC_WORK": ".tic", "TIC_RECORD": "rec",
    }  # fmt: skip
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(shell, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    told = (tmp_path / "output").read_text()
    assert f"exit-code={status}\n" in told
    assert (f"sarif={out}/gate.sarif\n" in told) is (status != 2)
    argv = (tmp_path / "log").read_text()
    assert argv.rstrip("\n").endswith("-- a b; $(touch x).yaml")
    assert "--only vllm --record rec" in argv
    assert CANARY not in argv + told + done.stdout + done.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(("status", "style"), [(0, "success"), (1, "error"), (3, "error")])
def test_the_buildkite_step_ends_as_the_gate_does(status: int, style: str, tmp_path: Path) -> None:
    for name in ("tic-manifest", "buildkite-agent"):
        fake(
            tmp_path / "bin" / name, FAKE if name == "tic-manifest" else '#!/bin/sh\necho "$0 $*" >> "$LOG"\n'
        )
    env = {
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "LOG": str(tmp_path / "log"), "PLACE": str(tmp_path),
        "STATUS": str(status), "GITHUB_TOKEN": CANARY,
    }  # fmt: skip
    for command in read(BUILDKITE)["steps"][0]["command"]:
        # the agent's upload turns $$ into $, and runs one command after another until one fails
        shell = ["bash", "-e", "-c", command.replace("$$", "$")]
        done = subprocess.run(shell, env=env, cwd=tmp_path, check=False)
        if done.returncode:
            break
    assert done.returncode == status
    log = (tmp_path / "log").read_text()
    assert f"annotate --context gate --style {style}" in log
    assert log.count("annotate") == 1
    assert CANARY not in log
