"""Pull requests of a lock: resolved from git, and every wrong pin as a mistake of the recipe (exit 2)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.errors import PersonError
from tic_manifest.formats.recipe import read_recipe
from tic_manifest.model.base import GitCommit
from tic_manifest.model.lock import LockedPullRequest
from tic_manifest.stages.lock_pulls import lock_pull_requests

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from git_repos import checkout, commit, git, mirror

RECIPE = """
schema: tic/recipe/v1
name: example
forge: {{api: "https://forge.invalid/api/v3"}}
pull_requests:
  vllm:
    url: https://forge.invalid/o/r/pull/7
    target: {{owner: o, branch: {branch}}}
    base: "{base}"
    head: "{head}"
"""


class Record:
    """A forge that only knows the head that it is given."""

    def __init__(self, head: str) -> None:
        self.head = head

    def pull_request(self, owner: str, repo: str, number: int) -> Mapping[str, Any]:
        """The record."""
        return {"head": {"sha": self.head}}

    def branch_head(self, owner: str, repo: str, branch: str) -> GitCommit | None:
        """Not asked."""
        raise AssertionError


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = checkout(tmp_path / "r")
    commit(root, {"a": "1\n"})
    git(root, "checkout", "-q", "-b", "feat")
    git(root, "update-ref", "refs/pull/7/head", commit(root, {"b": "1\n"}))
    git(root, "checkout", "-q", "main")
    commit(root, {"c": "1\n"}, date=1_700_000_001)
    return root


def locked(
    tmp: Path, source: Path, *, base: str = "main", head: str = "feat", branch: str = "main"
) -> LockedPullRequest:
    oids = {name: git(source, "rev-parse", name) if len(name) < 40 else name for name in (base, head)}
    recipe = read_recipe(
        RECIPE.format(base=oids[base], head=oids[head], branch=branch).encode(), "recipe.yaml"
    )
    (one,) = lock_pull_requests(recipe, lambda name, url: mirror(tmp, source), Record(oids[head]))
    return one


def test_resolves(tmp_path: Path, source: Path) -> None:
    one = locked(tmp_path, source)
    assert one.head_tree == git(source, "rev-parse", "feat^{tree}")
    assert one.merge_base == git(source, "merge-base", "main", "feat")
    assert one.merge_tree == git(source, "merge-tree", "--write-tree", "main", "feat")
    assert (one.number, one.row, one.git) == (7, "vllm", "https://forge.invalid/o/r.git")


def test_a_conflict_is_a_null_tree(tmp_path: Path, source: Path) -> None:
    commit(source, {"b": "2\n"})
    assert locked(tmp_path, source).merge_tree is None


def test_a_server_without_pull_refs(tmp_path: Path, source: Path) -> None:
    git(source, "update-ref", "-d", "refs/pull/7/head")
    assert locked(tmp_path, source).head == git(source, "rev-parse", "feat")


def test_wrong_pins(tmp_path: Path, source: Path) -> None:
    git(source, "branch", "other", commit(source, {"z": "1\n"}))
    git(source, "reset", "-q", "--hard", "HEAD~1")
    cases = [
        ({"head": "other"}, "PIN_NOT_IN_PR"),
        ({"head": "2" * 40}, "PIN_UNFETCHABLE"),
        ({"base": "other"}, "BASE_REWRITTEN"),
        ({"branch": "gone"}, "BASE_GONE"),
    ]
    for changes, code in cases:
        with pytest.raises(PersonError) as caught:
            locked(tmp_path, source, **changes)
        assert caught.value.code == code
        assert "vllm" in caught.value.what


def test_no_common_history(tmp_path: Path, source: Path) -> None:
    git(source, "checkout", "-q", "--orphan", "alone")
    git(source, "update-ref", "refs/pull/7/head", commit(source, {"z": "1\n"}))
    with pytest.raises(PersonError) as caught:
        locked(tmp_path, source, head="alone")
    assert caught.value.code == "NO_COMMON_HISTORY"
