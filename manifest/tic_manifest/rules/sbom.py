"""The SBOM: CycloneDX 1.6 JSON that follows from lock and build receipt alone, never from scanning.

Canonical bytes (RFC 8785), no time; the serial number follows from the lock's digest. So whoever has the
evidence derives the same bytes again. Sources: CycloneDX 1.6, package-url's specification, AC-7 of
rules/image-verify.md.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from tic_manifest.formats.canonical import canonical_bytes, digest_of
from tic_manifest.model.delivery import SBOM_FILE as NAME
from tic_manifest.model.lock import DebianRoot, ImageRoot, LockedFile
from tic_manifest.model.receipt import BuiltWheel
from tic_manifest.model.verdict import Check, Finding, Status, check_of, finding
from tic_manifest.rules.dossier import Dossier

NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")
"""RFC 9562: names that are URLs."""
CHECK = "delivery.sbom"


def sbom_bytes(dossier: Dossier) -> bytes | None:
    """The SBOM of the image that was built; None where no build receipt says which."""
    receipt = dossier.receipts.get("build")
    if receipt is None or dossier.build is None or receipt.platform_digest is None:
        return None
    parts = sorted(_components(dossier, dossier.build.wheels), key=lambda one: str(one["bom-ref"]))
    image = _image(dossier.lock.recipe.name, receipt.platform_digest)
    refs = [one["bom-ref"] for one in parts]
    whole = isinstance(dossier.lock.lock.base, DebianRoot)
    return canonical_bytes(
        {
            "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX",
            "specVersion": "1.6", "version": 1,
            "serialNumber": uuid.uuid5(NAMESPACE, f"https://tic-manifest.dev/sbom/{dossier.lock.digest}").urn,
            "metadata": {
                "component": image, "lifecycles": [{"phase": "build"}],
                "properties": [_property("lock", dossier.lock.digest)],
            },
            "components": parts, "dependencies": [{"ref": image["bom-ref"], "dependsOn": refs}],
            "compositions": [
                {"aggregate": "complete" if whole else "incomplete", "assemblies": [image["bom-ref"]]}
            ],
        }
    )  # fmt: skip


def judge_sbom(dossier: Dossier) -> tuple[list[Check], list[Finding]]:
    """The SBOM that travels is the one that follows from the evidence; one that does not is not run."""
    said, derived = dossier.files.get(NAME), sbom_bytes(dossier)
    if said is None or derived is None:
        reason = "no SBOM travels as evidence" if said is None else "no build receipt to derive it from"
        return [Check(id=CHECK, status=Status.NOT_RUN, subject=NAME, reason=reason)], []
    found = [] if said == derived else [_mismatch(dossier, derived)]
    return [check_of(CHECK, found, subject=NAME)], found


def _mismatch(dossier: Dossier, derived: bytes) -> Finding:
    actual = dossier.artifact(NAME)
    return finding(
        "SBOM_MISMATCH",
        Status.FAIL,
        NAME,
        expected=digest_of(derived),
        actual=actual.digest if actual else None,
    )


def _components(dossier: Dossier, wheels: Iterable[BuiltWheel]) -> Iterable[dict[str, Any]]:
    lock = dossier.lock.lock
    if isinstance(lock.base, DebianRoot):
        yield from (_package(one, lock.base) for one in lock.base.packages)
    else:
        yield _base(lock.base)
    yield from (_distribution(one) for one in lock.python.runtime)
    yield from (_distribution(one, role="native code was taken from it") for one in lock.python.precompiled)
    yield from (_built(dossier, one) for one in wheels)


def _image(name: str, digest: str) -> dict[str, Any]:
    purl = f"pkg:oci/{quote(name.lower())}@{quote(digest, safe='')}"
    return {
        "type": "container", "bom-ref": purl, "name": name, "version": digest, "purl": purl,
        "hashes": _hashes(digest.removeprefix("sha256:")),
    }  # fmt: skip


def _base(root: ImageRoot) -> dict[str, Any]:
    place = root.reference.removeprefix("oci:").partition("@")[0]
    name = place.rstrip("/").rpartition("/")[2] or "base"
    where = "" if root.reference.startswith("oci:") else f"?repository_url={quote(place, safe='')}"
    purl = f"pkg:oci/{quote(name.lower())}@{quote(root.platform_digest, safe='')}{where}"
    return {
        "type": "container", "bom-ref": f"base:{purl}", "name": name, "version": root.platform_digest,
        "purl": purl, "hashes": _hashes(root.platform_digest.removeprefix("sha256:")),
        "description": "base image; what it holds is not listed here",
    }  # fmt: skip


def _package(one: LockedFile, root: DebianRoot) -> dict[str, Any]:
    architecture = one.file.removesuffix(".deb").rpartition("_")[2] if "_" in one.file else root.architecture
    version = quote(one.version, safe=".-~")
    purl = f"pkg:deb/debian/{quote(one.name)}@{version}?arch={quote(architecture)}&distro={root.suite}"
    return _library(purl, one.name, one.version, one.sha256, one.file)


def _distribution(one: LockedFile, role: str = "") -> dict[str, Any]:
    purl = f"pkg:pypi/{_normalized(one.name)}@{quote(one.version, safe='.-')}"
    made = _library(purl, one.name, one.version, one.sha256, one.file)
    if role:
        made |= {
            "bom-ref": f"{purl}#{one.sha256}",
            "properties": [*made["properties"], _property("role", role)],
        }
    return made


def _built(dossier: Dossier, one: BuiltWheel) -> dict[str, Any]:
    """A wheel that was built from a head: its commit as pedigree and its repository as vcs reference."""
    pull = next((row for row in dossier.lock.lock.pull_requests if row.name == one.name), None)
    name, version = (*one.file.split("-"), "")[:2]
    source = f"?vcs_url={quote(f'git+{pull.git}@{pull.head}', safe='')}" if pull else ""
    purl = f"pkg:generic/{_normalized(name)}@{quote(version, safe='.-')}{source}"
    made = _library(purl, _normalized(name), version, one.digest.removeprefix("sha256:"), one.file)
    if pull is None:
        return made
    return made | {
        "pedigree": {"commits": [{"uid": pull.head, "url": pull.url}]},
        "externalReferences": [
            {"type": "vcs", "url": pull.git, "comment": f"commit {pull.head}, tree {one.tree}"},
            {"type": "issue-tracker", "url": pull.url, "comment": "pull request"},
        ],
    }


def _library(purl: str, name: str, version: str, sha256: str, file: str) -> dict[str, Any]:
    return {
        "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
        "hashes": _hashes(sha256), "properties": [_property("file", file)],
    }  # fmt: skip


def _hashes(sha256: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": sha256}]


def _property(name: str, value: str) -> dict[str, str]:
    return {"name": f"tic-manifest:{name}", "value": value}


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
