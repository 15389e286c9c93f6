"""Child processes as whole groups: nothing that a scenario started outlives it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MARK = "TIC_SCENARIO_MARK"
"""Every child carries this variable; a process that has it after its scenario's end was left behind."""
GRACE = 5.0

_live: set[subprocess.Popen[bytes]] = set()
_stopped = threading.Event()


class StoppedError(Exception):
    """The runner was told to stop: nothing more is started."""


def stop() -> None:
    """End every child that runs, and start none any more."""
    _stopped.set()
    for process in list(_live):
        end_group(process)


def _start(argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    if _stopped.is_set():
        raise StoppedError("the runner was told to stop")
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True, **options)
    _live.add(process)
    return process


@dataclass(frozen=True)
class Done:
    """How a program ended. `status` is None where our time limit ended it."""

    status: int | None
    stdout: str
    stderr: str


def run(argv: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float, logs: Path) -> Done:
    """Run a program to its end, output kept in files so that no pipe can hold it up."""
    with (logs.with_suffix(".out")).open("wb+") as out, (logs.with_suffix(".err")).open("wb+") as err:
        process = _start(argv, cwd=cwd, env=env, stdout=out, stderr=err)
        try:
            status: int | None = process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end_group(process)
        return Done(status, _text(out), _text(err))


def _text(stream: object) -> str:
    stream.seek(0)  # type: ignore[attr-defined]
    return bytes(stream.read()).decode(errors="replace")  # type: ignore[attr-defined]


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a child and its whole group: politely, then by force."""
    _live.discard(process)
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        if process.poll() is not None and not _group_lives(process.pid):
            return


def _group_lives(group: int) -> bool:
    """Whether the group still has members, given a moment to go."""
    for _ in range(40):
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return False
        time.sleep(0.05)
    return True


class Up:
    """The live process of a scenario: started, waited for until it prints `ready`, ended with its group."""

    def __init__(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path) -> None:
        with log.open("wb") as err:
            self._process = _start(argv, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=err)
        self._ready = threading.Event()
        self._said: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._said = [*self._said[-20:], line.decode(errors="replace").rstrip()]
            if self._said[-1] == "ready":
                self._ready.set()

    def wait_ready(self, timeout: float) -> str | None:
        """None once it is ready, else why it is not."""
        end = time.monotonic() + timeout
        while not self._ready.wait(0.02):
            if self._process.poll() is not None and not self._ready.wait(0.2):
                return (
                    f"`up` ended with {self._process.returncode} before it printed `ready`: {self._said[-3:]}"
                )
            if time.monotonic() > end:
                return f"`up` did not print `ready` within {timeout:.0f} s"
        return None

    def end(self) -> None:
        """End it with its whole group."""
        end_group(self._process)


def left_behind(mark: str) -> list[int]:
    """Processes that carry a mark in their environment, given two seconds to go."""
    for _ in range(20):
        found = _carrying(f"{MARK}={mark}".encode())
        if not found:
            return []
        time.sleep(0.1)
    return found


def _carrying(entry: bytes) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if entry in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def kill_all(pids: Sequence[int]) -> None:
    """End processes of ours that were left behind."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
