"""The store: whole and hashed, or not there."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

import pytest
from tic_manifest.adapters.store import FileStore
from tic_manifest.errors import RefusedError, UnavailableError

BODY = b"a wheel" * 100_000
DIGEST = "sha256:" + hashlib.sha256(BODY).hexdigest()


def names(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "sha256").iterdir()) if (root / "sha256").exists() else []


def test_what_was_put_is_found_by_its_digest(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    assert store.path(DIGEST) is None
    assert store.put(io.BytesIO(BODY), expected=DIGEST) == DIGEST
    found = store.path(DIGEST)
    assert found is not None
    assert found.read_bytes() == BODY
    assert found.stat().st_mode & 0o777 == 0o444


def test_other_bytes_than_expected_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(RefusedError) as caught:
        FileStore(tmp_path).put(io.BytesIO(BODY + b"!"), expected=DIGEST)
    assert (caught.value.code, caught.value.expected) == ("WHEEL_HASH", DIGEST)
    assert names(tmp_path) == []


def test_a_stream_that_breaks_leaves_nothing(tmp_path: Path) -> None:
    class Broken(io.BytesIO):
        def read(self, amount: int | None = -1) -> bytes:
            if self.tell() > 1 << 20:
                raise ConnectionResetError
            return super().read(1 << 18)

    with pytest.raises((ConnectionResetError, UnavailableError)):
        FileStore(tmp_path).put(Broken(BODY * 10))
    assert names(tmp_path) == []


def test_a_link_in_the_store_is_no_file_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "sha256").mkdir()
    (tmp_path / "elsewhere").write_bytes(BODY)
    (tmp_path / "sha256" / DIGEST.removeprefix("sha256:")).symlink_to(tmp_path / "elsewhere")
    assert FileStore(tmp_path).path(DIGEST) is None


def test_a_placed_file_has_the_bytes_whatever_the_umask(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    store.put(io.BytesIO(BODY))
    before = os.umask(0o077)
    try:
        store.place(DIGEST, tmp_path / "context" / "name.whl", "name.whl")
    finally:
        os.umask(before)
    placed = tmp_path / "context" / "name.whl"
    assert placed.read_bytes() == BODY
    assert placed.stat().st_mode & 0o444 == 0o444


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError) as caught:
        FileStore(tmp_path).place(DIGEST, tmp_path / "x", "torch-2.13.0.whl")
    assert caught.value.code == "BLOB_MISSING"
    assert "torch-2.13.0.whl" in caught.value.what
