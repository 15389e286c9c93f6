"""One container to its end: no network, inputs read-only, /out writable, a time limit, always removed."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import uuid
from collections import deque
from pathlib import Path
from threading import Thread, current_thread, main_thread
from typing import Any

import requests
from docker.errors import APIError, NotFound
from docker.types import Mount

from tic_manifest.ports import Container, Ended

LABEL = "org.tic-manifest.run"
_MAX_LOG = 64 << 20
_TAIL = 40
_MAX_LINE = 2000
_JOIN_SECONDS = 20


def run_container(client: Any, wanted: Container) -> Ended:
    """Run it, write its output to the log (64 MiB at most), and say how it ended."""
    container = client.containers.create(**_settings(wanted))
    log = _Log(wanted.log)
    try:
        container.start()
        reader = Thread(target=log.follow, args=(container,), daemon=True)
        reader.start()
        timed_out = not _wait(container, wanted.timeout_seconds)
        if timed_out:
            with contextlib.suppress(APIError):
                container.kill()
        reader.join(_JOIN_SECONDS)
        return _ended(container, timed_out, log)
    finally:
        heeded = _heed(signal.SIG_IGN)
        _remove(container)
        _give_back(client, wanted)
        _heed(heeded)


def _heed(handler: Any) -> Any:
    """Set what a second Ctrl-C does: nothing while a container is being removed."""
    return signal.signal(signal.SIGINT, handler) if current_thread() is main_thread() else None


def _settings(wanted: Container) -> dict[str, Any]:
    inputs = [
        Mount(target, str(path.absolute()), type="bind", read_only=True)
        for target, path in wanted.inputs.items()
    ]
    return {
        "image": wanted.image,
        "command": list(wanted.argv),
        "environment": dict(wanted.env),
        "name": f"tic-{wanted.name}-{uuid.uuid4().hex}",
        "labels": {LABEL: wanted.run_id or wanted.name},
        "network_mode": "none",
        "shm_size": wanted.shm_mib << 20,
        "entrypoint": [],
        "mounts": [*inputs, Mount("/out", str(wanted.output.absolute()), type="bind")],
        "security_opt": ["no-new-privileges"],
        "log_config": {"Type": "json-file", "Config": {"max-size": "64m"}},
    }


def _wait(container: Any, seconds: int) -> bool:
    """Whether it ended within its time."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        try:
            container.wait(timeout=max(1.0, left))
            return True
        except requests.ReadTimeout:
            continue
        except requests.ConnectionError:
            time.sleep(1)
            container.client.ping()
    return False


def _ended(container: Any, timed_out: bool, log: _Log) -> Ended:
    container.reload()
    state = container.attrs["State"]
    code = None if timed_out else int(state["ExitCode"])
    return Ended(
        exit_code=code, timed_out=timed_out, oom_killed=bool(state.get("OOMKilled")), log_tail=tuple(log.tail)
    )


class _Log:
    """The container's output in a file, the last lines in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.tail: deque[str] = deque(maxlen=_TAIL)

    def follow(self, container: Any) -> None:
        """Copy until the container ends."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        rest, written = b"", 0
        with self._path.open("wb") as out, contextlib.suppress(requests.RequestException, APIError):
            for piece in container.logs(stream=True, follow=True, stdout=True, stderr=True):
                written += len(piece)
                if written <= _MAX_LOG:
                    out.write(piece)
                    out.flush()
                *lines, rest = (rest + piece).split(b"\n")
                self._keep(lines)
                rest = rest[-_MAX_LINE:]
        self._keep([rest] if rest else [])

    def _keep(self, lines: list[bytes]) -> None:
        self.tail.extend(line[:_MAX_LINE].decode("utf-8", "replace") for line in lines if line.strip())


def end_left_over(client: Any, run_id: str) -> None:
    """End what a killed run of the same delivery left: it would go on writing to the output folders."""
    for one in client.containers.list(all=True, filters={"label": f"{LABEL}={run_id}"}):
        _remove(one)


def _remove(container: Any) -> None:
    with contextlib.suppress(NotFound, requests.RequestException):
        container.remove(force=True, v=True)


def _give_back(client: Any, wanted: Container) -> None:
    """Under a root engine the outputs are root's: give them to the user who ran us."""
    if os.getuid() == 0 or all(path.lstat().st_uid == os.getuid() for path in wanted.output.rglob("*")):
        return
    with contextlib.suppress(APIError):
        client.containers.run(
            wanted.image,
            ["chown", "-hR", f"{os.getuid()}:{os.getgid()}", "/out"],
            entrypoint=[],
            user="0:0",
            network_mode="none",
            remove=True,
            mounts=[Mount("/out", str(wanted.output.absolute()), type="bind")],
            labels={LABEL: wanted.run_id or wanted.name},
        )
