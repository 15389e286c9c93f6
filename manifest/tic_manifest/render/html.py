"""One self-contained HTML page: no script, no address of anything, everything from evidence escaped."""

from __future__ import annotations

from functools import cache
from typing import Any

import jinja2

from tic_manifest.model.verdict import Report
from tic_manifest.render import view
from tic_manifest.render.escape import printable


@cache
def environment() -> jinja2.Environment:
    """The templates of the package, autoescaped, an undefined name being an error."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("tic_manifest.render", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_safe,
    )
    made.filters["lines"] = view.value_lines
    return made


def _safe(value: Any) -> Any:
    """Control characters shown, of everything that a template prints but our own markup."""
    return printable(value) if type(value) is str else value


def render(report: Report, *, color: bool = False) -> str:
    """The whole report as a page."""
    template = environment().get_template("verdict.html.j2")
    return template.render(report=report, view=view)
