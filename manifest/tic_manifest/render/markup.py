"""Text from evidence made inert in Markdown: it can start no markup, link, mention or table cell."""

from __future__ import annotations

import re

from tic_manifest.render.escape import printable

_PLAIN_CODE = re.compile(r"[^`|\\<>&]+")
"""Text in which no character means anything inside a code span, in a table cell or out of it."""
_MARKUP = re.compile(r"[\\`*\[\]<>|~&]|(?<![^\W_])_|_(?![^\W_])|^\s*[#+=-]|^\s*\d+[.)]")
"""What can start markup: anywhere, beside a word, at the start of a line."""


def code(text: str) -> str:
    """A code span. Text with a backtick, pipe, backslash or angle bracket becomes an HTML `code` element of
    entities, since renderers differ in how they split table cells and escape inside code spans."""
    shown = printable(text).replace("\t", " ")
    if not shown.strip():
        return "(empty)"
    if _PLAIN_CODE.fullmatch(shown):
        return f"`{shown.strip()}`"
    return "<code>" + re.sub(r"[^A-Za-z0-9 ]", lambda one: f"&#{ord(one[0])};", shown.strip()) + "</code>"


def prose(text: str) -> str:
    """A sentence: every character that could be markup as an entity; `@name` and `#1` notify nobody."""
    shown = _MARKUP.sub(_inert, printable(text).replace("\t", " ").strip())
    shown = re.sub(r"(?<=[Hh][Tt][Tt][Pp]):(?=//)|(?<=[Hh][Tt][Tt][Pp][Ss]):(?=//)", "&#58;", shown)
    shown = re.sub(r"\b([Ww][Ww][Ww])\.", r"\1&#46;", shown)
    return re.sub(r"(?<!&)([@#])(?=\w)", r"\1<!-- -->", shown) or "(empty)"


def _inert(found: re.Match[str]) -> str:
    return "".join(one if one.isalnum() or one.isspace() else f"&#{ord(one)};" for one in found[0])


def row(cells: list[str]) -> str:
    """A table row of cells that are already escaped."""
    return "| " + " | ".join(cells) + " |"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """A table; `head` is our own words, the rows are already escaped."""
    return [row(head), row(["---"] * len(head)), *(row(cells) for cells in rows)]
