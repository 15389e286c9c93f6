"""Questions with answers or reasons: how the gate reads forge and git (rules/pr-gate.md F14, F21, F35)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tic_manifest.errors import PersonError, RefusedError, UnavailableError
from tic_manifest.formats.depends_on import Declared
from tic_manifest.formats.forge_pull import Listed, depends, forge_pull, listed
from tic_manifest.model.base import GitCommit
from tic_manifest.model.gate import MAX_LISTED, ForgePull, Unknown
from tic_manifest.ports_gate import GateForge

POLLS = (0, 3, 6, 12, 24)
"""Seconds before each further read while the forge has not said whether it merges (F14)."""

AGAIN = (3, 6)
"""Seconds before each further read where forge and local merge disagree (1.3)."""

Known = TypeVar("Known")


@dataclass(frozen=True, kw_only=True)
class Pinned:
    """A pull request of the recipe, as the gate needs it."""

    name: str
    url: str
    web: str
    owner: str
    repo: str
    number: int
    git: str
    target: str
    trunks: tuple[str, ...]
    base: GitCommit
    head: GitCommit
    repo_id: int | None = None


@dataclass(frozen=True)
class PullRead:
    """One pull request as read, what its text declares, and how often it was polled."""

    pull: ForgePull
    depends: tuple[Declared, ...]
    polls: int = 0


def known(ask: Callable[[], Known]) -> Known | Unknown:
    """The answer, or why there is none. An ambiguous answer and a person's mistake stay exceptions."""
    try:
        return ask()
    except UnavailableError as error:
        return unknown(error)
    except RefusedError as error:
        if error.code != "PIN_UNFETCHABLE":
            raise
        return Unknown(code="OBJECTS_MISSING", what=error.what, actual=error.actual[:4000])


def unknown(error: UnavailableError | PersonError) -> Unknown:
    """The fact that an error stands for."""
    return Unknown(code=error.code, what=error.what, actual=error.actual[:4000], remedy=error.remedy[:4000])


def blocked(what: str) -> Unknown:
    """A question that cannot be asked, for a reason that has its own finding."""
    return Unknown(code="", what=what)


def cut(values: Sequence[str]) -> tuple[str, ...]:
    """The first hundred of a list, each short enough to be kept, in plain text."""
    return tuple(text.encode("utf-8", "replace").decode()[:500] for text in values[:MAX_LISTED])


def read_pull(forge: GateForge, pin: Pinned, *, again: bool = False) -> PullRead:
    """Read a pull request; poll while it is open and the forge has not said whether it merges."""
    data = _polled(forge, pin) if again else forge.pull_request(pin.owner, pin.repo, pin.number)
    pull, polls = forge_pull(data), 0
    for seconds in POLLS:
        if pull.mergeable is not None or pull.state != "open":
            break
        forge.pause(seconds)
        data = _polled(forge, pin)
        pull, polls = forge_pull(data), polls + 1
    return PullRead(pull, depends(data), polls)


def _polled(forge: GateForge, pin: Pinned) -> Mapping[str, Any]:
    forge.enter("poll")
    try:
        return forge.pull_request(pin.owner, pin.repo, pin.number)
    finally:
        forge.enter("open")


def read_again(forge: GateForge, pin: Pinned, read: PullRead, waits: Sequence[float]) -> PullRead:
    """Read again after each wait, until the forge no longer says that it conflicts."""
    for seconds in waits:
        forge.pause(seconds)
        pull = forge_pull(_polled(forge, pin))
        read = PullRead(pull, read.depends, read.polls + 1)
        if pull.mergeable is not False and pull.mergeable_state != "dirty":
            break
    return read


class Listings:
    """Open pull requests of repositories, each list read once in a run, or why it could not be."""

    def __init__(self, forge: GateForge) -> None:
        self._forge = forge
        self._kept: dict[tuple[str, str], dict[int, Listed] | Unknown] = {}

    def of(self, pin: Pinned) -> dict[int, Listed] | Unknown:
        """As `open_pulls`; every pull request of one repository is judged by the same list."""
        key = (pin.owner.lower(), pin.repo.lower())
        if key not in self._kept:
            self._kept[key] = known(lambda: open_pulls(self._forge, pin))
        return self._kept[key]


def open_pulls(forge: GateForge, pin: Pinned) -> dict[int, Listed]:
    """Every open pull request, from two scans with the same numbers (F35); changed rows are read alone.

    Raises UnavailableError LISTING_UNSTABLE when three scans name three sets.
    """
    before = _scan(forge, pin)
    for _ in range(2):
        after = _scan(forge, pin)
        if before.keys() == after.keys():
            changed = [number for number, row in after.items() if row.head_sha != before[number].head_sha]
            return after | {number: _alone(forge, pin, number) for number in changed}
        before = after
    raise UnavailableError(
        "LISTING_UNSTABLE",
        "the list of open pull requests changed in three scans",
        expected="the same numbers twice in a row",
        remedy="run the gate again",
    )


def _scan(forge: GateForge, pin: Pinned) -> dict[int, Listed]:
    rows = (listed(row) for row in forge.open_pull_requests(pin.owner, pin.repo))
    return {row.number: row for row in rows if row.open}


def _alone(forge: GateForge, pin: Pinned, number: int) -> Listed:
    return listed(forge.pull_request(pin.owner, pin.repo, number))
