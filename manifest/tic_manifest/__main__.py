"""The process: exit codes of the contract, and never a traceback for what a person can mend."""

from __future__ import annotations

import gc
import os
import sys

from tic_manifest import __version__


def main() -> None:
    """Run the command line and leave with its exit code; `--version` loads nothing else."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"tic-manifest {__version__}\n")
        return
    # what is imported and read stays until the end: looking through it for garbage takes a fifth of the time
    gc.set_threshold(50_000)
    from tic_manifest.cli.app import run

    code = run(sys.argv[1:])
    _flush()
    sys.exit(code)


def _flush() -> None:
    """A reader that went away changes no exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
