"""`init`: a complete recipe from pull request URLs and a base image, pinned to what is live now."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from tic_manifest.errors import PersonError, RefusedError
from tic_manifest.formats.recipe import PullUrl, pull_url, read_recipe
from tic_manifest.ports import Forge

ForgeFor = Callable[[str], Forge]
"""API URL to the forge that answers there."""

KNOWN = {"vllm": "vllm", "megatron-lm": "megatron", "verl": "verl"}
_COMMIT = re.compile(r"^[0-9a-f]{40}$")
CHECKLIST = {
    "full_zero_update": "the whole model before any update",
    "theta0_2": "parity after each of two updates",
    "quality": "model quality against the reference",
    "performance": "paired throughput under the approved protocol",
}


def init(urls: Sequence[str], base: str, forge_for: ForgeFor) -> str:
    """YAML of a recipe that `lock` accepts.

    Raises PersonError for what is no pull request, UnavailableError where a forge gives no answer,
    RefusedError BAD_RESPONSE for an answer without head or base.
    """
    parts = [_parts(url) for url in urls]
    webs = {one.web for one in parts}
    if len(webs) != 1:
        raise PersonError(
            "USAGE", "all pull requests of a recipe are on one forge", actual=", ".join(sorted(webs))
        )
    api = _api(webs.pop())
    forge = forge_for(api)
    names = _names(parts)
    recipe: dict[str, Any] = {
        "schema": "tic/recipe/v1",
        "name": "delivery",
        "platform": "linux/amd64",
        "base": base,
        "forge": {"api": api},
        "pull_requests": {n: _pull(u, p, forge) for n, u, p in zip(names, urls, parts, strict=True)},
        "python": {"version": "3.12", "runtime": [], "build": ["setuptools", "wheel"]},
        "workers": {},
        "acceptance": [
            {"id": key, "state": "required", "rationale": text} for key, text in CHECKLIST.items()
        ],
        "policy": {"base_drift": {"max_commits": 0, "action": "fail"}, "forge_mergeable": "required"},
    }
    text: str = yaml.safe_dump(recipe, sort_keys=False, width=110, allow_unicode=False)
    read_recipe(text.encode(), "the recipe that init wrote")
    return text


def _parts(url: str) -> PullUrl:
    parts = pull_url(url)
    if parts is None:
        raise PersonError(
            "USAGE", "not a pull request", expected="https://HOST/OWNER/REPO/pull/NUMBER", actual=url
        )
    return parts


def _api(web: str) -> str:
    """GitHub's own host has its interface beside it, an Enterprise host below `/api/v3`."""
    return "https://api.github.com" if web == "https://github.com" else f"{web}/api/v3"


def _names(parts: Sequence[PullUrl]) -> list[str]:
    plain = [KNOWN.get(one.repo.lower()) or re.sub(r"[^a-z0-9_-]", "-", one.repo.lower()) for one in parts]
    plain = [name if name[:1].isalpha() else f"r-{name}" for name in plain]
    return [
        name if plain.count(name) == 1 else f"{name}-{one.number}"
        for name, one in zip(plain, parts, strict=True)
    ]


def _pull(url: str, parts: PullUrl, forge: Forge) -> dict[str, Any]:
    answer = forge.pull_request(parts.owner, parts.repo, parts.number)
    branch, head = _text(answer, "base", "ref"), _text(answer, "head", "sha")
    base = forge.branch_head(parts.owner, parts.repo, branch)
    if base is None or not _COMMIT.match(head):
        raise RefusedError(
            "BAD_RESPONSE", "the forge names no head or base", where=url, actual=f"{head}, {base}"
        )
    return {
        "url": url,
        "target": {"owner": parts.owner, "branch": branch},
        "trunks": [branch],
        "base": base,
        "head": head,
    }


def _text(answer: Mapping[str, Any], key: str, inner: str) -> str:
    value = answer.get(key)
    found = value.get(inner) if isinstance(value, Mapping) else None
    if not isinstance(found, str):
        raise RefusedError("BAD_RESPONSE", f"an answer without {key}.{inner}", where="pull request")
    return found
