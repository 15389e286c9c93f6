"""The report as one JSON object: the document, and the verdict that it was written from."""

from __future__ import annotations

import json

from tic_manifest.model.document import Document
from tic_manifest.render import view


def render(document: Document) -> str:
    """ASCII only; a place holds `words` and `lines`, or `missing` and `reason`."""
    data = view.plain(document.model_dump(mode="json", by_alias=True))
    return json.dumps(data, indent=2, ensure_ascii=True).replace("\x7f", "\\u007f") + "\n"
