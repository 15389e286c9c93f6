"""Where the project's own files lie that make an image: a checkout, or beside the installed package."""

from __future__ import annotations

from pathlib import Path

MARK = "Dockerfile.unified"
_PACKAGE = Path(__file__).resolve().parents[1]


def project_folder() -> Path:
    """The current folder where it is a checkout, else the wheel's copy, else the checkout of this package."""
    places = [Path(), _PACKAGE / "project", _PACKAGE.parents[1]]
    return next((place for place in places if (place / MARK).is_file()), Path())
