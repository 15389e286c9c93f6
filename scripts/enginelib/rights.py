"""What the kernel and the mounts must allow before an engine can run; each lack has a line of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from enginelib.say import run

CAPABILITIES = {
    "CAP_SYS_ADMIN": 21,
    "CAP_NET_ADMIN": 12,
    "CAP_SYS_CHROOT": 18,
    "CAP_SETUID": 7,
    "CAP_MKNOD": 27,
}
DEVICES = ("/dev/null", "/dev/urandom")
CONTROLLERS = ("cpu", "memory", "devices", "pids", "freezer")


def lacks(root: Path) -> list[str]:
    """Return what is missing for an engine with its data below `root`, which exists, or nothing."""
    if os.geteuid() != 0:
        return ["root: an engine needs it (run this with sudo, or name a running engine in DOCKER_HOST)"]
    mounts = lacking_mounts()
    if mounts:  # what follows cannot be told without them
        return mounts
    return lacking_capabilities() + lacking_cgroups() + lacking_namespaces() + lacking_overlay(root)


def lacking_mounts() -> list[str]:
    """Name the kernel's file systems that are not mounted where an engine looks for them."""
    if not os.path.exists("/proc/self/stat"):
        return ["mount: /proc is not mounted (mount -t proc proc /proc)"]
    missing = []
    if not os.path.isdir("/sys/fs"):
        missing.append("mount: /sys is not mounted (mount -t sysfs sysfs /sys)")
    elif not os.listdir("/sys/fs/cgroup"):
        missing.append("mount: /sys/fs/cgroup is empty (mount cgroup2 there, or bind the host's)")
    missing += [f"device: {name} is missing" for name in DEVICES if not os.path.exists(name)]
    mounted = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    if "/" not in mounted:
        missing.append("mount: / is no mount point, as in a plain chroot (use scripts/clean-root run)")
    return missing


def lacking_capabilities() -> list[str]:
    """Name the capabilities that a container runtime needs and this process has not."""
    status = Path("/proc/self/status").read_text()
    effective = int(next(line for line in status.splitlines() if line.startswith("CapEff:")).split()[1], 16)
    return [f"right: {name} is not held" for name, bit in CAPABILITIES.items() if not effective >> bit & 1]


def lacking_cgroups() -> list[str]:
    """Name the control groups (version 1 or 2) that cannot be written."""
    base = Path("/sys/fs/cgroup")
    if (base / "cgroup.controllers").exists():
        return writable(base)
    missing = [f"mount: {base / name} is not mounted" for name in CONTROLLERS if not (base / name).is_dir()]
    return missing or [line for name in CONTROLLERS for line in writable(base / name)]


def writable(group: Path) -> list[str]:
    """Tell whether a control group can be made below `group`."""
    probe = group / f"tic-probe-{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError as error:
        return [f"right: no control group can be made in {group} ({error.strerror})"]
    return []


def lacking_namespaces() -> list[str]:
    """Tell whether namespaces can be made, by making them."""
    result = run(["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "true"])
    return [] if result.returncode == 0 else [f"right: no namespaces can be made ({result.stderr.strip()})"]


def lacking_overlay(root: Path) -> list[str]:
    """Tell whether an overlay can be mounted on the file system of `root`, by mounting one in a namespace."""
    place = tempfile.mkdtemp(prefix="probe-", dir=root)
    try:
        for name in ("lower", "upper", "work", "all"):
            os.mkdir(os.path.join(place, name))
        layers = f"lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work"
        mount = ["mount", "-t", "overlay", "overlay", "-o", layers, f"{place}/all"]
        result = run(["unshare", "--mount", *mount])
    finally:
        shutil.rmtree(place)
    if result.returncode == 0:
        return []
    return [f"right: overlay cannot be mounted below {root} ({result.stderr.strip()})"]
