"""What a local forge knows: bare repositories of a work folder, and the facts beside them.

`NAME.git/pulls.json` is optional: {"full_name": "o/r", "id": 7, "old_names": ["a/r"], "parent": "o/up",
"accounts": {"a@example.com": "login"}, "pulls": {"12": {"title": ..., "base": "main", "head": "feat", ...}}}.
A pull request exists where `refs/pull/N/head` does; what its facts leave out is taken from the refs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scenarios.gitrepo import Bare

FACTS = "pulls.json"


@dataclass(frozen=True)
class Repository:
    """One bare repository under the name it is asked for by."""

    full_name: str
    bare: Bare
    facts: Mapping[str, Any] = field(default_factory=dict)
    id: int = 0

    @property
    def owner(self) -> str:
        """The account that owns it."""
        return self.full_name.partition("/")[0]

    @property
    def name(self) -> str:
        """The name without its owner."""
        return self.full_name.partition("/")[2]

    def branch(self, name: str) -> str | None:
        """The tip of a branch."""
        return self.bare.refs(f"refs/heads/{name}").get(f"refs/heads/{name}")

    def pull_numbers(self) -> list[int]:
        """Pull requests, newest first."""
        heads = [ref.split("/") for ref in self.bare.refs("refs/pull/")]
        return sorted(
            {int(part[2]) for part in heads if part[3:] == ["head"] and part[2].isdigit()}, reverse=True
        )

    def pull_facts(self, number: int) -> Mapping[str, Any]:
        """What `pulls.json` says of a pull request."""
        facts: Mapping[str, Any] = self.facts.get("pulls", {}).get(str(number), {})
        return facts


class World:
    """The repositories of a work folder. `ids` are numbers that scripted answers give to names."""

    def __init__(self, work: Path, ids: Mapping[str, int] | None = None) -> None:
        self.work = work
        self._ids = {name.lower(): number for name, number in (ids or {}).items()}

    def find(self, full_name: str) -> Repository | None:
        """The repository that answers to `owner/name`: by its own facts, else `name.git`."""
        for one in self._known():
            if one.full_name.lower() == full_name.lower():
                return one
        for name in (full_name, full_name.rpartition("/")[2]):
            path = self.work / f"{name}.git"
            if path.is_dir() and not _facts(path).get("full_name"):
                return self._repository(path, full_name)
        return None

    def moved(self, full_name: str) -> Repository | None:
        """The repository that had this name once."""
        known = self._known()
        return next((one for one in known if full_name in one.facts.get("old_names", [])), None)

    def by_id(self, number: int) -> Repository | None:
        """The repository with a numeric id: its own, or that of a name asked for before."""
        for one in self._known():
            if one.id == number:
                return one
        name = next((name for name, known in self._ids.items() if known == number), None)
        return self.find(name) if name else None

    def git_path(self, full_name: str) -> Path | None:
        """The folder that git serves for a name, old names included; a path below the work folder wins."""
        direct = self.work / f"{full_name}.git"
        if direct.is_dir() and direct.resolve().is_relative_to(self.work.resolve()):
            return direct
        found = self.find(full_name) or self.moved(full_name)
        return found.bare.path if found else None

    def _known(self) -> list[Repository]:
        paths = [path for path in sorted(self.work.glob("*.git")) if _facts(path).get("full_name")]
        return [self._repository(path, _facts(path)["full_name"]) for path in paths]

    def _repository(self, path: Path, full_name: str) -> Repository:
        facts = _facts(path)
        number = facts.get("id") or self._ids.setdefault(full_name.lower(), stable_id(full_name.lower()))
        return Repository(full_name, Bare(path), facts, number)


def stable_id(text: str) -> int:
    """A number for a name, the same on every machine."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:7], 16) + 1


def _facts(path: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads((path / FACTS).read_bytes())
    except FileNotFoundError:
        return {}
    return facts
