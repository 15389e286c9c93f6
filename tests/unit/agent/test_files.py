"""Mapped files are hashed whatever time their process took until somebody looked; only hashing has a limit."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def described(agent: ModuleType, folder: Path, seconds: float, wait: float) -> Any:
    path = folder / "file"
    path.write_bytes(b"bytes")
    table = agent.FileTable(seconds)
    time.sleep(wait)
    table.rows.append({})
    fd = os.open(path, os.O_RDONLY)
    try:
        table._describe(fd, 0)
    finally:
        os.close(fd)
    return table.rows[0]


@pytest.mark.parametrize("wait", [0.0, 0.3])
def test_waiting_for_a_worker_takes_no_time_from_hashing(
    agent: ModuleType, tmp_path: Path, wait: float
) -> None:
    assert described(agent, tmp_path, 0.2, wait)["sha256"] == hashlib.sha256(b"bytes").hexdigest()


def test_without_time_a_file_is_said_not_to_be_hashed(agent: ModuleType, tmp_path: Path) -> None:
    assert described(agent, tmp_path, 0.0, 0.0) == {"sha256": None, "hash_reason": "time limit"}
