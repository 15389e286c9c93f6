"""pip's configuration, as `pip config list` prints it, passed on to uv."""

from __future__ import annotations

import pytest
from tic_manifest.adapters.pip_settings import PipSettings, parse_pip_settings

LISTED = """\
:env:.find-links='/env/wheels'
global.constraint='/etc/constraints.txt'
global.extra-index-url='https://user:secret@one.example/simple file:///two/simple'
global.find-links='/global/wheels'
global.index-url='https://index.example/simple'
install.no-index='false'
freeze.timeout='10'
broken line
"""


def test_environment_wins_and_lists_are_split() -> None:
    found = parse_pip_settings(LISTED)
    assert found.find_links == ("/env/wheels",)
    assert found.extra_index_urls == ("https://user:secret@one.example/simple", "file:///two/simple")
    assert found.constraints == ("/etc/constraints.txt",)
    assert (found.index_url, found.no_index) == ("https://index.example/simple", False)


def test_uv_gets_indexes_through_its_environment() -> None:
    env = parse_pip_settings(LISTED).uv_environment(["https://recipe.example/cpu"])
    assert env["UV_DEFAULT_INDEX"] == "https://index.example/simple"
    assert env["UV_INDEX"].split()[-1] == "https://recipe.example/cpu"
    assert env["UV_FIND_LINKS"] == "/env/wheels"


def test_credentials_belong_to_their_own_host() -> None:
    assert parse_pip_settings(LISTED).credentials() == {"one.example": ("user", "secret")}


@pytest.mark.parametrize("text", ["", "\n", "nothing here", "global.=''"], ids=repr)
def test_no_configuration_is_no_settings(text: str) -> None:
    assert parse_pip_settings(text) == PipSettings()
