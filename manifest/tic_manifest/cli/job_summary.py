"""The job summary of a GitHub step: Markdown appended to the file that GITHUB_STEP_SUMMARY names."""

from __future__ import annotations

import os
import sys

from tic_manifest.model.verdict import Report
from tic_manifest.render import github
from tic_manifest.render.escape import printable


def append_summary(judged: Report) -> None:
    """Append the summary, within what the step has left of its 1 MiB: a longer file is shown not at all.

    A file that cannot be written is said on standard error and changes no verdict.
    """
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    if not name:
        return
    try:
        with open(name, "ab") as stream:
            room = github.SUMMARY_BYTES - stream.tell()
            stream.write(github.summary(judged, room).encode())
    except OSError as error:
        sys.stderr.write(f"tic-manifest: no job summary: {printable(str(error))}\n")
