"""`init` against a fake forge with full commits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tic_manifest.errors import PersonError, RefusedError
from tic_manifest.formats.recipe import read_recipe
from tic_manifest.stages.init import init

HEAD, BASE = "1" * 39 + "a", "2" * 39 + "b"
IMAGE = "registry.example/base@sha256:" + "3" * 64


class FakeForge:
    def __init__(self, head: object = HEAD, base: str | None = BASE) -> None:
        self._head, self._base = head, base

    def pull_request(self, owner: str, repo: str, number: int) -> Mapping[str, Any]:
        return {"head": {"sha": self._head}, "base": {"ref": "dev/x"}}

    def branch_head(self, owner: str, repo: str, branch: str) -> str | None:
        return self._base


def test_the_recipe_is_complete_and_pinned() -> None:
    urls = [
        "https://github.com/vllm-project/vllm/pull/1",
        "https://github.com/NVIDIA/Megatron-LM/pull/2",
        "https://github.com/demo/tools/pull/3",
        "https://github.com/other/tools/pull/4",
    ]
    asked: list[str] = []
    text = init(urls, IMAGE, lambda api: asked.append(api) or FakeForge())
    recipe = read_recipe(text.encode(), "r")
    assert list(recipe.pull_requests) == ["vllm", "megatron", "tools-3", "tools-4"]
    assert asked == ["https://api.github.com"]
    assert {(one.head, one.base, one.target.branch) for one in recipe.pull_requests.values()} == {
        (HEAD, BASE, "dev/x")
    }
    assert recipe.base == IMAGE


def test_enterprise_has_its_interface_below_api_v3() -> None:
    asked: list[str] = []
    init(["https://ghe.example/o/r/pull/1"], IMAGE, lambda api: asked.append(api) or FakeForge())
    assert asked == ["https://ghe.example/api/v3"]


@pytest.mark.parametrize(
    ("urls", "forge", "error", "code"),
    [
        (["https://github.com/o/r/issues/1"], FakeForge(), PersonError, "USAGE"),
        (
            ["https://github.com/o/r/pull/1", "https://ghe.example/o/r/pull/1"],
            FakeForge(),
            PersonError,
            "USAGE",
        ),
        (["https://github.com/o/r/pull/1"], FakeForge(head=None), RefusedError, "BAD_RESPONSE"),
        (["https://github.com/o/r/pull/1"], FakeForge(head="abc"), RefusedError, "BAD_RESPONSE"),
        (["https://github.com/o/r/pull/1"], FakeForge(base=None), RefusedError, "BAD_RESPONSE"),
    ],
)
def test_bad_input(urls: list[str], forge: FakeForge, error: type[Exception], code: str) -> None:
    with pytest.raises(error) as caught:
        init(urls, IMAGE, lambda api: forge)
    assert caught.value.code == code  # type: ignore[attr-defined]
