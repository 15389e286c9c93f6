"""`Depends-On` lines: what is declared, and what only looks like it (rules/pr-gate.md F8, S17, S18)."""

from __future__ import annotations

import pytest
from tic_manifest.formats.depends_on import declared, placeholders

URL = "https://forge.invalid/o/r/pull/5"


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        (f"Depends-On: {URL}", [("https://forge.invalid", "o", "r", 5)]),
        ("depends-on: o/r#6", [("", "o", "r", 6)]),
        ("* Depends-On: #7\r\n", [("", "", "", 7)]),
        ("Depends-On: #7\nDepends-On: #8, #7", [("", "", "", 7), ("", "", "", 8)]),
        ("<!-- Depends-On: #7 -->", []),
        ("<!-- open\nDepends-On: #7", []),
        ("```\nDepends-On: #7\n```\nDepends-On: #8", [("", "", "", 8)]),
        ("~~~ text\nDepends-On: #7\n~~~", []),
        ("```\nnever closed\nDepends-On: #7", []),
        ("```\n<!-- shown\n```\nDepends-On: #8", [("", "", "", 8)]),
        ("<!--\n```\n-->\nDepends-On: #8\n```", [("", "", "", 8)]),
        ("This Depends-On: #7 in a sentence", []),
        ("Depends-On: https://other.invalid/x/y/-/merge_requests/3", [("", "", "", 0)]),
        ("Depends-On: #0", []),
        ("Depends-On:", []),
    ],
)
def test_targets(text: str, targets: list[tuple[str, str, str, int]]) -> None:
    assert [(one.web, one.owner, one.repo, one.number) for one in declared(text)] == targets


def test_is_bounded() -> None:
    assert len(declared("Depends-On: " + " ".join(f"#{n}" for n in range(1, 500)))) == 50


def test_placeholders() -> None:
    assert placeholders("see TODO_VLLM_PR_URL and TODO later") == ("TODO_VLLM_PR_URL",)
    assert placeholders("<!-- TODO_PR_URL -->") == ()
