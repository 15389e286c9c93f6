"""The project's own files that go into or make an image: locked by hash, kept in the store."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from pathlib import Path

from tic_manifest.errors import PersonError, UnavailableError
from tic_manifest.formats.canonical import canonical_digest, digest_of
from tic_manifest.model.lock import EPOCH, Lock, Material
from tic_manifest.ports import Store

DOCKERFILE = "Dockerfile.unified"
SCRIPTS = "images/build"
AGENT = "images/agent/probe_agent.py"
WORKERS = "images/workers"
SCHEMA_NAME = "schema"
_MAX_FILE = 16 << 20


def read_materials(project: Path) -> dict[str, bytes]:
    """Name to bytes of every material below a checkout. Raises PersonError USAGE where it is no checkout."""
    names = [DOCKERFILE, AGENT, *_files(project, SCRIPTS), *_files(project, WORKERS)]
    return {name: _read(project, name) for name in sorted(set(names))}


def materials_of(files: dict[str, bytes]) -> tuple[Material, ...]:
    """The files by hash, and the schema of the lock as one more."""
    found = [Material(name=name, sha256=_hex(digest_of(raw))) for name, raw in files.items()]
    schema = canonical_digest({"lock": Lock.model_json_schema(by_alias=True), "epoch": EPOCH})
    found.append(Material(name=SCHEMA_NAME, sha256=_hex(schema)))
    return tuple(sorted(found, key=lambda one: one.name))


def keep(files: dict[str, bytes], store: Store) -> None:
    """Put the files into the store, for builds from the lock alone."""
    for raw in files.values():
        store.put(io.BytesIO(raw))


def lay_out(materials: Iterable[Material], store: Store, target: Path) -> None:
    """Write the locked files below `target`, modes the same whatever the umask. Raises UnavailableError."""
    for one in materials:
        if one.name != SCHEMA_NAME:
            path = store.path(f"sha256:{one.sha256}")
            if path is None:
                raise UnavailableError(
                    "BLOB_MISSING", f"{one.name} is not in the store", expected=one.sha256, actual="absent",
                    remedy="run tic-manifest lock again: it keeps what is missing",
                )  # fmt: skip
            place = target / one.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
            os.chmod(place, 0o644)


def _files(project: Path, folder: str) -> list[str]:
    """Regular files at any depth; caches, hidden files and the linter's settings are no materials."""
    root = project / folder
    found = (path.relative_to(root) for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    kept = (path for path in found if not any(part.startswith((".", "__", "ruff")) for part in path.parts))
    return [f"{folder}/{path.as_posix()}" for path in kept]


def _read(project: Path, name: str) -> bytes:
    try:
        with (project / name).open("rb") as stream:
            return stream.read(_MAX_FILE)
    except OSError as error:
        raise PersonError(
            "USAGE", "this is no checkout of the project", where=str(project), expected=name,
            actual=error.strerror or str(error), remedy="run it in the checkout, or give --project DIR",
        ) from error  # fmt: skip


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")
