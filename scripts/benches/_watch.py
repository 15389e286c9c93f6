"""Run a program and see what it costs: seconds, processor time, memory with its children, bytes to disk."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """Seconds of wall and of processor time; peak MiB of the largest process and of all; MiB written."""

    status: int
    wall: float
    cpu: float
    largest: int
    together: int
    written: float

    @property
    def memory(self) -> int:
        """Peak in MiB, whichever way it is counted."""
        return max(self.largest, self.together)


def cost_of(argv: Sequence[str], said: Path, env: Mapping[str, str] | None = None) -> Cost:
    """Run to the end, standard output into `said`, standard error into `said`.err."""
    with said.open("wb") as out, said.with_name(f"{said.name}.err").open("wb") as err:
        start = time.monotonic()
        tool = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
            env=None if env is None else dict(env),
        )  # fmt: skip
        peak = largest = pid = 0
        while not pid:
            peak, largest = max(peak, session_pages(tool.pid)), max(largest, _high_water(tool.pid))
            time.sleep(0.02)
            pid, status, used = os.wait4(tool.pid, os.WNOHANG)
        wall = time.monotonic() - start
    tool.returncode = os.waitstatus_to_exitcode(status)
    return Cost(
        status=tool.returncode, wall=wall, cpu=used.ru_utime + used.ru_stime, largest=largest >> 10,
        together=peak * os.sysconf("SC_PAGE_SIZE") >> 20, written=used.ru_oublock / 2048,
    )  # fmt: skip


def watched(tool: subprocess.Popen[bytes]) -> int:
    """Wait for a program that leads its session; peak of the session's memory in MiB, often sampled."""
    peak = 0
    while tool.poll() is None:
        peak = max(peak, session_pages(tool.pid))
        time.sleep(0.05)
    return peak * os.sysconf("SC_PAGE_SIZE") >> 20


def session_pages(session: int) -> int:
    """Resident pages of all processes of a session."""
    return sum(_resident(path, session) for path in Path("/proc").glob("[0-9]*/stat"))


def _resident(stat: Path, session: int) -> int:
    """Resident pages of a process of that session, 0 of any other (proc(5): session is field 6, rss 24)."""
    try:
        fields = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[21]) if int(fields[3]) == session else 0


def _high_water(pid: int) -> int:
    """Peak memory of a process in KiB (proc(5), VmHWM). What wait4 says is never less than the parent has."""
    try:
        words = Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()
    except OSError:
        return 0
    return int(words[0]) if words else 0
