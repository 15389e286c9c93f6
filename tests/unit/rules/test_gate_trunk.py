"""Whose of two pull requests an overlap is, and which branches are trunks."""

from __future__ import annotations

import pytest
from tic_manifest.rules.gate_stack import owner
from tic_manifest.rules.gate_trunk import is_trunk


def test_owner() -> None:
    assert owner(7, 3, None, None) == (True, "lower number")
    assert owner(7, 9, None, None) == (False, "lower number")
    assert owner(7, 3, None, "ours") == (False, "authorship")
    assert owner(7, 9, "theirs", "ours") == (True, "declaration")


@pytest.mark.parametrize(
    ("branch", "glob", "yes"),
    [
        ("main", "main", True), ("mainx", "main", False), ("releases/1", "releases/*", True),
        ("releases/1/x", "releases/*", False), ("core_r0.16.0", "core_r*", True), ("a.b", "a?b", True),
        ("a/b", "a?b", False), ("axb", "a.b", False), ("main\n", "main", False),
    ],
)  # fmt: skip
def test_trunks(branch: str, glob: str, yes: bool) -> None:
    assert is_trunk(branch, [glob]) is yes
