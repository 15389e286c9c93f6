"""The host in a worker: a driver that the container runtime mounted, or the copy of it in the image."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from pydantic import JsonValue

from tic_manifest.model.probe_parts import Facts, File, Process
from tic_manifest.model.verdict import Finding, Status, finding, note
from tic_manifest.rules.probe_view import View

DRIVER = re.compile(r"^lib(cuda|cudadebugger|nvidia-ptxjitcompiler|nvidia-nvvm|nvidia-ml)\.so")
COMPAT = re.compile(r"/compat(-[0-9.]+)?/")
VERSION = re.compile(r"\.so\.(\d+(?:\.\d+)*)$")


def host_injected(view: View) -> list[Finding]:
    """HOST_INJECTED: a note for each file of the host that the policy allows, with hash and mount."""
    return [
        note(
            "HOST_INJECTED", file.path, evidence={"role": view.role, "mount": mount},
            actual={"class": "host-injected", "sha256": file.sha256, "version": version_of(file.path)},
        )
        for file, mount in injected(view)
        if allowed(view, file)
    ]  # fmt: skip


def injected(view: View) -> list[tuple[File, Facts]]:
    """Mapped files that no package ships and that lie below a mount of their own, with that mount."""
    found: dict[str, tuple[File, Facts]] = {}
    for process, row, file in view.mapped():
        mount = mount_of(process, file.path)
        if row.exec_bytes and not file.owners and not file.runtime and mount is not None:
            found[file.path] = (file, mount)
    return [found[path] for path in sorted(found)]


def mount_of(process: Process, path: str) -> Facts | None:
    """The mount that a file lies in, where it is not the root."""
    mounts = process.mounts if isinstance(process.mounts, tuple) else ()
    over = [m for m in mounts if m["mount_point"] != "/" and _below(path, str(m["mount_point"]))]
    return max(over, key=lambda m: len(str(m["mount_point"])), default=None)


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def allowed(view: View, file: File) -> bool:
    """Whether the policy names the file: by its name, and by its bytes where it gives a hash."""
    name = file.path.rpartition("/")[2]
    return any(
        fnmatchcase(name, one.name) and file.sha256 is not None and one.sha256 in (None, file.sha256)
        for one in view.policy.host_injected
    )


def allowed_paths(view: View) -> set[str]:
    """Files that the policy allows from the host, and that a mount shows to come from there."""
    return {file.path for file, _ in injected(view) if allowed(view, file)}


def version_of(path: str) -> str | None:
    """The version in a library's file name, as drivers are named: libcuda.so.580.65.06."""
    match = VERSION.search(path)
    return match.group(1) if match else None


def compat_driver(view: View) -> list[Finding]:
    """COMPAT_DRIVER: the image's copy of the driver's user part is loaded, whatever the host has."""
    return [_compat(view, file) for file in view.loaded_files() if _is_compat(file.path)]


def _is_compat(path: str) -> bool:
    return bool(COMPAT.search(path) and DRIVER.match(path.rpartition("/")[2]))


def _compat(view: View, file: File) -> Finding:
    evidence: dict[str, object] = {
        "role": view.role, "sha256": file.sha256, "version": version_of(file.path),
        "owners": [f"{one.kind} {one.name} {one.version}" for one in file.owners],
        "host_copies": _host_copies(view),
    }  # fmt: skip
    if view.policy.compat_driver == "note":
        return note("COMPAT_DRIVER", file.path, actual="the image's compat copy", evidence=evidence)
    return finding(
        "COMPAT_DRIVER", Status.FAIL, file.path, expected="the driver of the host",
        actual="the image's compat copy", evidence=evidence,
    )  # fmt: skip


def _host_copies(view: View) -> JsonValue:
    """Driver files that were mounted into the worker and are not what it loaded."""
    points = [mount.mount_point for mount in view.report.mounts]
    return [*sorted({p for p in points if DRIVER.match(p.rpartition("/")[2]) and not COMPAT.search(p)})]
