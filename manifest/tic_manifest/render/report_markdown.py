"""The report as Markdown: every place of the template, everything from evidence inert."""

from __future__ import annotations

import re

from tic_manifest.model.document import Block, Document, Entry, Facts, Grid, Listing, Remark, Section
from tic_manifest.render.escape import printable
from tic_manifest.render.markup import code, prose, table


def render(document: Document) -> str:
    """The whole report (GitHub's flavour of Markdown)."""
    return "\n\n".join([head(document), *(section(one) for one in document.sections)]) + "\n"


def head(document: Document) -> str:
    """Title, outcome, and the labelled digests that the report is about."""
    rows = [
        f"- outcome {document.outcome.value}",
        f"- platform manifest digest {code(document.platform_digest)}",
        f"- image index digest {code(document.index_digest) if document.index_digest else 'none'}",
        f"- lock digest {code(document.lock_digest)}",
    ]
    return "\n".join([f"# {document.title}", "", *rows])


def section(one: Section) -> str:
    """A heading of the template with its blocks."""
    return "\n\n".join([f"## {one.heading}", *(block(part) for part in one.blocks)])


def block(one: Block) -> str:
    """A block below its title, when it has one."""
    title = "" if isinstance(one, Remark) else one.title
    return (f"### {prose(title)}\n\n" if title else "") + _body(one)


def _body(one: Block) -> str:
    if isinstance(one, Facts):
        rows = [[prose(fact.label), entry(fact.entry)] for fact in one.facts]
        return "\n".join(table(["What", "Evidence"], rows))
    if isinstance(one, Grid):
        return "\n".join(table([prose(name) for name in one.head], _grid_rows(one)))
    if isinstance(one, Listing):
        return fence(one)
    return prose(one.text)


def _grid_rows(one: Grid) -> list[list[str]]:
    return [[prose(row.label), *(entry(cell) for cell in row.cells)] for row in one.rows]


def entry(one: Entry) -> str:
    """A place: our words, then a line of evidence after another."""
    words = [prose(one.text)] if one.text else []
    return "<br>".join([*words, *(code(line) for line in one.lines)])


def fence(one: Listing) -> str:
    """A fenced block whose fence is longer than any run of backticks inside."""
    text = "\n".join(printable(line) for line in one.text.rstrip("\n").split("\n"))
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    bar = "`" * max(3, longest + 1)
    return f"{bar}{one.language}\n{text}\n{bar}"
