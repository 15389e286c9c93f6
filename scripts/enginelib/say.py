"""How the helper scripts speak, and how they end."""

from __future__ import annotations

import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

EXIT_USAGE = 2
EXIT_MISSING = 3
EXIT_BUG = 70
EXIT_INTERRUPTED = 130


class UsageError(Exception):
    """The command line or an environment variable of ours is wrong: exit 2."""


class MissingError(Exception):
    """Something that is needed is not there: exit 3, the message says what and how to get it."""


def say(text: str) -> None:
    """Print one plain line of progress on stderr; stdout stays for what a caller reads."""
    print(text, file=sys.stderr, flush=True)


def run(
    argv: Sequence[str],
    env: Mapping[str, str] | None = None,
    timeout: float | None = 60,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program without a shell and return what it said; a program that is not there has status 127."""
    try:
        return subprocess.run(
            argv,
            env=env,
            cwd=cwd,
            timeout=timeout,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        return subprocess.CompletedProcess(argv, 127, "", str(error))
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 124, "", f"{argv[0]}: no answer in {timeout} s")


def last_lines(path: Path, count: int = 8) -> str:
    """Return the last lines of a log, indented, reading at most its last 16 KiB."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - 16384))
            text = log.read().decode(errors="replace")
    except OSError as error:
        return f"  ({error})"
    return "\n".join("  " + line[:400] for line in text.splitlines()[-count:])


def end_with(main: Callable[[], int]) -> None:
    """Run `main` and leave with its status; each kind of failure has its own (see the constants above)."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that temporaries go
    try:
        status = main()
    except UsageError as error:
        say(str(error))
        status = EXIT_USAGE
    except MissingError as error:
        say(str(error))
        status = EXIT_MISSING
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    except Exception:  # a bug of ours must not look like a verdict
        traceback.print_exc()
        status = EXIT_BUG
    sys.exit(status)
