"""Heads that a bot moved with equal content: the recipe updated, with the proof (pr-gate.md F18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tic_manifest.errors import PersonError
from tic_manifest.formats.strict_yaml import load_yaml
from tic_manifest.model.gate import GateFacts, HeadFacts, PullRequestFacts
from tic_manifest.model.verdict import Report, note, report


@dataclass(frozen=True)
class Certificate:
    """What lets a pin move: every own commit has its equal, in order, by patch, author and message."""

    name: str
    old: str
    new: str
    base: str
    new_base: str
    range_diff: tuple[str, ...]

    @property
    def command(self) -> str:
        """How anybody checks it."""
        return f"git range-diff {self.base} {self.old} {self.new}"


def certificates(facts: GateFacts) -> tuple[Certificate, ...]:
    """The heads that may be moved."""
    return tuple(one for pull in facts.pulls for one in _certificate(pull))


def _certificate(pull: PullRequestFacts) -> list[Certificate]:
    seen = pull.head
    if not isinstance(seen, HeadFacts) or not seen.equal or seen.pin_in_head:
        return []
    records = {one for one in (seen.ref, seen.forge, seen.branch, seen.listed) if one}
    return [
        Certificate(
            pull.name,
            pull.pinned_head,
            new,
            pull.pinned_base,
            seen.newer_fork or pull.pinned_base,
            seen.range_diff,
        )
        for new in records
        if len(records) == 1
    ]


def repinned(raw: bytes, where: str, moved: Sequence[Certificate]) -> bytes:
    """The recipe's own text with the new heads, and bases where a head forks from a newer trunk commit.

    Nothing else of it changes. Raises PersonError RECIPE.
    """
    located = load_yaml(raw, where)
    lines = raw.decode("utf-8").split("\n")
    for one in moved:
        for key, old, new in (("head", one.old, one.new), ("base", one.base, one.new_base)):
            at = located.line(("pull_requests", one.name, key)) - 1
            if lines[at].count(old) != 1:
                raise PersonError(
                    "RECIPE",
                    f"pull_requests.{one.name}.{key} does not stand on a line of its own",
                    where=f"{where}:{at + 1}",
                )
            lines[at] = lines[at].replace(old, new)
    return "\n".join(lines).encode("utf-8")


def with_certificates(judged: Report, moved: Sequence[Certificate]) -> Report:
    """The report of the updated recipe, with a note for every head that was moved."""
    notes = [
        note(
            "REPINNED",
            one.name,
            expected=one.old,
            actual=one.new,
            evidence={
                "oids": [one.old, one.new],
                "base": [one.base, one.new_base],
                "commands": [one.command],
                "range_diff": list(one.range_diff),
            },
        )
        for one in moved
    ]
    return report(
        "gate", judged.checks, [*judged.findings, *notes], subjects=judged.subjects, partial=judged.partial
    )
