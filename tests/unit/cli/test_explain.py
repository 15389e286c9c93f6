"""`explain` and the pages of codes say the same, for every code of the registry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from tic_manifest.cli.app import app
from tic_manifest.cli.explain import command
from tic_manifest.errors import PersonError
from tic_manifest.model.codes import Code, registry
from tic_manifest.render import code_page

ROOT = Path(__file__).resolve().parents[3]
FAMILY = Code(name="X", meaning="m", remedy="do r", source="s", variants={"b": "mb", "a": "ma"})


def explain(*argv: str) -> str:
    result = CliRunner().invoke(command, argv, standalone_mode=False)
    if result.exception:
        raise result.exception
    assert result.return_value == 0
    return result.output


@pytest.mark.parametrize("name", registry())
def test_every_code_has_a_page_and_an_explanation(name: str) -> None:
    code = registry()[name]
    said = explain(name)
    page = code_page.page(code)
    for words in (code.meaning, code.remedy, code.source, *code.variants.values()):
        assert words in said
        assert words.replace("<", "&lt;")[1:] in page.replace("&#124;", "|")


def test_variants_are_explained_alone_and_together() -> None:
    assert code_page.text(FAMILY).splitlines()[2:4] == ["  X/a: ma", "  X/b: mb"]
    assert code_page.text(FAMILY, "a").splitlines()[:3] == ["X/a", "  says: ma", "  family: X: m"]
    assert code_page.listing({"X": FAMILY}).splitlines() == ["X  m", "  X/a  ma", "  X/b  mb"]


def test_the_case_of_a_code_does_not_matter() -> None:
    assert explain("disk_full") == explain("DISK_FULL")


@pytest.mark.parametrize("asked", ["DISKFULL", "USAGE/nothing", "", "\x1b[31m"])
def test_an_unknown_code_is_an_error_of_the_person(asked: str) -> None:
    with pytest.raises((PersonError, Exception)) as caught:
        explain(asked)
    assert getattr(caught.value, "exit_code", None) == 2


def test_list_names_every_code() -> None:
    starts = {line.split()[0] for line in explain("--list").splitlines()}
    assert set(registry()) <= starts


def test_it_is_a_command_of_the_tool() -> None:
    assert CliRunner().invoke(app, ["explain", "USAGE"]).output.startswith("USAGE\n")


def test_make_docs_check_names_stale_missing_and_left_over_pages(tmp_path: Path) -> None:
    script = (ROOT / "scripts" / "make-docs").read_text()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "make-docs").write_text(script)
    (tmp_path / "manifest").symlink_to(ROOT / "manifest")

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        argv = (sys.executable, str(tmp_path / "scripts" / "make-docs"), *argv)
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    assert run("--check").returncode == 1
    assert run().returncode == 0
    assert run("--check").returncode == 0
    codes = tmp_path / "docs" / "codes"
    (codes / "USAGE.md").write_text("stale")
    (codes / "NETWORK.md").unlink()
    (codes / "GONE.md").write_text("left over")
    said = run("--check")
    assert said.returncode == 1
    assert [line.split()[0] for line in said.stderr.splitlines()] == [
        f"docs/codes/{name}.md" for name in ("GONE", "NETWORK", "USAGE")
    ]
    assert run().returncode == 0
    assert run("--check").returncode == 0
    assert run("--bad").returncode == 2


def test_the_pages_of_this_tree_are_up_to_date() -> None:
    argv = (sys.executable, str(ROOT / "scripts" / "make-docs"), "--check")
    said = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
