"""Scripted answers: order, queries, and how long an `until` lasts."""

from __future__ import annotations

from typing import Any

import pytest
from scenarios.script import Script

PULL = "/repos/o/r/pulls/7"


def _bodies(script: Script, *reads: tuple[str, str | None]) -> list[Any]:
    return [(script.take("GET", target, phase) or {}).get("body") for target, phase in reads]


def test_answers_come_in_order_and_the_last_repeats() -> None:
    script = Script({f"GET {PULL}": [{"body": 1}, {"body": 2}]})
    assert _bodies(script, *[(PULL, None)] * 4) == [1, 2, 2, 2]


KEYS: list[tuple[str, str, bool]] = [
    ("GET /repos/o/r/pulls?state=open&per_page=100", "/repos/o/r/pulls?per_page=100&state=open", True),
    ("GET /repos/o/r/pulls?state=open&per_page=100", "/repos/o/r/pulls?state=open", False),
    ("GET /repos/o/r/pulls", "/repos/o/r/pulls?state=all", True),
    ("GET /repos/o/r/pulls?page=1&state=open", "/repos/o/r/pulls?state=open", True),
    ("GET /repos/o/r/pulls?page=2", "/repos/o/r/pulls", False),
    ("GET /repos/o/r/branches/release%2F1.2", "/repos/o/r/branches/release%2f1.2", True),
    ("GET /repos/o/r/branches/release%2F1.2", "/repos/o/r/branches/release/1.2", False),
    ("GET /v2/x/referrers/*", "/v2/x/referrers/sha256:00", True),
    ("POST /repos/o/r/pulls", "/repos/o/r/pulls", False),
]


@pytest.mark.parametrize(("key", "target", "wanted"), KEYS)
def test_which_key_answers(key: str, target: str, wanted: bool) -> None:
    assert (Script({key: [{"body": 1}]}).take("GET", target, None) is not None) is wanted


def test_a_query_wins_over_the_path_alone() -> None:
    script = Script(
        {"GET /p": [{"body": "path"}], "GET /p?a=1&b=2": [{"body": "query"}], "GET /*": [{"body": "star"}]}
    )
    assert _bodies(script, ("/p?b=2&a=1", None), ("/p?a=1", None), ("/q", None)) == ["query", "path", "star"]


SEQUENCE = [
    {"until": "open", "body": "o"},
    {"until": "poll", "body": "p"},
    {"until": "close", "body": "c"},
    {"body": "after"},
]
TOLD = [
    (["open", "open", "poll", "poll", "close", "close"], "ooppcc"),
    (["open", "close"], "oc"),
    (["poll"], "p"),
    (["close", "open"], ["c", "after"]),
]


@pytest.mark.parametrize(("phases", "wanted"), TOLD)
def test_until_lasts_as_long_as_the_client_says(phases: list[str], wanted: Any) -> None:
    script = Script({f"GET {PULL}": SEQUENCE})
    assert _bodies(script, *[(PULL, phase) for phase in phases]) == list(wanted)


def test_without_a_word_from_the_client_a_null_makes_a_poll() -> None:
    script = Script({f"GET {PULL}": SEQUENCE})
    assert _bodies(script, (PULL, None)) == ["o"]
    script.remember("GET", PULL, null=True)
    assert _bodies(script, (PULL, None)) == ["p"]
    script.remember("GET", PULL, null=False)
    assert _bodies(script, (PULL, None)) == ["c"]


def test_a_peek_moves_nothing() -> None:
    script = Script({f"GET {PULL}": [{"body": 1}, {"body": 2}]})
    assert [(script.peek("GET", PULL, None) or {})["body"] for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("answer", [{"until": "never"}, {"stat": 200}, "text"])
def test_an_answer_that_nobody_would_understand_is_an_error(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"answers are|unknown"):
        Script({"GET /p": [answer]})
