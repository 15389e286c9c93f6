"""Native libraries in one process: two of a name, families from several places, CUDA majors."""

from __future__ import annotations

import re
from collections.abc import Callable

from tic_manifest.model.probe_parts import File, Process
from tic_manifest.model.verdict import Finding, Status, finding, note
from tic_manifest.rules.probe_view import View

FAMILIES = {
    "NCCL": re.compile(r"^libnccl\.so"),
    "cuDNN": re.compile(r"^libcudnn\w*\.so"),
    "CUDA runtime": re.compile(r"^libcudart(-[0-9a-f]+)?\.so"),
    "cuBLAS": re.compile(r"^libcublas(Lt)?\.so"),
    "NVSHMEM": re.compile(r"^libnvshmem\w*\.so"),
    "OpenMP": re.compile(r"^lib(gomp|iomp5|omp)(-[0-9a-f]+)?\.so"),
}
ONE_ONLY = frozenset({"OpenMP"})
VENDORED = re.compile(r"-[0-9a-f]{8}\.so")
CUDA = re.compile(r"^lib(?:cudart|cublas|cublasLt|cufft|cusparse|cusolver|nvrtc)\.so\.(\d+)$")


def _by(process: Process, view: View, key: Callable[[File], str | None]) -> dict[str, list[File]]:
    groups: dict[str, list[File]] = {}
    for row in process.mapped:
        file = view.report.files[row.file]
        name = key(file) if row.exec_bytes else None
        if name and file not in groups.setdefault(name, []):
            groups[name].append(file)
    return groups


def _soname(file: File) -> str | None:
    return file.elf.soname if file.elf else None


def _family(file: File) -> str | None:
    name = file.path.rpartition("/")[2]
    return next((family for family, mark in FAMILIES.items() if mark.search(name)), None)


def duplicates(view: View) -> list[Finding]:
    """LIB_DUP: two files with one SONAME in one process: which one answers depends on load order."""
    return [
        finding(
            "LIB_DUP",
            Status.FAIL,
            name,
            expected="one file",
            actual=sorted(f.path for f in files),
            evidence=_evidence(view, process, files),
        )
        for process in view.processes
        for name, files in sorted(_by(process, view, _soname).items())
        if len(files) > 1
    ]


def mixed_families(view: View) -> list[Finding]:
    """LIB_FAMILY_MIXED: a family from several folders; copies that auditwheel renamed are a note."""
    found = []
    for process in view.processes:
        for family, files in sorted(_by(process, view, _family).items()):
            folders = {f.path.rpartition("/")[0] for f in files}
            if len(folders) < 2 and not (family in ONE_ONLY and len(files) > 1):
                continue
            own_names = [f for f in files if not VENDORED.search(f.path)]
            evidence = _evidence(view, process, files)
            paths = sorted(f.path for f in files)
            if len(own_names) <= 1:
                found.append(note("LIB_FAMILY_MIXED", family, actual=paths, evidence=evidence))
            else:
                found.append(
                    finding(
                        "LIB_FAMILY_MIXED",
                        Status.FAIL,
                        family,
                        expected="one source",
                        actual=paths,
                        evidence=evidence,
                    )
                )
    return found


def order_dependent(view: View) -> list[Finding]:
    """LIB_ORDER_DEPENDENT: a note, since what was loaded is known; in another order it is another."""
    rows = {(one.library, one.mapped, one.search): one for scan in view.imports() for one in scan.order}
    return [
        note(
            "LIB_ORDER_DEPENDENT",
            library,
            actual={
                "mapped": f"{mapped} sha256:{one.mapped_sha256}",
                "search": f"{search} sha256:{one.search_sha256}",
            },
            evidence={"role": view.role, "needed_by": one.needed_by},
        )
        for (library, mapped, search), one in sorted(rows.items(), key=lambda row: row[0])
    ]


def cuda_majors(view: View) -> list[Finding]:
    """LIB_CUDA_MAJOR_MIX: CUDA libraries whose SONAMEs end in different majors."""
    found = []
    for process in view.processes:
        names = {_soname(view.report.files[row.file]) or "" for row in process.mapped}
        matches = {name: match.group(1) for name in names if (match := CUDA.match(name))}
        libraries = sorted(
            name for name in matches if name.startswith(("libcudart", "libcublas", "libnvrtc"))
        )
        majors = {matches[name] for name in libraries}
        if len(majors) > 1:
            found.append(
                finding(
                    "LIB_CUDA_MAJOR_MIX",
                    Status.FAIL,
                    process.title or view.role,
                    expected="one major version",
                    actual=libraries,
                    evidence={"role": view.role, "pid": process.pid},
                )
            )
    return found


def _evidence(view: View, process: Process, files: list[File]) -> dict[str, object]:
    owners = {f.path: [f"{o.kind} {o.name} {o.version}" for o in f.owners] for f in files}
    hashes = {f.path: f.sha256 for f in files}
    return {"role": view.role, "pid": process.pid, "owners": owners, "sha256": hashes}
