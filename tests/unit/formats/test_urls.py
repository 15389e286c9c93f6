"""Addresses that others wrote: a URL, or nothing, never an exception; found by fuzzing recipes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tic_manifest.errors import PersonError
from tic_manifest.formats.recipe import pull_url, read_recipe
from tic_manifest.formats.urls import join_url, split_url

NONE = ["https://[x/y", "https://[:21]:5000/", "https://a:99999/", "https://a:b/", "https://]a/", "//[/"]


@pytest.mark.parametrize("text", NONE)
def test_what_no_url_can_be(text: str) -> None:
    assert split_url(text) is None and pull_url(text) is None
    assert join_url("https://a/b", text) is None


def test_what_is_one() -> None:
    parts = split_url("https://[::1]:5000/a?b#c")
    assert parts is not None and (parts.hostname, parts.port, parts.path) == ("::1", 5000, "/a")
    assert join_url("https://a/b/c", "../d") == "https://a/d"


@given(st.text("[]:/@.a1%#?\\\t", max_size=40))
def test_any_text_is_split_or_not(text: str) -> None:
    for prefix in ("", "https://"):
        parts = split_url(prefix + text)
        assert parts is None or parts.port is None or 0 <= parts.port < 65536
        join_url("https://a/b", prefix + text)


@pytest.mark.parametrize("key", ["url", "git"])
def test_a_recipe_with_no_url_is_an_error_of_a_person(key: str) -> None:
    lines = {"url": "https://forge.invalid/o/a/pull/1", "git": "https://forge.invalid/o/a.git"} | {
        key: "https://[x/o/a/pull/1"
    }
    raw = f"""schema: tic/recipe/v1
name: example
forge: {{api: "https://forge.invalid/api/v3"}}
pull_requests:
  alpha:
    url: {lines["url"]}
    git: {lines["git"]}
    target: {{owner: o, branch: main}}
    base: {"a" * 40}
    head: {"b" * 40}
""".encode()
    with pytest.raises(PersonError) as raised:
        read_recipe(raw, "recipe.yaml")
    assert raised.value.exit_code == 2 and key in "\n".join(raised.value.lines())
