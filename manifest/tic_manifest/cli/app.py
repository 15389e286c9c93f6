"""The command line: global options, lazily loaded commands, and errors as one clear message."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from dataclasses import dataclass
from importlib import import_module
from types import FrameType
from typing import NoReturn

import click

from tic_manifest import __version__, errors
from tic_manifest.render.escape import printable

COMMANDS = {
    "init": "write a complete recipe from pull request URLs",
    "lock": "resolve everything a recipe names",
    "gate": "judge the pull requests",
    "build": "build the image from the lock alone",
    "probe": "record what the real processes loaded",
    "validate": "final validation in the clean image",
    "approve": "write the approval file of a recipe",
    "assemble": "compute the delivery manifest and attach it",
    "image": "every stage in order, resumable",
    "verify": "judge a delivered image from its bytes and evidence alone",
    "report": "the whole report template from evidence",
    "explain": "what a finding code means and what to do",
    "clean": "remove what a work folder keeps",
}


@dataclass(frozen=True)
class Settings:
    """The global options, in `click.Context.obj`."""

    verbosity: int
    color: str
    progress: str

    @property
    def use_color(self) -> bool:
        """Colour where asked, or on a terminal without NO_COLOR."""
        if self.color != "auto":
            return self.color == "always"
        return sys.stdout.isatty() and "NO_COLOR" not in os.environ


class _Lazy(click.Group):
    """Loads `cli/NAME.py` when NAME is called, so that no command pays for another's imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"tic_manifest.cli.{cmd_name}").command
        return command

    def invoke(self, ctx: click.Context) -> object:
        """As click's, but a closed pipe is told here: click would end with exit 1, which means `fail`."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return errors.EXIT_SIGTERM

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command("tic-manifest", cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-q", "--quiet", is_flag=True, help="say less")
@click.option("-v", "--verbose", is_flag=True, help="say which programs are run and which addresses asked")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
@click.option("--progress", type=click.Choice(["auto", "plain", "none"]), default="auto", show_default=True)
@click.version_option(__version__, message="tic-manifest %(version)s")
@click.pass_context
def app(ctx: click.Context, quiet: bool, verbose: bool, color: str, progress: str) -> None:
    """Makes a three-pull-request, one-image delivery a fact that anyone can re-check.

    Exit codes: 0 pass, 1 fail, 2 command line or a file a person writes, 3 inconclusive or something is
    not there, 4 refused, 70 a bug, 130 and 143 interrupted.
    """
    ctx.obj = Settings(int(verbose) - int(quiet), color, progress)
    if verbose and not quiet:
        _tell_more()


class _Escaped(logging.Formatter):
    """One line for a person, whatever the record holds."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(f"-v: {record.getMessage()}")


def _tell_more() -> None:
    """Show what adapters do on standard error (`adapters/telling.py`)."""
    logger = logging.getLogger("tic_manifest.adapters")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Escaped())
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.DEBUG)


def run(argv: list[str]) -> int:
    """Run one command line; the exit code of contract, section 2."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        result = app.main(args=argv, prog_name="tic-manifest", standalone_mode=False)
    except errors.TicError as error:
        return _tell(error)
    except click.ClickException as error:
        return _usage(error)
    except (KeyboardInterrupt, click.exceptions.Abort):
        return _interrupted(errors.EXIT_SIGINT)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else errors.EXIT_BUG
        return _interrupted(code) if code == errors.EXIT_SIGTERM else code
    except Exception:
        return _bug()
    return result if isinstance(result, int) else errors.EXIT_PASS


def _bug() -> int:
    traceback.print_exc()
    sys.stderr.write("tic-manifest: this is a bug in tic-manifest; please report the lines above\n")
    return errors.EXIT_BUG


def _tell(error: errors.TicError) -> int:
    for line in error.lines():
        sys.stderr.write(printable(line) + "\n")
    return error.exit_code


def _usage(error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        sys.stderr.write(error.format_message() + "\n")
        return errors.EXIT_USAGE
    hint = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "tic-manifest"
    sys.stderr.write(f"{printable(error.format_message())} [USAGE]\n  to do: {hint} --help\n")
    return errors.EXIT_USAGE


def _interrupted(code: int) -> int:
    sys.stderr.write("tic-manifest: interrupted; finished stages are kept\n")
    return code


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(errors.EXIT_SIGTERM)
