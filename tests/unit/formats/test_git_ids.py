"""Ids against those that git gives."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tic_manifest.formats.git_ids import blob_hasher, blob_id, object_id, tree_id


def git(repo: Path, *argv: str, data: bytes = b"") -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"]
    ran = subprocess.run(["git", *who, *argv], cwd=repo, input=data, capture_output=True, check=True)
    return ran.stdout.decode().strip()


def test_blob_and_tree_ids_are_gits(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for name, data in {"a.b": b"1", "a/x": b"2", "a0": b"", "run": b"3"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "link").symlink_to("a/x")
    git(tmp_path, "add", "-A")
    rows = [row.split(b"\t") for row in git(tmp_path, "ls-files", "-s", "-z").encode().split(b"\0") if row]
    entries = [(*head.decode().split()[:2], path) for head, path in rows]
    assert tree_id((mode, oid, path) for mode, oid, path in entries) == git(tmp_path, "write-tree")
    assert blob_id(1, [b"1"]) == git(tmp_path, "hash-object", "a.b") == object_id(b"blob", b"1")
    hasher = blob_hasher(0)
    assert hasher.hexdigest() == git(tmp_path, "hash-object", "a0")
