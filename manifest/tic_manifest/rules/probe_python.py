"""How Python found its code: editable installs, .pth files, preloads, imports that failed unseen."""

from __future__ import annotations

from collections.abc import Iterable

from tic_manifest.model.probe import BrokenImport, Imports, UndefinedSymbol
from tic_manifest.model.verdict import Finding, Status, finding, note
from tic_manifest.rules.probe_view import View


def still_editable(view: View) -> list[Finding]:
    """PKG_STILL_EDITABLE: by direct_url.json or an egg-link."""
    return [
        finding(
            "PKG_STILL_EDITABLE",
            Status.FAIL,
            one.name,
            expected="files of a wheel",
            actual=f"editable by {one.editable}",
            evidence={"role": view.role, "path": one.path, "version": one.version},
        )
        for one in view.report.distributions
        if one.editable
    ]


def pth_unowned(view: View) -> list[Finding]:
    """PTH_UNOWNED: one that a package ships is no overlay."""
    return [
        finding(
            "PTH_UNOWNED",
            Status.FAIL,
            one.path,
            expected="a wheel or a Debian package that ships it",
            actual=list(one.code_lines + one.added_paths),
            evidence={"role": view.role, "sha256": one.sha256},
        )
        for one in view.report.pth
        if not one.owners
    ]


def preload(view: View) -> list[Finding]:
    """PRELOAD: by environment at exec or by /etc/ld.so.preload; a note when a package ships every library."""
    content = view.report.preload.get("file")
    sources = [("LD_PRELOAD", value) for value in view.variable("LD_PRELOAD")]
    sources += [("/etc/ld.so.preload", content)] if isinstance(content, str) and content.strip() else []
    return [_preload(view, where, value) for where, value in sources]


def _preload(view: View, where: str, value: str) -> Finding:
    names = value.replace(":", " ").split()
    owners = {f.path: f.owners for f in view.loaded_files()}
    shipped = {path.rpartition("/")[2] for path, owned in owners.items() if owned}
    evidence = {"role": view.role, "libraries": list(names), "binds": _bound(view, names)}
    if names and all(name.rpartition("/")[2] in shipped for name in names):
        return note("PRELOAD", where, actual=value, evidence=evidence)
    return finding("PRELOAD", Status.FAIL, where, expected="no preload", actual=value, evidence=evidence)


def _bound(view: View, names: list[str]) -> dict[str, str]:
    """Key functions that these libraries answer to, by the views of the processes themselves."""
    files = {name.rpartition("/")[2] for name in names}
    rows = [row for one in view.insides() if isinstance(one.symbols, tuple) for row in one.symbols]
    return {row.name: row.object for row in rows if row.object and row.object.rpartition("/")[2] in files}


def silent_fallback(view: View) -> list[Finding]:
    """PKG_SILENT_FALLBACK: what was measured may be another path than the one asked for, so inconclusive."""
    found = []
    for scan in view.imports():
        for one in scan.broken:
            found.append(
                finding(
                    "PKG_SILENT_FALLBACK",
                    Status.INCONCLUSIVE,
                    one.module,
                    expected="importable",
                    actual=_why(one),
                    evidence=_evidence(view, one),
                    remedy=_remedy(one),
                )
            )
    return [*found, *_untried(view, view.imports())]


def undefined_symbols(view: View) -> list[Finding]:
    """LIB_ABI, LIB_SYMBOL_VERSION: the first object that lacks a symbol, by which an import failed."""
    rows = [
        (broken, broken.undefined[0]) for scan in view.imports() for broken in scan.broken if broken.undefined
    ]
    return [
        finding(
            "LIB_SYMBOL_VERSION" if first.other_version_in else "LIB_ABI",
            Status.FAIL,
            first.needed_by,
            expected=f"a library that defines {_symbol(first)}",
            actual=first.other_version_in or "none of those that are loaded or needed",
            evidence={
                "role": view.role,
                "import": broken.module,
                "imported_by": broken.importer,
                "undefined": [_symbol(one) for one in broken.undefined],
            },
        )
        for broken, first in rows
    ]


def _symbol(one: UndefinedSymbol) -> str:
    return f"{one.words or one.symbol}{'@' + one.version if one.version else ''}"


def _untried(view: View, scans: Iterable[Imports]) -> list[Finding]:
    """Extension modules that cannot be loaded and that no loaded code was seen to import: notes."""
    return [
        note(
            "PKG_SILENT_FALLBACK",
            one.module,
            what="an extension module of a used wheel could not be loaded, and nothing loaded imports it",
            actual=[edge.library for edge in one.missing],
            evidence={"role": view.role, "path": one.path},
        )
        for scan in scans
        for one in scan.unloadable
        if one.module is not None and not one.tried
    ]


def _why(one: BrokenImport) -> str:
    libraries = sorted({edge.library for edge in one.missing})
    if libraries:
        return f"{', '.join(libraries)} is not in the image"
    if one.undefined:
        return f"{one.undefined[0].needed_by} lacks {_symbol(one.undefined[0])}"
    return "it is on disk, was imported when its importer was loaded, and is not loaded"


def _remedy(one: BrokenImport) -> str:
    libraries = sorted({edge.library for edge in one.missing})
    if libraries:
        return f"add the package that ships {', '.join(libraries)} to the base"
    if one.undefined:
        return "build it against the libraries of this image, or install the version that it was built for"
    return f"run `python -c 'import {one.module}'` in the image to see the error that was swallowed"


def _evidence(view: View, one: BrokenImport) -> dict[str, object]:
    edges = [{"library": edge.library, "needed_by": edge.needed_by} for edge in one.missing]
    return {
        "role": view.role,
        "imported_by": one.importer,
        "file": one.file,
        "line": one.line,
        "where": one.where,
        "path": one.path,
        "missing": edges,
    }
