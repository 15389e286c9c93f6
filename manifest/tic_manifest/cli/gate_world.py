"""What the gate looks through, made from the command line and the environment: live, recorded or replayed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tic_manifest.adapters.forge import GitHubForge
from tic_manifest.adapters.forge_map import ForgeMap, read_forge_map
from tic_manifest.adapters.git_gate import GateMirror
from tic_manifest.adapters.git_remote import Remote
from tic_manifest.adapters.git_run import GitRunner
from tic_manifest.adapters.recording import RecordedExchange, RecordedRemote, Recording
from tic_manifest.adapters.worktree import RecordedCheckout, Worktree
from tic_manifest.cli import wiring
from tic_manifest.errors import PersonError
from tic_manifest.stages.gate_look import World

if TYPE_CHECKING:
    from tic_manifest.ports_gate import Checkout, GateGit

SCALE = "TIC_TIME_SCALE"
LOCK = "lock.json"


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where facts come from: the forge's API of the recipe, the store, recordings, local checkouts."""

    api: str
    store: Path
    record: Path | None = None
    replay: Path | None = None
    worktrees: Mapping[str, Path] = field(default_factory=dict)
    lock: bytes | None = None
    """The lock of an image that is judged again: a recording keeps it."""


@contextmanager
def opened(ctx: click.Context, source: Source) -> Iterator[World]:
    """The world of one run; a recording is written when the block ends without an exception."""
    runner, forge_map = GitRunner(os.environ), read_forge_map(os.environ)
    runner.version()
    if source.replay is not None:
        with _replayed(ctx, source, source.replay, runner, forge_map) as world:
            yield world
        return
    with _live(ctx, source, runner, forge_map) as world:
        yield world


@contextmanager
def _live(ctx: click.Context, source: Source, runner: GitRunner, forge_map: ForgeMap) -> Iterator[World]:
    base = forge_map.there(source.api.rstrip("/"))
    exchange = RecordedExchange(wiring.forge_exchange(), base)
    mirrors: dict[str, tuple[GateMirror, RecordedRemote]] = {}
    recording = Recording(source.record, runner) if source.record else None
    if recording:
        recording.claim()
    checkouts: dict[str, Checkout] = {
        name: Worktree(runner, path, name, recording.put_local if recording else None)
        for name, path in source.worktrees.items()
    }
    said = wiring.progress(ctx)
    world = World(
        forge=GitHubForge(source.api, exchange, forge_map, _pause(time_scale(os.environ))),
        mirror=_mirrors(runner, source.store, wiring.git_server(runner, said.say), mirrors),
        checkouts=checkouts,
        progress=said,
    )
    try:
        yield world
    finally:
        # also where the run was refused: the recording then shows why
        if recording and source.record:
            recording.write(exchange.answers, mirrors)
            if source.lock is not None:
                (source.record / LOCK).write_bytes(source.lock)


@contextmanager
def _replayed(
    ctx: click.Context, source: Source, replay: Path, runner: GitRunner, forge_map: ForgeMap
) -> Iterator[World]:
    recording = Recording(replay, runner)
    base = forge_map.there(source.api.rstrip("/"))
    opened_mirrors: dict[str, GateGit] = {}

    def mirror(name: str, url: str) -> GateGit:
        if name not in opened_mirrors:
            opened_mirrors[name] = recording.mirror(name)
        return opened_mirrors[name]

    try:
        yield World(
            forge=GitHubForge(source.api, recording.exchange(base), forge_map, lambda seconds: None),
            mirror=mirror,
            checkouts={name: RecordedCheckout(name, recording.local) for name in source.worktrees},
            progress=wiring.progress(ctx),
        )
    finally:
        recording.close()


def _mirrors(
    runner: GitRunner,
    store: Path,
    server: Callable[[str], Remote],
    mirrors: dict[str, tuple[GateMirror, RecordedRemote]],
) -> Callable[[str, str], GateGit]:
    def mirror(name: str, url: str) -> GateGit:
        if name not in mirrors:
            remote = RecordedRemote(server(url))
            mirrors[name] = GateMirror(runner, store / "git" / f"{name}.git", remote), remote
        return mirrors[name][0]

    return mirror


def kept_lock(replay: Path) -> bytes:
    """The lock that a recording of an image keeps. Raises PersonError USAGE."""
    return wiring.read_person_file(replay / LOCK, wiring.MAX_LOCK)


def _pause(scale: float) -> Callable[[float], None]:
    return lambda seconds: time.sleep(seconds * scale)


def time_scale(environ: Mapping[str, str]) -> float:
    """$TIC_TIME_SCALE: what every wait is multiplied with. Raises PersonError USAGE."""
    text = environ.get(SCALE, "1")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1000:
        raise PersonError("USAGE", f"{SCALE} is no number from 0 to 1000", actual=text)
    return value
