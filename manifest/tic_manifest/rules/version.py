"""What the version of a wheel says of the tree that it was built from (rules/image-verify.md S31, S32).

Tools that take the version from git fall back to a fixed word where there is no git, and append the date
where files of the tree are missing: neither names the head. A version that the lock names is proven.
"""

from __future__ import annotations

import re

from tic_manifest.model.receipt import BuiltWheel
from tic_manifest.model.recipe import PullRequest
from tic_manifest.model.verdict import Finding, Status, finding
from tic_manifest.rules.dossier import Dossier
from tic_manifest.rules.source_evidence import read_sources

MAX_LISTED = 50
_WHEEL = re.compile(r"[A-Za-z0-9_.]+-(?P<version>[A-Za-z0-9_.!+]+)(?:-[0-9][^-]*)?-[^-]+-[^-]+-[^-]+\.whl")
_FELL_BACK = re.compile(r"(?:0(?:\.0)*|0\.1\.?dev[0-9]*|dev|UNKNOWN)(?:\+.*)?", re.IGNORECASE)
_DATED = re.compile(r"\+(?:.*[._])?d20[0-9]{6}(?:[._].*)?")


def check_version(dossier: Dossier, asked: PullRequest, wheel: BuiltWheel) -> list[Finding]:
    """VERSION_UNPROVEN where the build fell back, LOCAL_DIRTY/context where the tree was a changed one."""
    named = _WHEEL.fullmatch(wheel.file)
    version = named["version"] if named else ""
    given = {name: value for name, value in asked.build.env.items() if "VERSION" in name}
    if not version or version in given.values():
        return []
    if _DATED.search(version):
        return [_context(dossier, wheel, version)]
    if not _FELL_BACK.fullmatch(version):
        return []
    remedy = f"name it: pull_requests.{wheel.name}.build.env: {{SETUPTOOLS_SCM_PRETEND_VERSION: ...}}"
    return [
        finding(
            "VERSION_UNPROVEN", Status.FAIL, wheel.name, expected="a version that the lock names",
            actual=version, evidence={"wheel": wheel.file, "named": given}, remedy=remedy,
        )
    ]  # fmt: skip


def _context(dossier: Dossier, wheel: BuiltWheel, version: str) -> Finding:
    lost = dropped(dossier, wheel)
    shown = ", ".join(lost[:MAX_LISTED]) or "not known: listing and RECORD do not travel with this delivery"
    return finding(
        "LOCAL_DIRTY/context", Status.FAIL, wheel.name, expected=f"every file of tree {wheel.tree}",
        actual=f"version {version}; tracked files that are not in the wheel: {shown}",
        evidence={"wheel": wheel.file, "paths": lost[:MAX_LISTED], "count": len(lost)},
        remedy="let no .dockerignore or other filter of the context drop tracked files",
    )  # fmt: skip


def dropped(dossier: Dossier, wheel: BuiltWheel) -> list[str]:
    """Tracked files of the packages that the wheel holds, which the wheel lacks; sorted."""
    sources = read_sources(dossier)
    built = sources.built.get(wheel.name)
    record = next((one.record for one in sources.wheels.values() if one.pull == wheel.name), None)
    if built is None or record is None:
        return []
    held = {row.rpartition(",")[0].rpartition(",")[0].strip('"') for row in record.record.splitlines()}
    packages = {path.partition("/")[0] for path in held if "/" in path}
    below = _folder(built.asked.subdirectory)
    tracked = (path.decode("utf-8", "backslashreplace") for path in built.listing.entries)
    own = (path.removeprefix(below).removeprefix("src/") for path in tracked if path.startswith(below))
    return sorted(
        path for path in own if path.partition("/")[0] in packages and "/" in path and path not in held
    )


def _folder(subdirectory: str | None) -> str:
    return f"{subdirectory.strip('/')}/" if subdirectory and subdirectory != "." else ""
