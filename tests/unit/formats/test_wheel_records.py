"""RECORDs of wheels as evidence."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from tic_manifest.adapters.wheel_record import read_wheel
from tic_manifest.errors import RefusedError
from tic_manifest.formats.packed import pack
from tic_manifest.formats.wheel_records import read_records, records_bytes
from tic_manifest.model.wheels import WheelRecord

ONE = WheelRecord(file="a-1-py3-none-any.whl", sha256="a" * 64, record="a.py,sha256=x,1\n")


def wheel(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def test_what_is_written_is_read() -> None:
    other = ONE.model_copy(update={"sha256": "b" * 64, "scripts": {"a-1.data/scripts/x": "#!python\n"}})
    assert read_records(records_bytes([other, ONE]), "x") == {"a" * 64: ONE, "b" * 64: other}
    assert records_bytes([other, ONE]) == records_bytes([ONE, other])


@pytest.mark.parametrize(
    "text",
    [
        b"{}", b"[]", b'{"schema":"tic/wheel-records/v1","wheels":[{}]}',
        b'{"schema":"tic/wheel-records/v1","wheels":[],"more":1}',
        b'{"schema":"tic/wheel-records/v1","wheels":[],"wheels":[]}',
    ],
)  # fmt: skip
def test_other_documents_are_refused(text: bytes) -> None:
    with pytest.raises(RefusedError):
        read_records(pack(text), "x")


def test_a_version_to_come_is_said_so() -> None:
    with pytest.raises(RefusedError) as told:
        read_records(pack(b'{"schema":"tic/wheel-records/v2","wheels":[]}'), "x")
    assert told.value.code == "SCHEMA_VERSION"


def test_a_wheel_that_stands_twice_is_refused() -> None:
    with pytest.raises(RefusedError, match="twice"):
        read_records(records_bytes([ONE, ONE]), "x")


def test_a_wheel_gives_record_entry_points_and_scripts_that_are_rewritten(tmp_path: Path) -> None:
    files = {
        "a-1.dist-info/RECORD": b"a.py,sha256=x,1\n", "a-1.dist-info/entry_points.txt": b"[console_scripts]\n",
        "a/_vendor/b-1.dist-info/RECORD": b"no", "a-1.data/scripts/run": b"#!python\nprint(1)\n",
        "a-1.data/scripts/sh": b"#!/bin/sh\n",
    }  # fmt: skip
    found = read_wheel(wheel(tmp_path / "a.whl", files), "a-1-py3-none-any.whl", "a" * 64)
    assert found.record == "a.py,sha256=x,1\n"
    assert found.entry_points == "[console_scripts]\n"
    assert found.scripts == {"a-1.data/scripts/run": "#!python\nprint(1)\n"}


@pytest.mark.parametrize(
    "files", [{}, {"a.py": b""}, {"a-1.dist-info/RECORD": b"", "b-1.dist-info/RECORD": b""}]
)
def test_a_file_without_one_record_is_no_wheel(files: dict[str, bytes], tmp_path: Path) -> None:
    with pytest.raises(RefusedError) as told:
        read_wheel(wheel(tmp_path / "a.whl", files), "a.whl", "a" * 64)
    assert told.value.code == "WHEEL_HASH"


def test_bytes_that_are_no_archive_are_no_wheel(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(RefusedError):
        read_wheel(tmp_path / "a.whl", "a.whl", "a" * 64)
