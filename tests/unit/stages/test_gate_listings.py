"""The list of open pull requests is read twice per repository and run, however many are judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from tic_manifest.errors import UnavailableError
from tic_manifest.model.gate import Unknown
from tic_manifest.ports_gate import GateForge
from tic_manifest.stages.gate_reads import Listings, Pinned


def pin(repo: str, number: int) -> Pinned:
    """A pull request of a repository."""
    return Pinned(
        name=f"n{number}", url=f"https://forge.invalid/o/{repo}/pull/{number}", web="https://forge.invalid",
        owner="o", repo=repo, number=number, git="", target="main", trunks=("main",), base="1" * 40,
        head="2" * 40,
    )  # fmt: skip


def row(number: int) -> Mapping[str, Any]:
    """A row of a list."""
    return {
        "number": number, "state": "open", "user": {"login": "a"}, "body": "",
        "head": {"ref": "f", "sha": "2" * 40, "repo": {"id": 1}},
        "base": {"ref": "main", "sha": "1" * 40, "repo": {"id": 1}},
    }  # fmt: skip


class Forge:
    """Lists that follow each other; the last repeats."""

    def __init__(self, *scans: Sequence[int] | UnavailableError) -> None:
        self.scans = list(scans)
        self.asked: list[str] = []

    def open_pull_requests(self, owner: str, repo: str) -> Sequence[Mapping[str, Any]]:
        self.asked.append(repo)
        scan = self.scans.pop(0) if len(self.scans) > 1 else self.scans[0]
        if isinstance(scan, UnavailableError):
            raise scan
        return [row(number) for number in scan]


def listings(forge: Forge) -> Listings:
    """As the gate makes them; of a forge no more than lists is asked."""
    return Listings(cast(GateForge, forge))


def test_pull_requests_of_one_repository_share_two_scans() -> None:
    forge = Forge([1, 2])
    lists = listings(forge)
    assert lists.of(pin("r", 1)) == lists.of(pin("R", 2))
    assert forge.asked == ["r", "r"]
    lists.of(pin("other", 3))
    assert forge.asked == ["r", "r", "other", "other"]


def test_a_list_that_changes_three_times_is_unstable_for_all() -> None:
    forge = Forge([1], [1, 2], [1, 2, 3], [1, 2, 3])
    lists = listings(forge)
    first, second = lists.of(pin("r", 1)), lists.of(pin("r", 2))
    assert isinstance(first, Unknown) and first.code == "LISTING_UNSTABLE"
    assert second is first
    assert len(forge.asked) == 3


def test_what_could_not_be_read_is_not_asked_for_again() -> None:
    forge = Forge(UnavailableError("BAD_RESPONSE", "broken"))
    lists = listings(forge)
    assert isinstance(lists.of(pin("r", 1)), Unknown)
    assert isinstance(lists.of(pin("r", 2)), Unknown)
    assert forge.asked == ["r"]
