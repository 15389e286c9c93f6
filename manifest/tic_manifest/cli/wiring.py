"""Adapters for stages, made from the command line and the environment. Everything heavy is imported late."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tic_manifest import __version__
from tic_manifest.adapters.clock import SystemClock
from tic_manifest.adapters.progress import StderrProgress
from tic_manifest.adapters.project import project_folder
from tic_manifest.errors import PersonError

if TYPE_CHECKING:
    from tic_manifest.adapters.forge_http import HttpExchange
    from tic_manifest.adapters.git_gate import GateMirror
    from tic_manifest.adapters.git_remote import Remote
    from tic_manifest.adapters.git_run import GitRunner
    from tic_manifest.adapters.runs import RunFolders
    from tic_manifest.adapters.user_login import UserLogin
    from tic_manifest.adapters.work import WorkFolder
    from tic_manifest.cli.app import Settings
    from tic_manifest.model.receipt import Host
    from tic_manifest.ports import Engine, Roots, SourceGit
    from tic_manifest.stages.session import Session
    from tic_manifest.stages.workers import Bench

DEFAULT_WORK = ".tic"
MAX_PERSON_FILE = 4 << 20
MAX_LOCK = 64 << 20


def work_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--work DIR`."""
    return click.option(
        "--work", "work_dir", type=click.Path(path_type=Path, file_okay=False), default=Path(DEFAULT_WORK),
        show_default=True, help="folder that the stages of one delivery share",
    )(function)  # fmt: skip


def project_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--project DIR`: where Dockerfile.unified and images/ lie."""
    return click.option(
        "--project", type=click.Path(path_type=Path, file_okay=False, exists=True), default=project_folder,
        help="the checkout with Dockerfile.unified and images/ (default: the current folder, else the files "
        "that came with the tool)",
    )(function)  # fmt: skip


def progress(ctx: click.Context) -> StderrProgress:
    """Progress as the global options ask for it."""
    settings: Settings = ctx.obj
    return StderrProgress("none" if settings.verbosity < 0 else settings.progress)


def work_folder(path: Path) -> WorkFolder:
    """The work folder, by its full path: engines take no other."""
    from tic_manifest.adapters.work import WorkFolder

    return WorkFolder(path.resolve())


def read_person_file(path: Path, most: int = MAX_PERSON_FILE) -> bytes:
    """A regular file that a person names, at most `most` bytes. Raises PersonError USAGE.

    A pipe is not waited for: it could be one that nobody writes to.
    """
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise PersonError("USAGE", "cannot read", where=str(path), actual="this is no regular file")
            raw = stream.read(most + 1)
    except OSError as error:
        raise PersonError(
            "USAGE", "cannot read", where=str(path), actual=error.strerror or str(error)
        ) from error
    if len(raw) > most:
        raise PersonError("USAGE", "the file is too large", where=str(path), expected=f"at most {most} bytes")
    return raw


def engine(ctx: click.Context) -> Engine:
    """The container engine that answers. Raises UnavailableError ENGINE_MISSING."""
    from tic_manifest.adapters.engine import ContainerEngine

    return ContainerEngine(os.environ.get("DOCKER_HOST") or None, progress(ctx))


def roots(ctx: click.Context) -> Roots:
    """Bases: images by digest, and roots made from Debian packages."""
    from tic_manifest.adapters.debian import DebianBuilder
    from tic_manifest.adapters.roots import AnyRoots
    from tic_manifest.cli.verify import open_image

    said = progress(ctx)
    return AnyRoots(DebianBuilder(engine(ctx), said, os.environ), open_image, said)


@cache
def login() -> UserLogin:
    """What the user is logged in with: one for the whole run, so that nothing is asked twice."""
    from tic_manifest.adapters.user_login import UserLogin

    return UserLogin(os.environ)


def git_server(runner: GitRunner, say: Callable[[str], None] = lambda text: None) -> Callable[[str], Remote]:
    """A URL of the recipe to the git server that answers for it."""
    from tic_manifest.adapters.forge_map import read_forge_map
    from tic_manifest.adapters.git_remote import HttpRemote

    there = read_forge_map(os.environ).there
    return lambda url: HttpRemote(runner, there(url), url, say=say, login=login().for_git)


def forge_exchange() -> HttpExchange:
    """The forge's interface over HTTP."""
    from tic_manifest.adapters.forge_http import HttpExchange

    return HttpExchange(os.environ, login=login().for_api)


def git_for(work: WorkFolder) -> Callable[[str, str], SourceGit]:
    """Name and URL of a repository to its mirror in the work folder's store."""
    from tic_manifest.adapters.git import GitStore
    from tic_manifest.adapters.git_run import GitRunner

    runner = GitRunner(os.environ)
    return GitStore(work.root / "store", runner, git_server(runner)).mirror


def gate_git_for(work: WorkFolder) -> Callable[[str, str], GateMirror]:
    """As `git_for`, with the gate's questions."""
    from tic_manifest.adapters.git_gate import GateMirror
    from tic_manifest.adapters.git_run import GitRunner

    runner = GitRunner(os.environ)
    folder, server = work.root / "store" / "git", git_server(runner)
    return lambda name, url: GateMirror(runner, folder / f"{name}.git", server(url))


def clock() -> SystemClock:
    """The time."""
    return SystemClock()


def host() -> Host:
    """This machine, where no engine was asked."""
    import platform

    from tic_manifest.model.receipt import Host

    return Host(
        machine=platform.machine(), cpu_model=platform.processor(), cpu_flags=(), kernel=platform.release()
    )


def version() -> str:
    """The version of this tool, as receipts name it."""
    return __version__


def runs(session: Session) -> RunFolders:
    """Output folders of this delivery's worker runs."""
    from tic_manifest.adapters.runs import RunFolders

    return RunFolders(session.work.root / "runs" / session.lock.digest.removeprefix("sha256:"))


def bench(ctx: click.Context, session: Session) -> Bench:
    """What measuring needs."""
    from tic_manifest.stages.workers import Bench

    return Bench(
        engine=engine(ctx), runs=runs(session), clock=SystemClock(), progress=progress(ctx),
        tool_version=version(),
    )  # fmt: skip


def approval_path(recipe: Path) -> Path:
    """Where the approval of a recipe lies: beside it."""
    return recipe.with_name(recipe.name.removesuffix(".yaml").removesuffix(".yml") + ".approval.json")
