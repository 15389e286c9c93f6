"""The report as one self-contained HTML page."""

from __future__ import annotations

from tic_manifest.model.document import Document
from tic_manifest.render.html import environment


def render(document: Document) -> str:
    """The whole report as a page: no script, no address of anything, everything from evidence escaped."""
    return environment().get_template("report.html.j2").render(document=document)
