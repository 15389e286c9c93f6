"""Files that a worker loaded: who ships them, are they what was shipped, do they execute as they are."""

from __future__ import annotations

from collections.abc import Iterable

from tic_manifest.model.probe_parts import File, Owner
from tic_manifest.model.verdict import Finding, Status, finding
from tic_manifest.rules.probe_host import allowed_paths
from tic_manifest.rules.probe_view import View

SHIPPED = frozenset({"wheel", "dpkg"})
CLOCK_NS = 100_000_000
"""Start times are known to clock ticks, times of files to a tick of the kernel."""


def unowned(view: View) -> list[Finding]:
    """UNOWNED_FILE: mapped files and modules on disk that no package ships."""
    injected = allowed_paths(view)
    nobodys = [f for f in view.loaded_files() if not f.owners and not f.runtime]
    files = {f.path: f.sha256 for f in nobodys if f.path not in injected}
    modules = {m.file: m.sha256 for m in view.modules() if m.file and m.on_disk and not m.owners}
    modules |= {m.archive: m.sha256 for m in view.modules() if m.archive and not m.owners}
    found = []
    for path, sha256 in sorted({**modules, **files}.items()):
        evidence = {"role": view.role, "sha256": sha256, "mapped": path in files}
        found.append(
            finding(
                "UNOWNED_FILE", Status.FAIL, path, expected="a wheel or a Debian package", evidence=evidence
            )
        )
    return found


def record_hash(view: View) -> list[Finding]:
    """RECORD_HASH: a loaded file that none of its owners shipped with these bytes."""
    rows: dict[str, tuple[tuple[Owner, ...], str | None]] = {}
    rows |= {m.file: (m.owners, m.sha256) for m in view.modules() if m.file and m.on_disk}
    rows |= {f.path: (f.owners, f.sha256) for f in view.loaded_files() if not f.deleted}
    found = []
    for path, (owners, sha256) in sorted(rows.items()):
        if _differs(owners):
            names = [f"{o.kind} {o.name} {o.version}" for o in owners if o.kind in SHIPPED]
            recorded = [o.recorded_sha256 for o in owners if o.recorded_sha256]
            evidence = {"role": view.role, "owners": list(names)}
            found.append(
                finding(
                    "RECORD_HASH",
                    Status.FAIL,
                    path,
                    expected=list(recorded),
                    actual=sha256,
                    evidence=evidence,
                )
            )
    return found


def _differs(owners: Iterable[Owner]) -> bool:
    verdicts = {o.record for o in owners if o.kind in SHIPPED}
    return "differs" in verdicts and "match" not in verdicts


def mapped_not_disk(view: View) -> list[Finding]:
    """MAPPED_NOT_DISK: executable memory differs from the file, or another file lies at its path."""
    found = []
    for process, row, file in view.mapped():
        evidence = {"role": view.role, "pid": process.pid, "title": process.title, "identity": row.identity}
        if row.executing.verdict == "differs":
            evidence["offset"] = row.executing.offset
            found.append(_not_disk(file, "code differs at the offset", evidence))
        elif row.identity in ("differs", "gone") and row.exec_bytes:
            found.append(_not_disk(file, "another file, or none, at the path", evidence))
    return found


def _not_disk(file: File, actual: str, evidence: dict[str, object]) -> Finding:
    return finding(
        "MAPPED_NOT_DISK",
        Status.FAIL,
        file.path,
        expected="memory equal to the file that was hashed",
        actual=actual,
        evidence={**evidence, "sha256": file.sha256},
    )


def mapped_deleted(view: View) -> list[Finding]:
    """MAPPED_DELETED: executable mappings of files that were removed or replaced by name."""
    return [
        finding(
            "MAPPED_DELETED",
            Status.FAIL,
            file.path,
            expected="a file that is still there",
            actual="deleted",
            evidence={"role": view.role, "pid": process.pid, "title": process.title, "sha256": file.sha256},
        )
        for process, row, file in view.mapped()
        if row.identity == "deleted" and row.exec_bytes and not file.runtime
    ]


def changed_since(view: View) -> list[Finding]:
    """MAPPED_CHANGED_SINCE: written after the process started, so that nobody knows what executed before."""
    found = []
    for process, row, file in view.mapped():
        kept = row.identity in ("same", "inode-only") and {o.kind for o in file.owners} <= SHIPPED
        if not (kept and row.exec_bytes and isinstance(process.started_ns, int) and file.mtime_ns):
            continue
        if file.mtime_ns > process.started_ns + CLOCK_NS:
            evidence = {"role": view.role, "pid": process.pid, "sha256": file.sha256}
            found.append(
                finding(
                    "MAPPED_CHANGED_SINCE",
                    Status.INCONCLUSIVE,
                    file.path,
                    expected="written before the process started",
                    actual=f"written {(file.mtime_ns - process.started_ns) / 1e9:.1f} s after",
                    evidence=evidence,
                )
            )
    return found


def mount_covers_source(view: View) -> list[Finding]:
    """MOUNT_COVERS_SOURCE: a mount other than the root with shipped code below it."""
    return [
        finding(
            "MOUNT_COVERS_SOURCE",
            Status.FAIL,
            mount.mount_point,
            expected="nothing mounted but inputs and an output folder",
            actual=f"{mount.covers} loaded files lie below it",
            evidence={
                "role": view.role,
                "fstype": mount.fstype,
                "root": mount.root,
                "examples": list(mount.examples),
            },
        )
        for mount in view.report.mounts
        if mount.mount_point != "/" and mount.covers > _injected_below(view, mount.mount_point)
    ]


def _injected_below(view: View, folder: str) -> int:
    """How many files below a mount are the host's, by leave of the policy."""
    return sum(path == folder or path.startswith(folder.rstrip("/") + "/") for path in allowed_paths(view))
