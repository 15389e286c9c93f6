"""Start and end the demo forge's server: one process of ours, known by pid and start time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

SERVER = Path(__file__).resolve().parent / "server.py"
START_S = 20.0


class DaemonError(Exception):
    """The server cannot be started or does not end."""


@contextlib.contextmanager
def locked(root: Path) -> Iterator[None]:
    """One `up` or `down` at a time for a root."""
    with (root / ".lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def start_time(pid: int) -> str | None:
    """Start time of a process in clock ticks since boot, unique with its pid; None where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def running(root: Path) -> dict[str, int] | None:
    """pid and port of our server, if it lives; a pid that now belongs to another process does not count."""
    try:
        state = json.loads((root / "server.json").read_text())
    except (OSError, ValueError):
        return None
    alive = state.get("start") is not None and start_time(state["pid"]) == state["start"]
    return {"pid": state["pid"], "port": state["port"]} if alive else None


def start(root: Path) -> dict[str, int]:
    """The running server, started first where there is none. Raises DaemonError."""
    state = running(root)
    if state is not None:
        return state
    ready = root / "ready.json"
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-B", str(SERVER), "--root", str(root), "--ready", str(ready)]
    with (root / "server.log").open("ab") as log:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
        )
    limit = time.monotonic() + START_S
    while not ready.exists():
        if child.poll() is not None or time.monotonic() > limit:
            child.kill()
            raise DaemonError(f"the server did not start; see {root / 'server.log'}")
        time.sleep(0.05)
    found: dict[str, int] = json.loads(ready.read_text())
    (root / "server.json").write_text(json.dumps({**found, "start": start_time(found["pid"])}))
    return found


def stop(root: Path) -> bool:
    """End our server; False where none ran. Raises DaemonError where it does not end."""
    state = running(root)
    if state is None:
        (root / "server.json").unlink(missing_ok=True)
        return False
    os.kill(state["pid"], signal.SIGTERM)
    limit = time.monotonic() + 10
    while running(root) is not None:
        if time.monotonic() > limit:
            raise DaemonError(f"process {state['pid']} does not end")
        time.sleep(0.05)
    (root / "server.json").unlink(missing_ok=True)
    return True
