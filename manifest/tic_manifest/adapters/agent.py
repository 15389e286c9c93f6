"""The probe agent as a program of this machine: it looks at a process that runs already."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tic_manifest.adapters import telling
from tic_manifest.adapters.project import project_folder
from tic_manifest.errors import UnavailableError

MAX_REPORT = 256 << 20
_SECONDS = 900
_AGENT = Path("images/agent/probe_agent.py")


def find_agent(named: Path | None) -> Path:
    """The agent's file: the one that is named, else that of the project's files (`adapters.project`).

    Raises UnavailableError PROBE_AGENT_MISSING.
    """
    place = named or project_folder() / _AGENT
    if place.is_file():
        return place.resolve()
    raise UnavailableError(
        "PROBE_AGENT_MISSING",
        "the probe agent is not here",
        where=str(place),
        remedy="run it in the project's checkout, or name the file by --agent",
    )


def observe(agent: Path, pid: int, *, rederive: bool = False) -> bytes:
    """The agent's report (`tic/probe-agent/v1`) about one process, at most 256 MiB.

    `rederive` lets the agent start the process's own interpreter and compilers to make its kernels again.
    Raises UnavailableError PROCESS_GONE, PROCESS_DENIED or PROBE_MISSING.
    """
    with tempfile.TemporaryDirectory(prefix="tic-probe-") as folder:
        out = Path(folder) / "probe.json"
        argv = [sys.executable, "-I", str(agent), "snapshot", "--alone", f"--pid={pid}", f"--out={out}"]
        argv += ["--rederive", "own"] if rederive else []
        telling.program(argv)
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _failed(pid, str(error)) from error
        if done.returncode != 0:
            raise _failed(pid, done.stderr.decode(errors="replace").strip()[-500:])
        if out.stat().st_size > MAX_REPORT:
            raise _failed(pid, f"the report has {out.stat().st_size} bytes")
        return out.read_bytes()


def _failed(pid: int, said: str) -> UnavailableError:
    where = f"pid {pid}"
    if "ProcessLookupError" in said:
        return UnavailableError(
            "PROCESS_GONE", "no such process", where=where, remedy="name a process that runs on this machine"
        )
    if "PermissionError" in said:
        return denied(pid, said)
    return UnavailableError("PROBE_MISSING", "the agent gave no report", where=where, actual=said)


def denied(pid: int, said: str) -> UnavailableError:
    """The error for a process that may not be read."""
    return UnavailableError(
        "PROCESS_DENIED",
        "the process may not be read",
        where=f"pid {pid}",
        actual=said,
        remedy="run as the user and group of the process, or as root; Yama may have to allow it",
    )
