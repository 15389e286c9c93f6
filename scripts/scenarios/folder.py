"""Reading a scenario folder: which files it has, and the values that are substituted in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXPECT_KEYS = frozenset(
    {"exit", "outcome", "must", "must_not", "subjects", "contains", "not_contains", "files", "absent"}
)
_SHA = re.compile(r"\$\{sha:([^:{}]+):([^{}]+)\}")


class BrokenError(Exception):
    """The scenario itself cannot be run; it fails with this text."""


@dataclass(frozen=True)
class Scenario:
    """One folder. `name` is its path below the DIR that was given."""

    name: str
    path: Path

    def json(self, file: str, default: Any = None) -> Any:
        """A JSON file of the folder, or `default` where it is absent. Raises BrokenError."""
        return read_json(self.path / file, default)

    @property
    def needs_bench(self) -> bool:
        """Whether it runs JIT compilers or Ray: the file `needs` says `probe-bench`."""
        needs = self.path / "needs"
        return needs.is_file() and "probe-bench" in needs.read_text().split()

    def expected(self) -> dict[str, Any]:
        """`expect.json`, with no key that nobody would look at. Raises BrokenError."""
        expect = self.json("expect.json")
        if not isinstance(expect, dict) or "exit" not in expect:
            raise BrokenError("expect.json needs at least the key `exit`")
        unknown = sorted(set(expect) - EXPECT_KEYS)
        if unknown:
            raise BrokenError(f"expect.json has unknown keys: {', '.join(unknown)}")
        return expect

    def argv(self) -> list[str]:
        """`command.json`. Raises BrokenError."""
        argv = self.json("command.json")
        if not isinstance(argv, list) or not argv or not all(isinstance(one, str) for one in argv):
            raise BrokenError("command.json is not a list of strings")
        return argv


def read_json(path: Path, default: Any = None) -> Any:
    """A JSON document, or `default` where there is no file. Raises BrokenError."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return default
    except ValueError as error:
        raise BrokenError(f"{path.name} is not JSON: {error}") from error


def find(roots: list[Path]) -> list[Scenario]:
    """Every scenario at or below the roots, in order of path, each once."""
    found: dict[Path, Scenario] = {}
    for root in roots:
        for folder in _folders(root.resolve()):
            name = str(folder.relative_to(root.resolve())) if folder != root.resolve() else folder.name
            found.setdefault(folder, Scenario(name, folder))
    return list(found.values())


def _folders(root: Path) -> Iterator[Path]:
    marks = [*root.rglob("expect.json"), *root.rglob("command.json")]
    yield from sorted({mark.parent for mark in marks})


def substitute(value: Any, names: Mapping[str, str], work: Path) -> Any:
    """`{name}` and `${sha:REPO:REF}` replaced in every string below `value`, keys included."""
    if isinstance(value, str):
        return _text(value, names, work)
    if isinstance(value, list):
        return [substitute(one, names, work) for one in value]
    if isinstance(value, dict):
        return {_text(key, names, work): substitute(one, names, work) for key, one in value.items()}
    return value


def _text(text: str, names: Mapping[str, str], work: Path) -> str:
    for name, replacement in names.items():
        text = text.replace("{" + name + "}", replacement)
    return _SHA.sub(lambda found: _sha(work, found[1], found[2]), text)


def _sha(work: Path, repository: str, ref: str) -> str:
    from scenarios.gitrepo import Bare

    commit = Bare(work / f"{repository}.git").commit(ref)
    if commit is None:
        raise BrokenError(f"${{sha:{repository}:{ref}}} names no commit")
    return commit
