"""The control group of one engine's containers: what is left in it after a kill is found and ended by it."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from enginelib.process import wait_until


def name_for(root: Path) -> str:
    """Return the control group of an engine below `root`: one for each folder, whatever its name."""
    status = root.stat()
    return f"tic-engine-{status.st_dev}-{status.st_ino}"


def clear(root: Path) -> None:
    """Kill what is left in the control group of the engine below `root`, and remove it."""
    if not root.is_dir():
        return
    base = Path("/sys/fs/cgroup")
    tops = [top for place in (base, *base.glob("*/")) for top in place.glob(name_for(root))]
    folders = [Path(folder) for top in tops for folder, _, _ in os.walk(top, topdown=False)]
    for pid in {pid for folder in folders for pid in members(folder)}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    # a group is busy for a moment after its last process ended
    wait_until(lambda: not [folder for folder in folders if not removed(folder)], 3)


def members(group: Path) -> list[int]:
    """Return the processes in a control group that this pid namespace can see."""
    with contextlib.suppress(OSError):
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split() if pid != "0"]
    return []


def removed(group: Path) -> bool:
    """Remove a control group; tell whether it is gone."""
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()
