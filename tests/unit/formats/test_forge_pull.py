"""Answers of a forge as values: null is unknown, a wrong type is an answer that cannot be used."""

from __future__ import annotations

from typing import Any

import pytest
from tic_manifest.errors import UnavailableError
from tic_manifest.formats.forge_pull import forge_pull, listed, repository

HEAD = "1111111111111111111111111111111111111111"


def answer(**changes: Any) -> dict[str, Any]:
    """A pull request as GitHub answers it."""
    repo = {"id": 1, "full_name": "o/r"}
    return {
        "number": 7, "state": "open", "draft": False, "merged": False, "mergeable": True,
        "mergeable_state": "clean", "body": None, "user": {"login": "a"},
        "head": {"ref": "feat", "sha": HEAD, "repo": repo},
        "base": {"ref": "main", "sha": "2" * 40, "repo": repo},
        **changes,
    }  # fmt: skip


def test_reads() -> None:
    pull = forge_pull(answer())
    assert (pull.number, pull.head_sha, pull.base_ref, pull.mergeable, pull.head_repo) == (
        7, HEAD, "main", True, "o/r",
    )  # fmt: skip


def test_base_sha_is_not_kept() -> None:
    assert "2" * 40 not in forge_pull(answer()).model_dump_json()


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"mergeable": None}, "mergeable", None),
        ({"draft": None}, "draft", None),
        ({"mergeable_state": "quantum"}, "mergeable_state", "quantum"),
        ({"merged_at": "2026-01-01T00:00:00Z"}, "merged", True),
        ({"head": {"ref": "feat", "sha": HEAD, "repo": None}}, "head_repo", None),
        ({"stack": None}, "stack_base", None),
        ({"stack": {"base": {"ref": "main", "sha": "x"}}}, "stack_base", "main"),
        ({"user": None}, "author", ""),
    ],
)
def test_fields(changes: dict[str, Any], field: str, value: object) -> None:
    assert getattr(forge_pull(answer(**changes)), field) == value


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "odd"}, {"state": 1}, {"number": True}, {"number": None}, {"draft": "no"},
        {"mergeable": "true"}, {"head": None}, {"head": {"sha": "abc"}}, {"base": {}}, {"user": "a"},
    ],
)  # fmt: skip
def test_cannot_be_used(changes: dict[str, Any]) -> None:
    with pytest.raises(UnavailableError) as caught:
        forge_pull(answer(**changes))
    assert caught.value.code == "BAD_RESPONSE"


def test_row_of_a_list() -> None:
    row = listed(answer(state="closed", body="Depends-On: #3"))
    assert not row.open
    assert [one.number for one in row.depends] == [3]


def test_repository() -> None:
    assert repository({"id": 1, "full_name": "o/r"}).id == 1
    with pytest.raises(UnavailableError):
        repository({"id": "1", "full_name": "o/r"})
