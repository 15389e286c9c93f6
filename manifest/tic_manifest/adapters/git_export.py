"""The tree of a commit as files, and the tree id of files as they lie: no attributes, no filters.

`git archive` and `git checkout` obey attributes (export-ignore, export-subst, eol, filters), so what they
write is not the tree. Source of the rule: rules/pr-gate.md F29, rules/image-verify.md (exports).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tic_manifest.adapters.git_objects import (
    CHUNK,
    GITLINK,
    SYMLINK,
    BlobReader,
    TreeEntry,
    blob_id,
    blob_reader,
    tree_entries,
    tree_id,
)
from tic_manifest.adapters.git_run import GitRunner
from tic_manifest.errors import PersonError, RefusedError

_LINK_LIMIT = 4096


def export_tree(runner: GitRunner, repo: Path, commit: str, target: Path) -> str:
    """Write the tree of a commit below the new or empty folder `target`; its id recomputed from the disk.

    Symbolic links are written last, so that no file can be written through one. A submodule is an empty
    folder. Raises RefusedError AMBIGUOUS_PATH for a path that leaves the target or stands twice.
    """
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise PersonError("USAGE", "the folder of an export is not empty", where=str(target))
    entries = tree_entries(runner, repo, commit)
    for entry in entries:
        _check_path(entry.path)
    with blob_reader(runner, repo) as blobs:
        for entry in sorted(entries, key=lambda one: one.mode == SYMLINK):
            _write(entry, target, blobs)
    for folder, _, _ in os.walk(target):
        os.chmod(folder, 0o755)  # noqa: S103 - whatever the umask is
    links = [(GITLINK, one.oid, one.path) for one in entries if one.mode == GITLINK]
    return tree_id([*written_entries(target), *links])


def written_entries(target: Path) -> Iterator[tuple[str, str, bytes]]:
    """(mode, blob id, path) of every file and link below a folder, read back from the disk."""
    root = os.fsencode(target)
    for folder, folders, files in os.walk(root):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in [*files, *links]:
            whole = os.path.join(folder, name)
            mode, oid = file_id(whole)
            yield mode, oid, os.path.relpath(whole, root)


def file_id(path: bytes) -> tuple[str, str]:
    """Git's mode and blob id of a file or symbolic link as it lies, with no filter applied."""
    info = os.lstat(path)
    if stat.S_ISLNK(info.st_mode):
        text = os.readlink(path)
        return SYMLINK, blob_id(len(text), [text])
    with open(path, "rb") as file:
        oid = blob_id(info.st_size, iter(lambda: file.read(CHUNK), b""))
    return ("100755" if info.st_mode & stat.S_IXUSR else "100644"), oid


def _check_path(path: bytes) -> None:
    for part in path.split(b"/"):
        if part in {b"", b".", b".."} or part.lower().rstrip(b". ") == b".git":
            raise _ambiguous(path, "a path of the tree leaves its root")


def _write(entry: TreeEntry, target: Path, blobs: BlobReader) -> None:
    place = os.path.join(os.fsencode(target), entry.path)
    try:
        os.makedirs(os.path.dirname(place), mode=0o755, exist_ok=True)
        if entry.mode == GITLINK:
            os.mkdir(place, 0o755)
        elif entry.mode == SYMLINK:
            os.symlink(blobs.bytes(entry.oid, _LINK_LIMIT), place)
        else:
            _write_file(place, entry, blobs)
    except (FileExistsError, NotADirectoryError) as error:
        raise _ambiguous(entry.path, "a path of the tree stands twice") from error


def _write_file(place: bytes, entry: TreeEntry, blobs: BlobReader) -> None:
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        for piece in blobs.chunks(entry.oid):
            file.write(piece)
        os.fchmod(file.fileno(), 0o755 if entry.mode == "100755" else 0o644)


def _ambiguous(path: bytes, what: str) -> RefusedError:
    return RefusedError("AMBIGUOUS_PATH", what, actual=repr(path)[:300])
