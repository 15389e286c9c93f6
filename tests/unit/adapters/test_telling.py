"""What `-v` tells, and what it does not."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tic_manifest.adapters import telling
from tic_manifest.adapters.git_run import GitRunner


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://a.invalid/x", "https://a.invalid/x"),
        ("https://me:s3cret@a.invalid/x", "https://…@a.invalid/x"),
        ("https://a.invalid/x?page=2&access=s3cret", "https://a.invalid/x?page=2&access=…"),
        ("tool --password s3cret --token=s3cret -x", "tool --password … --token=… -x"),
        ("curl -H 'Authorization: s3cret'", "curl -H 'Authorization: …"),
    ],
)
def test_secrets_are_not_told(text: str, shown: str) -> None:
    assert telling.without_secrets(text) == shown


def test_a_program_is_told_without_its_settings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger=telling.LOGGER.name)
    GitRunner({**os.environ, "GIT_PAGER": "less"}).run(["rev-parse", "HEAD"], repo=tmp_path)
    assert "run git rev-parse HEAD" in caplog.messages


def test_nothing_is_told_unless_asked(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger=telling.LOGGER.name)
    telling.program(["git", "fetch"])
    assert caplog.messages == []


@pytest.mark.parametrize(("options", "told"), [(["-v"], True), ([], False), (["-v", "-q"], False)])
def test_the_command_line_asks_for_it(tmp_path: Path, options: list[str], told: bool) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "schema: tic/recipe/v1\nname: r\nforge: {api: 'http://127.0.0.1:9'}\npull_requests:\n  a:\n"
        "    url: http://127.0.0.1:9/o/r/pull/1\n    target: {owner: o, branch: main}\n"
        f"    base: {'1' * 40}\n    head: {'2' * 40}\n"
    )
    command = [sys.executable, "-m", "tic_manifest", *options, "gate", str(recipe), "--work", f"{tmp_path}/w"]
    env = {**os.environ, "TIC_TIME_SCALE": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 3, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("-v: ")]
    assert any("git" in line and "ls-remote" in line for line in lines) is told
    assert bool(lines) is told
