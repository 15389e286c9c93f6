"""What one role's processes ran on, under names that another role's can be compared by."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tic_manifest.model.probe import CodeIdentity
from tic_manifest.model.probe_parts import File, Owner
from tic_manifest.rules.probe_environment import Views, views_of
from tic_manifest.rules.probe_view import View

FAMILIES = {
    "OpenMP": re.compile(r"^lib(gomp|iomp5|omp)\.so"),
    "BLAS": re.compile(
        r"^lib(scipy_|flexi)?(openblas\w*|blas|cblas|blis\w*|mkl_(rt|core|\w*thread))(-r\d+)?\.so"
    ),
    "NCCL": re.compile(r"^libnccl\.so"),
    "cuDNN": re.compile(r"^libcudnn\w*\.so"),
    "cuBLAS": re.compile(r"^libcublas(Lt)?\.so"),
    "CUDA runtime": re.compile(r"^libcudart\.so"),
    "CUDA driver": re.compile(r"^libcuda\.so"),
    "NVRTC": re.compile(r"^libnvrtc(-builtins)?\.so"),
    "NVSHMEM": re.compile(r"^libnvshmem\w*\.so"),
    "oneDNN": re.compile(r"^lib(dnnl|mkldnn)\.so"),
    "libm": re.compile(r"^libm\.so\.6$"),
    "libc": re.compile(r"^libc\.so\.6$"),
}
"""Families whose code computes or moves numbers; another copy of one can change a score."""
BUNDLED = re.compile(r"-[0-9a-f]{8}(?=[.-])")
OF_THE_RUN = frozenset({"jit", "input", "output", "agent", "worker", "runtime", "generated"})
Place = tuple[str, str]
"""Owner (kind and name) and path below the folder that it is installed in."""


@dataclass(frozen=True, kw_only=True)
class Library:
    """A mapped native file: `name` and `place` without what differs between equal installations."""

    name: str
    family: str | None
    place: Place
    path: str
    sha256: str
    owner: str
    bundled: bool


@dataclass(frozen=True, kw_only=True)
class Side:
    """One role: what the processes that hold its model loaded, and under what environment."""

    role: str
    python: str | None
    versions: Mapping[str, str]
    files: Mapping[str, Mapping[str, str]]
    libraries: tuple[Library, ...]
    environments: tuple[Views, ...]
    kernels: Mapping[str, Mapping[str, tuple[str, ...]]]
    """By family and name: specialization to hashes of code."""
    compilers: Mapping[str, tuple[str, ...]]
    symbols: Mapping[str, tuple[str, str | None]]
    cpu: Mapping[str, str]


def side_of(role: str, view: View) -> Side:
    """The side of a role, from its observation."""
    insides = view.insides()
    versions = {str(one.python.get("version")) for one in insides if one.python.get("version")}
    return Side(
        role=role,
        python=" ".join(sorted(versions)) or None,
        versions=_versions(view),
        files=_files(view),
        libraries=tuple(_libraries(view)),
        environments=_environments(view),
        kernels=_kernels(view),
        compilers=_compilers(view),
        symbols=_symbols(view),
        cpu=_cpu(view),
    )


def plain_name(path: str) -> str:
    """A file name without the hash that auditwheel gives to bundled copies."""
    return BUNDLED.sub("", path.rpartition("/")[2])


def family_of(name: str) -> str | None:
    """The family of a plain name."""
    return next((family for family, mark in FAMILIES.items() if mark.search(name)), None)


def relative(path: str) -> str:
    """A path below its site folder, or the whole of it outside one."""
    for mark in ("/site-packages/", "/dist-packages/"):
        if mark in path:
            return path.rpartition(mark)[2]
    return path


def _wheels(owners: Iterable[Owner]) -> list[Owner]:
    return [one for one in owners if one.kind == "wheel" and one.name]


def _normal(name: str | None) -> str:
    return re.sub(r"[-_.]+", "-", name or "").lower()


def _loaded(view: View) -> Iterable[tuple[str, tuple[Owner, ...], str]]:
    yield from ((m.file, m.owners, m.sha256) for m in view.modules() if m.file and m.sha256)
    yield from ((f.path, f.owners, f.sha256) for f in view.loaded_files() if f.sha256)


def _versions(view: View) -> dict[str, str]:
    """Versions of the distributions that something was loaded from."""
    found: dict[str, set[str]] = {}
    for _, owners, _ in _loaded(view):
        for one in _wheels(owners):
            found.setdefault(_normal(one.name), set()).add(one.version or "unknown")
    return {name: ", ".join(sorted(versions)) for name, versions in found.items()}


def _files(view: View) -> dict[str, dict[str, str]]:
    """Loaded files of each distribution: path below its site folder to sha256."""
    found: dict[str, dict[str, str]] = {}
    for path, owners, sha256 in _loaded(view):
        for one in _wheels(owners):
            found.setdefault(_normal(one.name), {})[relative(path)] = sha256
    return found


def _libraries(view: View) -> Iterable[Library]:
    mapped = {row.file for _, row, _ in view.mapped() if row.exec_bytes}
    mapped |= {row.file for row in view.report.appeared if row.pid in {p.pid for p in view.processes}}
    for number in sorted(mapped):
        file = view.report.files[number]
        if file.sha256 and not file.runtime and not {one.kind for one in file.owners} & OF_THE_RUN:
            yield _library(file, file.sha256)


def _library(file: File, sha256: str) -> Library:
    owner = next(iter(file.owners), None)
    name = plain_name((file.elf.soname if file.elf else None) or file.path)
    where = (
        f"{owner.kind} {_normal(owner.name)}" if owner else "nobody",
        BUNDLED.sub("", relative(file.path)),
    )
    said = " ".join(part for part in (owner.kind, owner.name, owner.version) if part) if owner else "nobody"
    return Library(
        name=name, family=family_of(name), place=where, path=file.path, sha256=sha256, owner=said,
        bundled=bool(BUNDLED.search(file.path.rpartition("/")[2])),
    )  # fmt: skip


def _environments(view: View) -> tuple[Views, ...]:
    """The last view of each judged process."""
    last = {(p.pid, p.start_ticks): p for p in view.processes}
    return tuple(views_of(view, process) for process in last.values())


def _kernels(view: View) -> dict[str, dict[str, tuple[str, ...]]]:
    """Kernels by family and name: specialization to hashes of code; raw bytes carry paths of the cache."""
    found: dict[str, dict[str, set[str]]] = {}
    for one in view.report.jit.ledger:
        code = one.code_sha256 or one.sha256
        if one.kernel and code and one.loaded is not False:
            spec = json.dumps(one.specialization, sort_keys=True)
            found.setdefault(f"{one.family} {one.kernel}", {}).setdefault(spec, set()).add(code)
    told = frozenset(found)
    for artifact in view.report.jit.artifacts:
        text = artifact.code.text_sha256 if isinstance(artifact.code, CodeIdentity) else None
        for name in (f"{artifact.family} {kernel}" for kernel in artifact.kernels):
            if text and name not in told:
                found.setdefault(name, {}).setdefault("", set()).add(text)
    return {name: {spec: tuple(sorted(c)) for spec, c in specs.items()} for name, specs in found.items()}


def _compilers(view: View) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for one in view.report.jit.compilers:
        if isinstance(one.sha256, str) and (one.seen_running or one.configured_as):
            found.setdefault(one.path.rpartition("/")[2], set()).add(one.sha256)
    for entry in view.report.jit.ledger:
        if entry.compiler and entry.loaded is not False:
            found.setdefault(f"compiler of {entry.family}", set()).add(entry.compiler)
    return {name: tuple(sorted(hashes)) for name, hashes in found.items()}


def _symbols(view: View) -> dict[str, tuple[str, str | None]]:
    """Key functions with the object that each binds to, and its hash."""
    hashes = {path: file.sha256 for path, file in view.by_path().items()}
    rows = [row for inside in view.insides() if isinstance(inside.symbols, tuple) for row in inside.symbols]
    return {row.name: (row.object, hashes.get(row.object)) for row in rows if row.object}


def _cpu(view: View) -> dict[str, str]:
    host = view.report.host
    cpu = host.get("cpu")
    found = {str(key): str(value) for key, value in cpu.items()} if isinstance(cpu, dict) else {}
    return found | ({"machine": str(host["machine"])} if host.get("machine") else {})
