"""Codes of the area `probe` (contract, section 7)."""

from __future__ import annotations

from tic_manifest.model.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        name="WORKER_EXIT",
        meaning="a worker died, hung, or left no output",
        remedy="read its last log lines in the finding, mend the worker and run the same command again",
        source="issue 2, bad input; contract, section 2",
    ),
)
