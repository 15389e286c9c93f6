"""Modules of a name that two places answer to, and byte code that is not that of the source."""

from __future__ import annotations

import re

from tic_manifest.model.probe import Inside, Module
from tic_manifest.model.probe_parts import Process
from tic_manifest.model.verdict import Finding, Status, finding
from tic_manifest.rules.probe_files import SHIPPED
from tic_manifest.rules.probe_view import View

RAY = re.compile(r"^(.*/runtime_resources/(?:working_dir|py_modules)_files/_ray_pkg_[0-9a-f]+)(?:/|$)")
OUTSIDE = frozenset({"input", "output"})
BYTECODE = {"differs": Status.FAIL, "unsure": Status.INCONCLUSIVE}


def shadows(view: View) -> list[Finding]:
    """PKG_*_SHADOW: a module that no package ships lies before one, or two in a namespace."""
    found = []
    for process in view.processes:
        for inside in view.inside(process):
            for module in inside.modules:
                code = _shadow(process, inside, module)
                if code:
                    found.append(_shadowed(view, code, module))
    return found


def _shadow(process: Process, inside: Inside, module: Module) -> str:
    if not module.also or not module.file or RAY.match(module.file):
        return ""
    if "." in module.name:
        return "PKG_NAMESPACE_SHADOW"
    if not {owner.kind for owner in module.owners} <= OUTSIDE:
        return ""
    variables = process.environ if isinstance(process.environ, tuple) else ()
    named = [v.value or "" for v in variables if v.name == "PYTHONPATH"]
    folder = _entry(module)
    given = folder in [part.rstrip("/") for value in named for part in value.split(":")]
    return "PKG_CWD_SHADOW" if folder == process.cwd and not given else "PKG_PATH_SHADOW"


def _entry(module: Module) -> str:
    """The entry of the search path that a top-level module lies in."""
    folder, _, name = (module.file or "").rpartition("/")
    return folder.rpartition("/")[0] if name.startswith("__init__.") else folder


def _shadowed(view: View, code: str, module: Module) -> Finding:
    return finding(
        code,
        Status.FAIL,
        module.name,
        expected=list(module.also),
        actual=module.file,
        evidence={"role": view.role, "sha256": module.sha256, "shipped": _shipped(module)},
    )


def _shipped(module: Module) -> bool:
    return any(owner.kind in SHIPPED for owner in module.owners)


def ray_working_dir(view: View) -> list[Finding]:
    """RAY_WORKING_DIR: modules or entries of the search path below a package that Ray unpacked for a job."""
    places: dict[str, list[str]] = {}
    for inside in view.insides():
        path = inside.python.get("path")
        for entry in path if isinstance(path, list) else ():
            if match := RAY.match(str(entry)):
                places.setdefault(match.group(1), [])
        for module in inside.modules:
            if match := RAY.match(module.file or ""):
                places.setdefault(match.group(1), []).append(module.name)
    return [
        finding(
            "RAY_WORKING_DIR",
            Status.FAIL,
            place,
            expected="code of the image",
            actual=sorted(set(names)),
            evidence={"role": view.role},
        )
        for place, names in sorted(places.items())
    ]


def not_source(view: View) -> list[Finding]:
    """CODE_NOT_SOURCE: the source says one thing, the byte code that the interpreter takes another.

    Inconclusive where only the instructions differ: another release of the interpreter may have made them.
    """
    return [
        finding(
            "CODE_NOT_SOURCE",
            BYTECODE[module.code],
            module.name,
            expected="byte code that the source compiles to",
            actual=module.cached,
            evidence={"role": view.role, "file": module.file, "source_sha256": module.sha256},
        )
        for module in view.modules()
        if module.code in BYTECODE
    ]
