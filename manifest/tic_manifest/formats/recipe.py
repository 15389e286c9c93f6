"""Recipe bytes to a Recipe; every mistake with file, line and key (contract, section 5)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from tic_manifest.errors import PersonError
from tic_manifest.formats.strict_yaml import Located, load_yaml
from tic_manifest.formats.urls import split_url
from tic_manifest.model.recipe import PullRequest, Recipe

_PULL = re.compile(
    r"^/(?P<owner>[A-Za-z0-9][A-Za-z0-9-]*)/(?P<repo>[A-Za-z0-9._-]+)/pull/(?P<number>[1-9][0-9]{0,9})/?$"
)
_SHA256 = re.compile(r"^[0-9a-f]{64}$")


@dataclass(frozen=True, kw_only=True)
class PullUrl:
    """The parts of a pull request's URL. `web` is scheme and host."""

    web: str
    owner: str
    repo: str
    number: int


def read_recipe(raw: bytes, where: str) -> Recipe:
    """The recipe of a file. Raises PersonError RECIPE for the first mistake, with its line."""
    located = load_yaml(raw, where)
    if not isinstance(located.data, dict):
        raise PersonError(
            "RECIPE",
            "a recipe is a mapping",
            where=where,
            expected="keys",
            actual=type(located.data).__name__,
        )
    try:
        recipe = Recipe.model_validate(_tuples(located.data))
    except ValidationError as error:
        raise _person_error(error, located, where) from error
    for name, pull in recipe.pull_requests.items():
        _check_pull(name, pull, located, where)
    _check_references(recipe, located, where)
    return recipe


def pull_url(url: str) -> PullUrl | None:
    """The parts of `https://HOST/OWNER/REPO/pull/N`; None for anything else."""
    parts = split_url(url)
    found = _PULL.match(parts.path) if parts else None
    if parts is None or not found or not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
        return None
    return PullUrl(
        web=f"{parts.scheme}://{parts.netloc}",
        owner=found["owner"],
        repo=found["repo"],
        number=int(found["number"]),
    )


def git_url(pull: PullRequest) -> str:
    """Where the repository is cloned from: `git`, or derived from the pull request's URL."""
    parts = pull_url(pull.url)
    return pull.git or (f"{parts.web}/{parts.owner}/{parts.repo}.git" if parts else pull.url)


def row_of(name: str, pull: PullRequest) -> str:
    """The row of the template: `row`, by default the key."""
    return pull.row or name


def _check_pull(name: str, pull: PullRequest, located: Located, where: str) -> None:
    place = f"{where}:{located.line(('pull_requests', name, 'url'))}"
    if pull_url(pull.url) is None:
        raise PersonError(
            "RECIPE", f"pull_requests.{name}.url is not a pull request", where=place,
            expected="https://HOST/OWNER/REPO/pull/NUMBER", actual=pull.url,
        )  # fmt: skip


def reference_problem(recipe: Recipe) -> tuple[tuple[str | int, ...], str, str] | None:
    """The first reference that leads nowhere, or name that stands twice: path, words, what was said."""
    workers = recipe.workers
    for name, worker in workers.items():
        bad = next((one for one in worker.needs if one not in workers or one == name), None)
        if bad is not None:
            return ("workers", name, "needs"), f"workers.{name}.needs names no other worker", bad
    for index, row in enumerate(recipe.validation.comparisons):
        bad = next((side for side in (row.left, row.right) if side.partition("/")[0] not in workers), None)
        if bad is not None:
            return ("validation", "comparisons", index), f"comparison {row.id} names no worker", bad
    for path, ids in _ids(recipe).items():
        twice = next((index for index, one in enumerate(ids) if one in ids[:index]), None)
        if twice is not None:
            return (*path, twice), "an id stands twice", ids[twice]
    return None


def _ids(recipe: Recipe) -> dict[tuple[str, ...], list[str]]:
    return {
        ("validation", "comparisons"): [row.id for row in recipe.validation.comparisons],
        ("acceptance",): [row.id for row in recipe.acceptance],
    }


def _check_references(recipe: Recipe, located: Located, where: str) -> None:
    problem = reference_problem(recipe)
    if problem is not None:
        path, what, actual = problem
        place = f"{where}:{located.line(path)}"
        raise PersonError(
            "RECIPE", what, where=place, expected="a key of workers, each id once", actual=actual
        )


def _person_error(error: ValidationError, located: Located, where: str) -> PersonError:
    one = error.errors(include_url=False)[0]
    path = tuple(part for part in one["loc"] if not _is_union_tag(part))
    key = ".".join(str(part) for part in path)
    return PersonError(
        "RECIPE", f"{key}: {_words(one)}", where=f"{where}:{located.line(path)}",
        expected=_expected(one), actual=_shown(one.get("input")),
        remedy="see docs/recipe.md for every key",
    )  # fmt: skip


def _is_union_tag(part: int | str) -> bool:
    return isinstance(part, str) and ("[" in part or part in {"DebianBase"})


def _words(one: Any) -> str:
    known = {"extra_forbidden": "unknown key", "missing": "key is missing"}
    return known.get(one["type"], str(one["msg"]))


def _expected(one: Any) -> str:
    if one["type"] == "extra_forbidden":
        return "a key of the schema tic/recipe/v1"
    pattern = str(one.get("ctx", {}).get("pattern", ""))
    if pattern == "^[0-9a-f]{40}$":
        value = one.get("input")
        sha256 = isinstance(value, str) and _SHA256.match(value)
        return "a commit of a SHA-1 repository (SHA-256 is not supported yet)" if sha256 else "40 hex digits"
    return pattern or str(one["msg"])


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 120 else text[:120] + "..."


def _tuples(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _tuples(value) for key, value in data.items()}
    return tuple(_tuples(one) for one in data) if isinstance(data, list) else data
