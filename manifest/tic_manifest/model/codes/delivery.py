"""Codes of the area `delivery` (contract, section 7)."""

from __future__ import annotations

from tic_manifest.model.codes import Code

CODES: tuple[Code, ...] = ()
