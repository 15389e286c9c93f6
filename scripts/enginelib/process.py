"""Processes that we started: found again after a restart of the script, and never confused with another's."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from enginelib.say import MissingError, say


@dataclass(frozen=True)
class Started:
    """One process of ours. Pids are reused, so one counts only with its start, in clock ticks since boot."""

    name: str
    pid: int
    ticks: int
    boot: str
    marker: str  # an argument that the process was started with


def boot_id() -> str:
    """Return the kernel's identity of this boot; start times of another boot mean nothing."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None when it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # the title, in brackets, may hold anything
    return None if fields[0] in "ZX" else int(fields[19])


def arguments(pid: int) -> list[str]:
    """Return a process's argument list, empty when it cannot be read."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def is_alive(started: Started) -> bool:
    """Tell whether this very process still runs."""
    return (
        started.boot == boot_id()
        and start_ticks(started.pid) == started.ticks
        and started.marker in arguments(started.pid)
    )


def start(
    name: str, argv: Sequence[str], marker: str, log: Path, env: Mapping[str, str] | None = None
) -> Started:
    """Start a daemon in a session of its own, its output appended to `log`."""
    with log.open("ab") as output:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            umask=0o022,
            env=env,
            cwd="/",
        )
    # the arguments appear in /proc a moment after exec succeeded
    wait_until(lambda: marker in arguments(child.pid) or start_ticks(child.pid) is None, 10)
    ticks = start_ticks(child.pid)
    if ticks is None:
        raise MissingError(f"{name} ended at once; its log: {log}")
    return Started(name, child.pid, ticks, boot_id(), marker)


def stop(started: Started, patience: float) -> None:
    """End a process of ours: SIGTERM, and SIGKILL after `patience` seconds."""
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 10.0)):
        if not is_alive(started):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(started.pid, number)
        wait_until(lambda: not is_alive(started), seconds)
    if is_alive(started):
        raise MissingError(f"{started.name} (pid {started.pid}) does not end")


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Poll a condition for at most `seconds`; tell whether it came true."""
    end = time.monotonic() + seconds
    while not condition():
        reap()
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def reap() -> None:
    """Collect children of ours that ended, so that none stays as a zombie."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def save(path: Path, processes: Sequence[Started]) -> None:
    """Write the pid file, whole or not at all."""
    draft = path.with_name(path.name + ".new")
    draft.write_text(json.dumps([asdict(process) for process in processes], indent=1) + "\n")
    draft.replace(path)


def load(path: Path) -> list[Started]:
    """Read the pid file; one that is absent or cut short names no process."""
    try:
        return [Started(**entry) for entry in json.loads(path.read_text())]
    except (OSError, ValueError, TypeError):
        return []


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold an exclusive lock on a file, waiting for whoever has it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another {what} to finish")
            fcntl.flock(handle, fcntl.LOCK_EX)
        # `purge` deletes the file: a lock on a deleted file guards nothing, so take the new one
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                break
        os.close(handle)
    try:
        yield
    finally:
        os.close(handle)
