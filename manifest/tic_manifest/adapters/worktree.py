"""A local checkout, read without its configuration: `.git/config` of a checkout can run programs.

A scratch repository borrows the checkout's objects and a copy of its index; the files are hashed as they
lie, with no filter. Source of the rules: rules/pr-gate.md F29-F32 and V10, V11, V17.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tic_manifest.adapters.git import GitMirror
from tic_manifest.adapters.git_attributes import scratch_repository
from tic_manifest.adapters.git_export import file_id
from tic_manifest.adapters.git_objects import CHUNK, GITLINK, objects_missing, tree_entries
from tic_manifest.adapters.git_run import GitRunner
from tic_manifest.errors import PersonError
from tic_manifest.formats.canonical import plain
from tic_manifest.model.base import GitCommit
from tic_manifest.model.gate import MAX_LISTED, LocalFacts
from tic_manifest.ports_gate import GateGit

MAX_DEPTH = 5
_OID = re.compile(r"^[0-9a-f]{40}$")
_REF = re.compile(r"^refs/[^\x00-\x20~^:?*\[\\]+$")
_POINTER = re.compile(
    rb"^version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize (\d{1,15})\n"
)
Entries = dict[bytes, tuple[str, str]]
"""Path to mode and object id."""


@dataclass(frozen=True)
class Place:
    """Folders of a checkout: its files, its own git folder, the one that holds objects and refs."""

    files: Path
    own: Path
    common: Path


class RecordedCheckout:
    """Facts of a checkout out of a recording."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self._name = name
        self._read = read

    def facts(self, pinned: GitCommit, git: GateGit, known: Sequence[GitCommit]) -> LocalFacts:
        """As they were recorded. Raises UnavailableError RECORDING_INCOMPLETE."""
        import json

        return LocalFacts.model_validate_json(json.dumps(self._read(self._name)))


class Worktree:
    """The checkout at `path`; `keep` takes its facts into a recording."""

    def __init__(
        self, runner: GitRunner, path: Path, name: str, keep: Callable[[str, Any], None] | None = None
    ) -> None:
        self._runner = runner
        self._path = path
        self._name = name
        self._keep = keep

    def facts(self, pinned: GitCommit, git: GateGit, known: Sequence[GitCommit]) -> LocalFacts:
        """What differs from the pinned tree. Raises PersonError USAGE where there is no checkout."""
        mirror = git.path if isinstance(git, GitMirror) else None
        found = self._facts(self._path, pinned, mirror, known, 0)
        if self._keep is not None:
            self._keep(self._name, plain(found))
        return found

    def _facts(
        self, path: Path, pinned: GitCommit, mirror: Path | None, known: Sequence[GitCommit], depth: int
    ) -> LocalFacts:
        place = find_place(path)
        head = read_head(place)
        with self._scratch(place, mirror) as scratch:
            look = _Scratch(self._runner, scratch, place)
            index = look.index()
            dirty = look.dirty(index, head)
            unpushed = look.unpushed(head, pinned, known)
            gitlinks = {path: oid for path, (mode, oid) in index.items() if mode == GITLINK}
        return LocalFacts(
            head=head,
            dirty=tuple((kind, _shown(paths), len(paths)) for kind, paths in dirty if paths),
            unpushed=tuple(unpushed[:MAX_LISTED]),
            unpushed_count=len(unpushed),
            submodules=tuple(self._submodules(place, gitlinks, depth)),
        )

    def _submodules(self, place: Place, links: dict[bytes, str], depth: int) -> Iterable[tuple[str, str]]:
        for path, oid in sorted(links.items()):
            code = self._submodule(place.files / os.fsdecode(path), oid, depth)
            if code:
                yield code, _shown([path])[0]

    def _submodule(self, path: Path, oid: GitCommit, depth: int) -> str:
        if not (path / ".git").exists() or depth >= MAX_DEPTH:
            return "SUBMODULE_MISSING"
        seen = self._facts(path, oid, None, [oid], depth + 1)
        if seen.head != oid:
            return "SUBMODULE_DRIFT"
        return "SUBMODULE_DIRTY" if seen.dirty or seen.submodules else ""

    @contextmanager
    def _scratch(self, place: Place, mirror: Path | None) -> Any:
        with scratch_repository(self._runner, place.common, []) as scratch:
            borrowed = [place.common / "objects", *([mirror / "objects"] if mirror else [])]
            text = "".join(f"{one.resolve()}\n" for one in borrowed)
            (scratch / "objects" / "info" / "alternates").write_text(text)
            for source in [place.own / "index", *place.own.glob("sharedindex.*")]:
                if source.is_file():
                    shutil.copyfile(source, scratch / source.name)
            exclude = place.common / "info" / "exclude"
            if exclude.is_file():
                shutil.copyfile(exclude, scratch / "info" / "exclude")
            yield scratch


class _Scratch:
    """Questions about a checkout, asked of its scratch repository."""

    def __init__(self, runner: GitRunner, repo: Path, place: Place) -> None:
        self._runner = runner
        self._repo = repo
        self._place = place

    def index(self) -> Entries:
        """Every entry of the index; an unmerged path has the mode `unmerged`."""
        found: Entries = {}
        for row in self._git(["ls-files", "-z", "--stage"]):
            head, _, path = row.partition(b"\t")
            mode, oid, stage = head.decode("ascii").split(" ")
            found[path] = (mode if stage == "0" else "unmerged", oid)
        return found

    def dirty(self, index: Entries, head: GitCommit | None) -> list[tuple[str, list[bytes]]]:
        """Paths by kind of `LOCAL_DIRTY`."""
        hidden = self._hidden()
        changed, modes = self._changed(index, hidden)
        untracked = set(self._others(["--exclude-standard"]))
        ignored = set(self._others([])) - untracked
        links = {path for path, (mode, _) in index.items() if mode == GITLINK}
        return [
            ("staged", self._staged(index, head)),
            ("unstaged", changed),
            ("untracked", _without(untracked, links)),
            ("ignored", _without(ignored, links)),
            ("hidden_bit", sorted(hidden)),
            ("replace", replaced(self._place)),
            ("mode", modes),
        ]

    def unpushed(
        self, head: GitCommit | None, pinned: GitCommit, known: Sequence[GitCommit]
    ) -> list[GitCommit]:
        """Commits of the checkout that the forge does not have."""
        if head is None or head == pinned:
            return []
        mirror = GitMirror(self._runner, self._repo, _NoRemote())
        here = set(known) - set(mirror.missing(list(known)))
        asked = "".join([f"{head}\n", *(f"^{one}\n" for one in sorted({*here, pinned}))])
        out = mirror.run(["rev-list", "--stdin"], stdin=asked.encode("ascii")).out
        return out.decode("ascii").split()

    def _staged(self, index: Entries, head: GitCommit | None) -> list[bytes]:
        tree = (
            {one.path: (one.mode, one.oid) for one in tree_entries(self._runner, self._repo, head)}
            if head
            else {}
        )
        return sorted(path for path in {*tree, *index} if tree.get(path) != index.get(path))

    def _changed(self, index: Entries, hidden: set[bytes]) -> tuple[list[bytes], list[bytes]]:
        changed: list[bytes] = []
        modes: list[bytes] = []
        root = os.fsencode(self._place.files)
        for path, (mode, oid) in index.items():
            if mode in {GITLINK, "unmerged"} or path in hidden:
                continue
            lies = _lies(os.path.join(root, path))
            if lies == (mode, oid) or self._is_smudged(os.path.join(root, path), oid):
                continue
            only_mode = lies is not None and lies[1] == oid and lies[0] != "120000" and mode != "120000"
            (modes if only_mode else changed).append(path)
        return sorted(changed), sorted(modes)

    def _is_smudged(self, path: bytes, oid: str) -> bool:
        """Whether the blob is an LFS pointer to exactly this file."""
        ran = self._runner.run(["cat-file", "-s", oid], repo=self._repo)
        if ran.status != 0 or int(ran.out) > 1024 or not os.path.isfile(path):
            return False
        found = _POINTER.match(self._runner.run(["cat-file", "blob", oid], repo=self._repo).out)
        if not found or os.path.getsize(path) != int(found[2]):
            return False
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            for piece in iter(lambda: file.read(CHUNK), b""):
                digest.update(piece)
        return digest.hexdigest().encode("ascii") == found[1]

    def _hidden(self) -> set[bytes]:
        """skip-worktree is `S`, assume-unchanged a small letter (git ls-files -v)."""
        rows = self._git(["ls-files", "-z", "-v"])
        return {row[2:] for row in rows if row[:1] == b"S" or row[:1].islower()}

    def _others(self, options: list[str]) -> list[bytes]:
        env = {"GIT_WORK_TREE": str(self._place.files)}
        argv = ["ls-files", "-z", "--others", "--directory", "--no-empty-directory", *options]
        return self._git(["-c", "core.bare=false", *argv], env)

    def _git(self, argv: list[str], env: dict[str, str] | None = None) -> list[bytes]:
        ran = self._runner.run(argv, repo=self._repo, env=env, folder=self._place.files)
        if ran.status != 0:
            raise objects_missing("the checkout cannot be read", ran.err)
        return [row for row in ran.out.split(b"\0") if row]


class _NoRemote:
    """A checkout's scratch repository asks no server."""

    def refs(self, mirror: Path, patterns: Sequence[str]) -> dict[str, GitCommit]:
        """Nothing."""
        return {}

    def fetch(self, mirror: Path, wants: Any) -> None:
        """Never."""
        raise objects_missing("a checkout is no source of objects")

    def blobs(self, mirror: Path, oids: Sequence[str]) -> None:
        """Never."""
        raise objects_missing("a checkout is no source of objects")


def find_place(path: Path) -> Place:
    """The folders of a checkout; `.git` may be a file. Raises PersonError USAGE."""
    dot = path / ".git"
    own = dot
    if dot.is_file():
        text = dot.read_text(errors="replace").strip()
        own = path / text.removeprefix("gitdir:").strip()
    if not (own / "HEAD").is_file():
        raise PersonError("USAGE", "this is no git checkout", where=str(path), expected="a folder with .git")
    named = own / "commondir"
    common = own / named.read_text(errors="replace").strip() if named.is_file() else own
    return Place(path.resolve(), own.resolve(), common.resolve())


def read_head(place: Place) -> GitCommit | None:
    """The commit of HEAD, followed through one symbolic ref; None where it is unborn."""
    text = (place.own / "HEAD").read_text(errors="replace").strip()
    for _ in range(5):
        if _OID.match(text):
            return text
        name = text.removeprefix("ref:").strip()
        if not _REF.match(name) or ".." in name:
            break
        text = _ref(place, name)
    return None


def _ref(place: Place, name: str) -> str:
    for folder in (place.own, place.common):
        if (folder / name).is_file():
            return (folder / name).read_text(errors="replace").strip()
    rows = (line.split(" ") for line in _packed(place))
    return next((row[0] for row in rows if len(row) == 2 and row[1] == name), "")


def replaced(place: Place) -> list[bytes]:
    """Replace refs and grafts: they change what git shows, not what a commit names (V11)."""
    folder = place.common / "refs" / "replace"
    found = [path.name for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    found += [line.rpartition("/")[2] for line in _packed(place) if " refs/replace/" in line]
    grafts = place.common / "info" / "grafts"
    if grafts.is_file() and grafts.read_bytes().strip():
        found.append("info/grafts")
    return sorted(name.encode() for name in found)


def _packed(place: Place) -> list[str]:
    path = place.common / "packed-refs"
    return path.read_text(errors="replace").splitlines() if path.is_file() else []


def _lies(path: bytes) -> tuple[str, str] | None:
    try:
        return file_id(path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def _without(paths: set[bytes], links: set[bytes]) -> list[bytes]:
    return sorted(path for path in paths if path.rstrip(b"/") not in links)


def _shown(paths: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(path.decode("utf-8", "replace")[:500] for path in paths[:MAX_LISTED])
