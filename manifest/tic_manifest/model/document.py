"""The report as a document: sections in the template's order, every place filled or marked with a reason.

A place that has nothing in it cannot be made: blank is not a value (report template, "mark missing evidence
as not run").
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tic_manifest.model.base import Digest, Value
from tic_manifest.model.verdict import Outcome, Report

Missing = Literal["not_run", "unverified", "unknown"]


class Entry(Value):
    """One place of the template: words of this tool, then lines from evidence; or what is missing and why.

    `missing`: `not_run` (no evidence), `unverified` (out of scope), `unknown` (looked for, not established).
    """

    words: str = ""
    lines: tuple[str, ...] = ()
    missing: Missing | None = None
    reason: str = ""

    @model_validator(mode="after")
    def _never_blank(self) -> Self:
        if self.missing and not self.reason.strip():
            raise ValueError("what is missing needs a reason")
        if not self.missing and not self.words.strip() and not self.lines:
            raise ValueError("a place of the report is never blank")
        if any(not line.strip() for line in self.lines):
            raise ValueError("a line of the report is never blank")
        return self

    @property
    def text(self) -> str:
        """The words, or what is missing with its reason."""
        return f"{self.missing.replace('_', ' ')}: {self.reason}" if self.missing else self.words


class Fact(Value):
    """A labelled place; the label is the template's wording."""

    label: Annotated[str, Field(min_length=1)]
    entry: Entry


class Facts(Value):
    """Labelled places, one below the other."""

    kind: Literal["facts"] = "facts"
    title: str = ""
    facts: Annotated[tuple[Fact, ...], Field(min_length=1)]


class GridRow(Value):
    """A row of a table: its label, then one place a column."""

    label: Annotated[str, Field(min_length=1)]
    cells: tuple[Entry, ...]


class Grid(Value):
    """A table of the template; `head` names every column, the label's first."""

    kind: Literal["grid"] = "grid"
    title: str = ""
    head: tuple[str, ...]
    rows: Annotated[tuple[GridRow, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _as_wide_as_its_head(self) -> Self:
        if any(len(row.cells) + 1 != len(self.head) for row in self.rows):
            raise ValueError("a row is not as wide as the head")
        return self


class Remark(Value):
    """A sentence of the template that holds for whatever stands above."""

    kind: Literal["remark"] = "remark"
    text: Annotated[str, Field(min_length=1)]


class Listing(Value):
    """Text that is shown as it is, in a language."""

    kind: Literal["listing"] = "listing"
    title: str = ""
    language: str
    text: Annotated[str, Field(min_length=1)]


Block = Annotated[Facts | Grid | Remark | Listing, Field(discriminator="kind")]


class Section(Value):
    """A section of the template."""

    heading: str
    blocks: Annotated[tuple[Block, ...], Field(min_length=1)]


class Document(Value):
    """The whole report. `verdict` holds the checks and findings that it was written from."""

    schema_: Literal["tic/report/v1"] = Field(alias="schema")
    title: str
    outcome: Outcome
    platform_digest: Digest
    index_digest: Digest | None
    lock_digest: Digest
    sections: tuple[Section, ...]
    verdict: Report


def said(words: str = "", *lines: str) -> Entry:
    """A filled place. Blank lines are dropped; where nothing is left the place is `unknown`."""
    kept = tuple(line for line in lines if line.strip())
    if not words.strip() and not kept:
        return unknown("the evidence holds an empty value")
    return Entry(words=words, lines=kept)


def listed(lines: list[str] | tuple[str, ...], empty: Entry) -> Entry:
    """The lines, or the entry to show where there are none."""
    kept = tuple(line for line in lines if line.strip())
    return Entry(lines=kept) if kept else empty


def not_run(reason: str) -> Entry:
    """Nothing measured it."""
    return Entry(missing="not_run", reason=reason or "no reason was recorded")


def unverified(reason: str) -> Entry:
    """Out of scope: never passed."""
    return Entry(missing="unverified", reason=reason or "out of scope")


def unknown(reason: str) -> Entry:
    """Looked for in the evidence and not established by it."""
    return Entry(missing="unknown", reason=reason or "no reason was recorded")


def facts(title: str, *rows: tuple[str, Entry]) -> Facts:
    """Labelled places in their order."""
    return Facts(title=title, facts=tuple(Fact(label=label, entry=entry) for label, entry in rows))


def grid(title: str, head: tuple[str, ...], rows: list[tuple[str, tuple[Entry, ...]]]) -> Grid:
    """A table from (label, cells) rows."""
    return Grid(title=title, head=head, rows=tuple(GridRow(label=one, cells=cells) for one, cells in rows))
