"""Attributes of a tree, applied in a scratch repository: git 2.39 reads none from a tree by itself.

Every `.gitattributes` line is moved to `info/attributes` of a bare scratch repository that borrows the
mirror's objects; only drivers and filters built into git can act, for no configuration names another.
Source: rules/pr-gate.md 1.3 and section 5.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tic_manifest.adapters.git_objects import TreeEntry, blob_reader, objects_missing, tree_entries
from tic_manifest.adapters.git_run import GitRunner

_LIMIT = 1 << 20


def attribute_blobs(runner: GitRunner, repo: Path, commit: str) -> list[str]:
    """Ids of every `.gitattributes` of a tree."""
    return [one.oid for one in tree_entries(runner, repo, commit) if _is_attributes(one)]


def attribute_lines(runner: GitRunner, repo: Path, commit: str, words: Sequence[str]) -> list[str]:
    """Lines of every `.gitattributes` of a tree that hold one of the words, patterns made absolute.

    Outer folders first, so that inner ones win as they do in git.
    """
    entries = [one for one in tree_entries(runner, repo, commit) if _is_attributes(one)]
    lines: list[str] = []
    with blob_reader(runner, repo) as blobs:
        for entry in sorted(entries, key=lambda one: (one.path.count(b"/"), one.path)):
            folder = entry.path.rpartition(b"/")[0].decode("utf-8", "surrogateescape")
            text = blobs.bytes(entry.oid, _LIMIT).decode("utf-8", "surrogateescape")
            lines += [_absolute(line, folder) for line in text.splitlines() if _relevant(line, words)]
    return [line for line in lines if line]


def lfs_paths(runner: GitRunner, repo: Path, lines: Sequence[str], paths: Sequence[bytes]) -> list[bytes]:
    """Those paths whose `filter` attribute is `lfs`."""
    with scratch_repository(runner, repo, lines) as scratch:
        argv = ["check-attr", "-z", "--stdin", "filter"]
        ran = runner.run(argv, repo=scratch, stdin=b"".join(path + b"\0" for path in paths))
    if ran.status != 0:
        raise objects_missing("git could not read attributes", ran.err)
    fields = ran.out.split(b"\0")[:-1]
    rows = [fields[at : at + 3] for at in range(0, len(fields), 3)]
    return [path for path, _, value in rows if value == b"lfs"]


@contextmanager
def scratch_repository(runner: GitRunner, repo: Path, lines: Sequence[str]) -> Iterator[Path]:
    """A bare repository that borrows the objects of `repo` and goes away with the block."""
    scratch = Path(tempfile.mkdtemp(prefix="tic-scratch-"))
    try:
        borrow(runner, repo, scratch)
        (scratch / "info").mkdir(exist_ok=True)
        text = "\n".join([*lines, ""])
        (scratch / "info" / "attributes").write_text(text, encoding="utf-8", errors="surrogateescape")
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def borrow(runner: GitRunner, repo: Path, scratch: Path) -> None:
    """Make `scratch` a bare repository with the objects of `repo` as alternates."""
    argv = ["init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--end-of-options"]
    ran = runner.run([*argv, str(scratch)], repo=scratch)
    if ran.status != 0:
        raise objects_missing("a scratch repository cannot be made", ran.err)
    (scratch / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (scratch / "objects" / "info" / "alternates").write_text(f"{repo.resolve() / 'objects'}\n")


def _is_attributes(entry: TreeEntry) -> bool:
    return entry.kind == "blob" and entry.path.rpartition(b"/")[2] == b".gitattributes"


def _relevant(line: str, words: Sequence[str]) -> bool:
    return not line.lstrip().startswith("#") and any(word in line for word in words)


def _absolute(line: str, folder: str) -> str:
    """The line with its pattern seen from the root (gitattributes(5)); macros only at the root."""
    line = line.strip()
    if line.startswith("[attr]"):
        return "" if folder else line
    if line.startswith('"') or not folder:
        return "" if folder else line
    pattern, _, rest = line.partition(" ")
    inner = pattern.strip("/")
    whole = f"/{folder}/{inner}" if "/" in pattern.rstrip("/") else f"/{folder}/**/{inner}"
    return f"{whole} {rest}"
