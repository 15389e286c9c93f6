"""`--output`: where reports go, and the job summary of a GitHub step."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from tic_manifest.cli.app import Settings
from tic_manifest.cli.output import finish, output_option
from tic_manifest.model.verdict import Check, Finding, Status, report
from tic_manifest.render.github import SUMMARY_BYTES

FAILING = report(
    "gate",
    [Check(id="usage", status=Status.FAIL, subject="vllm")],
    [Finding(code="USAGE", status=Status.FAIL, subject="vllm", what="wrong")],
)


@click.command()
@output_option
@click.pass_context
def judging(ctx: click.Context, outputs: tuple[tuple[str, str], ...]) -> None:
    ctx.obj = Settings(0, "auto", "none")
    ctx.exit(finish(ctx, FAILING, outputs))


def run(*argv: str, **environ: str) -> Result:
    return CliRunner().invoke(judging, argv, env=environ)


def test_json_stands_alone_on_standard_output() -> None:
    found = run("--output", "json")
    assert json.loads(found.stdout)["outcome"] == "fail"
    assert found.exit_code == 1


def test_several_formats_at_once(tmp_path: Path) -> None:
    found = run(
        "--output",
        "text",
        "--output",
        f"sarif={tmp_path / 'a.sarif'}",
        "--output",
        f"junit={tmp_path / 'a.xml'}",
    )
    assert found.stdout.startswith("gate: fail")
    assert json.loads((tmp_path / "a.sarif").read_text())["version"] == "2.1.0"
    assert (tmp_path / "a.xml").read_text().startswith("<?xml")


@pytest.mark.parametrize("argv", [("--output", "yaml"), ("--output", "json", "--output", "text")])
def test_wrong_use(argv: tuple[str, ...]) -> None:
    assert run(*argv).exit_code == 2


def test_the_job_summary_is_appended_only_for_github(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("earlier\n")
    run("--output", "text", GITHUB_STEP_SUMMARY=str(summary))
    assert summary.read_text() == "earlier\n"
    found = run("--output", "github", GITHUB_STEP_SUMMARY=str(summary))
    assert found.stdout.startswith("::error title=USAGE vllm::")
    assert summary.read_text().startswith("earlier\n## tic-manifest gate: fail")


def test_a_full_summary_is_left_as_it_is_and_a_missing_one_changes_no_verdict(tmp_path: Path) -> None:
    full = tmp_path / "summary.md"
    full.write_bytes(b"x" * SUMMARY_BYTES)
    assert run("--output", "github", GITHUB_STEP_SUMMARY=str(full)).exit_code == 1
    assert full.stat().st_size == SUMMARY_BYTES
    gone = run("--output", "github", GITHUB_STEP_SUMMARY=str(tmp_path / "no" / "summary.md"))
    assert gone.exit_code == 1
    assert "no job summary" in gone.stderr
