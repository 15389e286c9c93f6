"""What travels of a wheel, read from the wheel: a zip archive by the hash that the store keeps it under.

Source: packaging.python.org, "Binary distribution format".
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from tic_manifest.errors import RefusedError
from tic_manifest.model.base import Sha256Hex
from tic_manifest.model.wheels import WheelRecord

MAX_RECORD = 16 << 20
MAX_ENTRY_POINTS = 1 << 20
MAX_SCRIPT = 1 << 16
MARK = b"#!python"
"""What a script of a wheel begins with whose first line the installer replaces."""


def read_wheel(path: Path, file: str, sha256: Sha256Hex) -> WheelRecord:
    """Raises RefusedError WHEEL_HASH for a file that is no wheel with one RECORD."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive, file, sha256)
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError, OSError, NotImplementedError) as error:
        raise _no_wheel(file, str(error)) from error


def _read(archive: zipfile.ZipFile, file: str, sha256: Sha256Hex) -> WheelRecord:
    records = [
        name for name in archive.namelist() if name.endswith(".dist-info/RECORD") and name.count("/") == 1
    ]
    if len(records) != 1:
        raise _no_wheel(file, f"{len(records)} RECORDs")
    named = f"{records[0].removesuffix('RECORD')}entry_points.txt"
    return WheelRecord(
        file=file,
        sha256=sha256,
        record=_bounded(archive, records[0], MAX_RECORD).decode(),
        entry_points=_bounded(archive, named, MAX_ENTRY_POINTS).decode()
        if named in archive.namelist()
        else "",
        scripts=_scripts(archive),
    )


def _scripts(archive: zipfile.ZipFile) -> dict[str, str]:
    found: dict[str, str] = {}
    for info in archive.infolist():
        parts = info.filename.split("/")
        script = len(parts) == 3 and parts[0].endswith(".data") and parts[1] == "scripts" and parts[2]
        if script and info.file_size <= MAX_SCRIPT:
            raw = archive.read(info)
            if raw.startswith(MARK):
                found[info.filename] = raw.decode()
    return found


def _bounded(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    if archive.getinfo(name).file_size > limit:
        raise _no_wheel(name, f"{archive.getinfo(name).file_size} bytes")
    return archive.read(name)


def _no_wheel(file: str, actual: str) -> RefusedError:
    return RefusedError("WHEEL_HASH", "not a wheel with one RECORD", where=file, actual=actual)
