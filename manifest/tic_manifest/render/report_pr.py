"""The report as the body of a pull request comment: the outcome open, every section folded, within the size.

GitHub takes at most 65,536 characters in a comment; what does not fit is named, with where it stands.
"""

from __future__ import annotations

from tic_manifest.model.document import Block, Document, Entry, Facts, Grid, Section
from tic_manifest.render import report_markdown as whole
from tic_manifest.render.markup import prose

MAX_CHARACTERS = 65_536
SHOWN_LINES = 8
"""Lines of one place; digests are kept whole, further lines are counted."""
FIRST = ("Outcome and scope", "Delivery manifest", "Verification", "Remaining work")
_ROOM = 2_000


def render(document: Document) -> str:
    """Sections in the template's order; where not all fit, those of `FIRST` are kept before the others."""
    shown = {one.heading: _folded(one) for one in document.sections}
    names = sorted(shown, key=lambda name: (name not in FIRST, list(shown).index(name)))
    kept: set[str] = set()
    room = MAX_CHARACTERS - len(whole.head(document)) - _ROOM
    for name in names:
        if len(shown[name]) + 2 <= room:
            kept.add(name)
            room -= len(shown[name]) + 2
    left = [name for name in shown if name not in kept]
    parts = [whole.head(document), *(shown[name] for name in shown if name in kept)]
    return "\n\n".join([*parts, *([_left_out(left)] if left else [])]) + "\n"


def _left_out(names: list[str]) -> str:
    told = "; ".join(prose(name) for name in names)
    return f"Too long for a comment, see `tic-manifest report --format markdown`: {told}."


def _folded(one: Section) -> str:
    body = "\n\n".join(whole.block(_short(part)) for part in one.blocks)
    return f"<details><summary>{prose(one.heading)}</summary>\n\n{body}\n\n</details>"


def _short(part: Block) -> Block:
    if isinstance(part, Facts):
        rows = tuple(fact.model_copy(update={"entry": _cut(fact.entry)}) for fact in part.facts)
        return part.model_copy(update={"facts": rows})
    if isinstance(part, Grid):
        cells = tuple(row.model_copy(update={"cells": tuple(map(_cut, row.cells))}) for row in part.rows)
        return part.model_copy(update={"rows": cells})
    return part


def _cut(one: Entry) -> Entry:
    more = len(one.lines) - SHOWN_LINES
    if more <= 1:
        return one
    last = f"and {more} more lines in the markdown report"
    return one.model_copy(update={"lines": (*one.lines[:SHOWN_LINES], last)})
