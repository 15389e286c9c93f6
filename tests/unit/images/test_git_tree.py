"""The tree id that is computed where a wheel is built is the one that git gives."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

from tests.kit.git_repos import checkout, commit, git

SCRIPT = Path(__file__).resolve().parents[3] / "images" / "build" / "git_tree.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("git_tree", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_files_links_programs_and_the_order_of_names(script: ModuleType, tmp_path: Path) -> None:
    root = checkout(tmp_path / "r")
    commit(root, {"a.b": "1", "a/c": "2", "a0": "3", "a-": "4", "deep/er/x y": "5", "ä": "6"})
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    os.symlink("a/c", root / "link")
    git(root, "add", "-A")
    wanted = git(root, "write-tree")
    os.rename(root / ".git", tmp_path / "git")
    (root / "empty" / "below").mkdir(parents=True)
    (root / "a.b").chmod(0o600)
    assert script.tree_id(root, {}) == wanted
    (root / "a.b").write_text("2")
    assert script.tree_id(root, {}) != wanted


def test_a_submodule_is_its_commit(script: ModuleType, tmp_path: Path) -> None:
    root = checkout(tmp_path / "r")
    head = commit(root, {"x": "1"})
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{head},third/party")
    wanted = git(root, "write-tree")
    os.rename(root / ".git", tmp_path / "git")
    (root / "third" / "party").mkdir(parents=True)
    assert script.tree_id(root, {"third/party": head}) == wanted
