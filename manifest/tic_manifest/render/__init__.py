"""Values to text, markdown, JSON and the formats of CI systems. Pure."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from tic_manifest.model.document import Document
    from tic_manifest.model.verdict import Report


class Renderer(Protocol):
    """Every renderer: a report to the whole text of one format, a newline at its end."""

    def __call__(self, report: Report, *, color: bool = False) -> str: ...


class DocumentRenderer(Protocol):
    """Every renderer of the report template."""

    def __call__(self, document: Document) -> str: ...


RENDERERS = {
    "text": "text",
    "json": "json_",
    "markdown": "markdown",
    "html": "html",
    "github": "github",
    "junit": "junit",
    "sarif": "sarif",
}
"""Format of `--output` to the module whose `render` writes it; loaded when asked for."""


def renderer(name: str) -> Renderer:
    """The `render` function of a format. Raises KeyError for a format that is not in `RENDERERS`."""
    return cast(Renderer, import_module(f"{__name__}.{RENDERERS[name]}").render)


REPORT_FORMATS = ("markdown", "html", "pr", "json")
"""Formats of `report --format`."""


def report_renderer(name: str) -> DocumentRenderer:
    """The `render` function of a format of the report. Raises KeyError for a name not in `REPORT_FORMATS`."""
    if name not in REPORT_FORMATS:
        raise KeyError(name)
    return cast(DocumentRenderer, import_module(f"{__name__}.report_{name}").render)
