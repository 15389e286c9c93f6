"""`--output FORMAT[=FILE]` for every judging command, and the exit code that goes with a report."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tic_manifest.errors import PersonError, RefusedError, TicError, UnavailableError
from tic_manifest.render import renderer

if TYPE_CHECKING:
    from tic_manifest.cli.app import Settings
    from tic_manifest.model.verdict import Report

FORMATS = ("text", "json", "markdown", "html", "github", "junit", "sarif")


def output_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--output FORMAT[=FILE]`, repeatable, as the argument `outputs`."""
    return click.option(
        "--output", "outputs", multiple=True, metavar="FORMAT[=FILE]", callback=_parse,
        help=f"one of {', '.join(FORMATS)}; repeatable; text on the terminal by default",
    )(function)  # fmt: skip


def _parse(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    pairs = tuple((name, target) for name, _, target in (value.partition("=") for value in values))
    for name, _ in pairs:
        if name not in FORMATS:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(FORMATS)}")
    if sum(not target for _, target in pairs) > 1:
        raise click.BadParameter("only one format can go to standard output; give the others =FILE")
    return pairs


def finish(ctx: click.Context, judged: Report, outputs: tuple[tuple[str, str], ...]) -> int:
    """Write the report everywhere it is asked for, then give its exit code. Files are written whole."""
    settings: Settings = ctx.obj
    if any(name == "github" for name, _ in outputs):
        from tic_manifest.cli.job_summary import append_summary

        append_summary(judged)
    for name, target in outputs or (("text", ""),):
        text = renderer(name)(judged, color=settings.use_color and not target)
        if target:
            write_whole(Path(target), text.encode())
        else:
            to_stdout(text)
    return judged.exit_code


def to_stdout(text: str) -> None:
    """Write to standard output. A reader that went away changes no verdict; a full disk is exit 3."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise UnavailableError(
            "DISK_FULL", "cannot write to standard output", actual=error.strerror or ""
        ) from error


def has_stdout(outputs: tuple[tuple[str, str], ...]) -> bool:
    """Whether a report was asked for on standard output: then nothing else is written there."""
    return any(not target for _, target in outputs)


def judged_error(command: str, error: TicError) -> Report:
    """A report for a command that ended without a judgement: same findings channel, the error's exit code."""
    refused = isinstance(error, PersonError | RefusedError)
    from tic_manifest.model.verdict import Check, Status, finding, report

    status = Status.INCONCLUSIVE
    said = finding(
        error.code, status, error.where or command, what=error.what, expected=error.expected or None,
        actual=error.actual or None, remedy=error.remedy, refused=refused,
    )  # fmt: skip
    row = Check(id=command, status=status, reason=error.what)
    base = report(command, (row,), (said,))
    return base.model_copy(update={"exit_code": error.exit_code})


def judging(
    ctx: click.Context, command: str, outputs: tuple[tuple[str, str], ...], judge: Callable[[], Report]
) -> int:
    """Run a judgement; errors of the outside world become a report too, after one message on stderr."""
    try:
        judged = judge()
    except TicError as error:
        if not outputs:
            raise
        from tic_manifest.render.escape import printable

        sys.stderr.write("\n".join(printable(line) for line in error.lines()) + "\n")
        judged = judged_error(command, error)
    return finish(ctx, judged, outputs)


def write_whole(target: Path, data: bytes) -> None:
    """Write a file of the user's choice whole or not at all.

    Raises PersonError where that place is no file's, UnavailableError RIGHTS or DISK_FULL.
    """
    if target.is_dir():
        raise PersonError(
            "USAGE", "cannot write there", where=str(target), expected="a file", actual="a folder"
        )
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise PersonError("USAGE", "cannot write there", where=str(target), actual=str(error)) from error
    except OSError as error:
        raise _unwritable(target, error) from error
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        Path(name).unlink(missing_ok=True)


def _unwritable(target: Path, error: OSError) -> UnavailableError:
    code = "DISK_FULL" if error.errno in {errno.ENOSPC, errno.EDQUOT} else "RIGHTS"
    return UnavailableError(
        code, "cannot write there", where=str(target), actual=error.strerror or str(error)
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
