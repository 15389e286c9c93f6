"""The GitHub client against scripted answers: pages, rate limits, refusals, redirects, tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from tic_manifest.adapters.forge import GitHubForge
from tic_manifest.adapters.forge_http import RawAnswer, token_for
from tic_manifest.adapters.forge_map import ForgeMap
from tic_manifest.errors import RefusedError, TicError, UnavailableError

API = "https://forge.invalid/api/v3"
COMMIT = "1111111111111111111111111111111111111111"


def ok(data: Any, **headers: str) -> RawAnswer:
    """A good answer."""
    return RawAnswer(200, headers, json.dumps(data).encode())


@dataclass
class Script:
    """Answers in order; what was asked is kept."""

    answers: list[RawAnswer | TicError]
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    def get(self, url: str, headers: Mapping[str, str]) -> RawAnswer:
        """The next answer; the last one repeats."""
        self.asked.append((url, headers))
        one = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(one, TicError):
            raise one
        return one


def forge(*answers: RawAnswer | TicError) -> tuple[GitHubForge, Script, list[float]]:
    """A client, its script, and the waits it made."""
    script, waits = Script(list(answers)), []
    client = GitHubForge(API, script, ForgeMap({}), waits.append, lambda: 1000.0)
    return client, script, waits


def code_of(client: GitHubForge) -> str:
    with pytest.raises(UnavailableError) as caught:
        client.pull_request("o", "r", 7)
    return caught.value.code


def test_path_prefix_is_kept() -> None:
    client, script, _ = forge(ok({"number": 7}))
    client.pull_request("o", "r", 7)
    assert script.asked[0][0] == f"{API}/repos/o/r/pulls/7"


def test_follows_every_page() -> None:
    second = f"{API}/repositories/1/pulls?page=2"
    client, script, _ = forge(
        ok([{"number": 1}], link=f'<{second}>; rel="next", <x>; rel="last"'), ok([{"number": 2}])
    )
    assert [row["number"] for row in client.open_pull_requests("o", "r")] == [1, 2]
    assert script.asked[1][0] == second


@pytest.mark.parametrize(
    "there",
    ["https://evil.invalid/p?page=2", "http://forge.invalid/x", "https://[x", "https://forge.invalid:99999/"],
)
def test_next_page_elsewhere_is_no_page(there: str) -> None:
    client, script, _ = forge(ok([], link=f'<{there}>; rel="next"'))
    with pytest.raises(UnavailableError):
        client.open_pull_requests("o", "r")
    assert all("evil" not in url for url, _ in script.asked)


def test_a_page_that_repeats_ends() -> None:
    url = f"{API}/repos/o/r/pulls?state=open&per_page=100&sort=created&direction=asc"
    client, _, _ = forge(ok([], link=f'<{url}>; rel="next"'))
    with pytest.raises(UnavailableError):
        client.open_pull_requests("o", "r")


def test_not_modified_is_the_earlier_page() -> None:
    client, script, _ = forge(ok([{"number": 1}], etag='"a"'), RawAnswer(304))
    assert client.open_pull_requests("o", "r") == client.open_pull_requests("o", "r")
    assert script.asked[1][1]["If-None-Match"] == '"a"'


def test_mergeability_is_never_conditional() -> None:
    client, script, _ = forge(ok({"number": 7}, etag='"a"'))
    client.pull_request("o", "r", 7)
    client.pull_request("o", "r", 7)
    assert all("If-None-Match" not in headers for _, headers in script.asked)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (RawAnswer(404), "NO_ACCESS"),
        (RawAnswer(401), "NO_ACCESS"),
        (RawAnswer(403, {}, b'{"message": "SSO"}'), "NO_ACCESS"),
        (RawAnswer(500), "BAD_RESPONSE"),
        (RawAnswer(304), "BAD_RESPONSE"),
        (RawAnswer(200, {}, b"<html>"), "BAD_RESPONSE"),
        (RawAnswer(200, {}, b'{"number": 7'), "BAD_RESPONSE"),
        (RawAnswer(200, {}, b"[]"), "BAD_RESPONSE"),
        (RawAnswer(301, {"location": "https://evil.invalid/"}), "BAD_RESPONSE"),
        (RawAnswer(301, {"location": f"{API}/loop"}), "BAD_RESPONSE"),
        (RawAnswer(403, {}, b"You have exceeded a secondary rate limit"), "RATE_LIMITED"),
        (RawAnswer(429, {"retry-after": "3600"}), "RATE_LIMITED"),
        (RawAnswer(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "99999"}), "RATE_LIMITED"),
        (UnavailableError("TIMEOUT", "x"), "TIMEOUT"),
        (UnavailableError("NETWORK", "x"), "NETWORK"),
    ],
)
def test_refusals(answer: RawAnswer | TicError, code: str) -> None:
    client, _, waits = forge(answer)
    assert code_of(client) == code
    assert sum(waits) <= 200


def test_duplicate_keys_are_refused() -> None:
    client, _, _ = forge(RawAnswer(200, {}, b'{"draft": true, "draft": false}'))
    with pytest.raises(RefusedError):
        client.pull_request("o", "r", 7)


def test_waits_as_long_as_it_is_told() -> None:
    client, _, waits = forge(RawAnswer(429, {"retry-after": "7"}), ok({"number": 7}))
    assert client.pull_request("o", "r", 7) == {"number": 7}
    assert waits == [7.0]


def test_reset_is_by_the_forges_clock() -> None:
    headers = {
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": "1767225610",
        "date": "Thu, 01 Jan 2026 00:00:00 GMT",
    }
    client, _, waits = forge(RawAnswer(403, headers), ok({"number": 7}))
    client.pull_request("o", "r", 7)
    assert waits == [10.0]


def test_a_broken_answer_is_asked_for_again() -> None:
    client, _, _ = forge(RawAnswer(502), RawAnswer(200, {}, b"{"), ok({"number": 7}))
    assert client.pull_request("o", "r", 7) == {"number": 7}


def test_branch() -> None:
    client, script, _ = forge(ok({"object": {"sha": COMMIT}}))
    assert client.branch_head("o", "r", "release/1.2 x") == COMMIT
    assert script.asked[0][0].endswith("/git/ref/heads/release/1.2%20x")


def test_branch_is_gone_only_where_the_repository_answers() -> None:
    client, _, _ = forge(RawAnswer(404), ok({"id": 1}))
    assert client.branch_head("o", "r", "x") is None
    client, _, _ = forge(RawAnswer(404))
    with pytest.raises(UnavailableError):
        client.branch_head("o", "r", "x")


@pytest.mark.parametrize(
    ("environ", "url", "token"),
    [
        ({"GITHUB_TOKEN": "t"}, "https://api.github.com/x", "t"),
        ({"GITHUB_TOKEN": "t"}, "https://api.github.com.evil.invalid/x", ""),
        ({"GITHUB_TOKEN": "t"}, "http://api.github.com/x", ""),
        ({"GITHUB_TOKEN": "t"}, "https://github.com/x", ""),
        (
            {"GITHUB_TOKEN": "t", "GITHUB_API_URL": "https://ghe.invalid/api/v3"},
            "https://ghe.invalid/api/v3/x",
            "t",
        ),
        (
            {"GITHUB_TOKEN": "t", "GITHUB_API_URL": "https://ghe.invalid/api/v3"},
            "https://api.github.com/x",
            "",
        ),
        ({"GH_ENTERPRISE_TOKEN": "e", "GH_HOST": "ghe.invalid"}, "https://ghe.invalid/api/v3/x", "e"),
        ({"GH_ENTERPRISE_TOKEN": "e"}, "https://ghe.invalid/x", ""),
        ({}, "https://api.github.com/x", ""),
    ],
)
def test_token_goes_to_its_own_host_alone(environ: dict[str, str], url: str, token: str) -> None:
    assert token_for(environ, url) == token
