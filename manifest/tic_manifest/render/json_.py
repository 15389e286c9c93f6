"""JSON of a judging command (contract, section 3)."""

from __future__ import annotations

import json

from tic_manifest.model.verdict import Report
from tic_manifest.render import view


def render(report: Report, *, color: bool = False) -> str:
    """The report as one JSON object, ASCII only: control characters and the like are `\\uNNNN`."""
    data = view.plain(report.model_dump(mode="json", by_alias=True))
    return json.dumps(data, indent=2, ensure_ascii=True).replace("\x7f", "\\u007f") + "\n"
