"""A bare mirror of one repository: objects are fetched once, read without any user configuration.

Commits and trees are whole; blobs may be elsewhere (`git_blobs`), and a question that reads some fetches them
all before it is asked. No git process that answers a question knows of a server, so none fetches by itself.

Implements `ports.SourceGit`. Nothing of the mirror is ever checked out. Source: rules/pr-gate.md section 5.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tic_manifest.adapters import git_blobs
from tic_manifest.adapters.git_blobs import Change, blobs_of, blobs_of_merge
from tic_manifest.adapters.git_export import export_tree
from tic_manifest.adapters.git_objects import GITLINK, objects_missing, tree_entries
from tic_manifest.adapters.git_remote import Remote
from tic_manifest.adapters.git_run import GitRunner, Ran
from tic_manifest.errors import RefusedError, UnavailableError
from tic_manifest.formats.tree_listing import listing_bytes
from tic_manifest.model.base import GitCommit, GitTree
from tic_manifest.model.lock import Submodule

LASTING = {"diff-tree", "merge-base", "rev-list"}
"""Commands whose answer follows from the objects that it names, so that it is asked for once."""

KEPT_BYTES = 1 << 16

_OID = re.compile(r"^[0-9a-f]{40}$")
_NAME = re.compile(r"^[a-z0-9][a-z0-9_.-]{0,127}$")


@dataclass(frozen=True)
class Merge:
    """A merge without drivers: the tree written, and the paths that conflict (none: clean)."""

    tree: GitTree
    conflicts: tuple[str, ...]


class GitMirror:
    """The bare mirror at `path` of the repository that `remote` serves."""

    def __init__(self, runner: GitRunner, path: Path, remote: Remote) -> None:
        self.runner = runner
        self.path = path
        self.remote = remote
        self._here: set[GitCommit] = set()
        self._asked: dict[tuple[tuple[str, ...], bytes | None], Ran] = {}
        self._blobs: set[str] = set()
        self._refused: dict[str, UnavailableError] = {}

    # what the server says

    def fetch(self, commits: Sequence[GitCommit], refs: Sequence[str] = ()) -> None:
        """Make commits and refs present; a commit that is here already is not asked for.

        Raises RefusedError PIN_UNFETCHABLE for an object that the server has not, else UnavailableError.
        """
        wants = {one: f"refs/tic/objects/{one}" for one in self.missing(commits)}
        wants |= {ref: f"refs/tic/remote/{ref}" for ref in refs}
        if wants:
            self._ready()
            self._fetch(wants)
        for one in self.missing(commits):
            raise RefusedError("PIN_UNFETCHABLE", f"{one} is no commit", actual=self._kind(one) or "nothing")

    def _fetch(self, wants: dict[str, str]) -> None:
        try:
            self.remote.fetch(self.path, wants)
        except UnavailableError as error:
            if error.code == "SHALLOW":
                # commits without their parents came in; the next run must not take them for history
                shutil.rmtree(self.path, ignore_errors=True)
                self._here.clear()
                self._asked.clear()
            raise

    def remote_refs(self, patterns: Sequence[str]) -> dict[str, GitCommit]:
        """What the server's refs name now. Raises UnavailableError."""
        self._ready()
        return self.remote.refs(self.path, patterns)

    # what the objects say

    def has_commit(self, commit: GitCommit) -> bool:
        """Whether the commit is present (its tree and blobs may still be elsewhere in a partial clone)."""
        return not self.missing([commit])

    def missing(self, commits: Sequence[GitCommit]) -> list[GitCommit]:
        """Those commits that are not here, each once, in order; one process for all."""
        wanted = [one for one in dict.fromkeys(_oid(one) for one in commits) if one not in self._here]
        if not wanted:
            return []
        absent = self._without(wanted, b"commit")
        self._here |= set(wanted) - set(absent)
        return absent

    def need(self, blobs: Iterable[str]) -> None:
        """Make blobs present, all in one fetch, in a mirror that a server left blobs out of.

        Raises UnavailableError OBJECTS_MISSING. What was refused once is not asked for again in this run, so
        that a recording, which has no later moment, answers the same.
        """
        wanted = [one for one in dict.fromkeys(blobs) if one not in self._blobs]
        if not wanted or not git_blobs.is_partial(self.path):
            return
        absent = self._without(wanted, b"blob")
        for one in absent:
            if one in self._refused:
                raise self._refused[one]
        if absent:
            self._fetch_blobs(absent)
        self._blobs |= set(wanted)

    def _fetch_blobs(self, absent: list[str]) -> None:
        try:
            self.remote.blobs(self.path, absent)
            still = self._without(absent, b"blob")
            if still:
                raise objects_missing(f"the server left out {len(still)} files", still[0])
        except UnavailableError as error:
            self._refused |= dict.fromkeys(absent, error)
            raise

    def _without(self, oids: Sequence[str], kind: bytes) -> list[str]:
        """Those that are not here as objects of that kind; one process for all."""
        asked = "".join(f"{one}\n" for one in oids).encode("ascii")
        rows = self.run(["cat-file", "--batch-check=%(objecttype)"], stdin=asked).out.splitlines()
        if len(rows) != len(oids):
            raise objects_missing("git did not say which objects are here")
        return [one for one, row in zip(oids, rows, strict=True) if row != kind]

    def tree_of(self, commit: GitCommit) -> GitTree:
        """The tree of a commit. Raises UnavailableError OBJECTS_MISSING."""
        return self.text(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{_oid(commit)}^{{tree}}"])

    def merge_bases(self, left: GitCommit, right: GitCommit) -> tuple[GitCommit, ...]:
        """Every best common ancestor, sorted; two or more in criss-cross histories, none if unrelated."""
        ran = self.run(["merge-base", "--all", _oid(left), _oid(right)], answers=(0, 1))
        if ran.status == 1:
            self._walk_whole([left, right])
        return tuple(sorted(ran.out.decode("ascii").split()))

    def merge_base(self, left: GitCommit, right: GitCommit) -> GitCommit | None:
        """The first of `merge_bases`; None where histories are unrelated."""
        found = self.merge_bases(left, right)
        return found[0] if found else None

    def is_ancestor(self, ancestor: GitCommit, descendant: GitCommit) -> bool:
        """Reachability; status 128 is a missing object, not a "no"."""
        argv = ["merge-base", "--is-ancestor", _oid(ancestor), _oid(descendant)]
        if self.run(argv, answers=(0, 1)).status == 0:
            return True
        self._walk_whole([descendant, f"^{ancestor}"])
        return False

    def merge(self, base: GitCommit, head: GitCommit) -> Merge:
        """Merge in memory, driver-free. Raises UnavailableError OBJECTS_MISSING when git could not tell."""
        for one in (base, head):
            if not self.has_commit(one):
                raise objects_missing(f"commit {one} is missing")
        self.need_merge(base, head)
        argv = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", _oid(base), _oid(head)]
        ran = self.run(argv, answers=(0, 1))
        tree, *paths = ran.out.split(b"\0")
        if not re.fullmatch(rb"[0-9a-f]{40}", tree):
            raise objects_missing("git gave no merged tree", ran.err)
        # conflicted paths stand up to the first empty field
        names = paths[: paths.index(b"")] if b"" in paths else paths
        conflicts = tuple(sorted({name.decode("utf-8", "surrogateescape") for name in names}))
        if (ran.status == 1) != bool(conflicts):
            raise objects_missing("git's answer contradicts itself", ran.err)
        return Merge(tree.decode("ascii"), conflicts)

    def need_merge(self, base: GitCommit, head: GitCommit) -> None:
        """Make present what a merge of two commits reads."""
        if not git_blobs.is_partial(self.path):
            return
        bases = self.merge_bases(base, head)
        if len(bases) == 1:
            self.need(blobs_of_merge(self.differences(bases[0], base), self.differences(bases[0], head)))
            return
        # git merges the bases first, and bases of bases: everything that differs between any of them
        tips = [base, head, *self._all_bases(bases)]
        self.need(blobs_of(row for other in tips[1:] for row in self.differences(tips[0], other)))

    def _all_bases(self, bases: Sequence[GitCommit]) -> list[GitCommit]:
        found, waiting = dict.fromkeys(bases), list(bases)
        while waiting:
            one = waiting.pop()
            new = [oid for other in found for oid in self.merge_bases(one, other) if oid not in found]
            found |= dict.fromkeys(new)
            waiting += new
        return list(found)

    def differences(self, left: str, right: str) -> list[Change]:
        """Paths that differ between two commits or trees, with their blobs."""
        return git_blobs.changes(self.run(["diff-tree", *git_blobs.RAW, left, right]).out)

    def merge_tree(self, base: GitCommit, head: GitCommit) -> GitTree | None:
        """The tree of the merge; None where it conflicts or histories are unrelated."""
        if not self.merge_bases(base, head):
            return None
        merged = self.merge(base, head)
        return None if merged.conflicts else merged.tree

    def submodules(self, commit: GitCommit) -> tuple[Submodule, ...]:
        """Gitlinks of the tree with the URLs that `.gitmodules` of the same tree names ("" where none)."""
        entries = tree_entries(self.runner, self.path, _oid(commit))
        links = [one for one in entries if one.mode == GITLINK]
        modules = [one for one in entries if one.path == b".gitmodules" and one.kind == "blob"]
        if links and modules:
            self.need([modules[0].oid])
        urls = self._module_urls(modules[0].oid) if links and modules else {}
        found = ((one.path.decode("utf-8", "surrogateescape"), one.oid) for one in links)
        return tuple(Submodule(path=path, url=urls.get(path, ""), commit=oid) for path, oid in sorted(found))

    def changed_paths(self, base: GitCommit, head: GitCommit) -> tuple[str, ...]:
        """Paths whose mode or content differs between the trees of two commits, sorted."""
        argv = [
            "diff-tree",
            "-r",
            "-z",
            "--name-only",
            "--no-renames",
            "--no-ext-diff",
            _oid(base),
            _oid(head),
        ]
        names = self.run(argv).out.split(b"\0")
        return tuple(sorted(one.decode("utf-8", "surrogateescape") for one in names if one))

    def listing(self, commit: GitCommit) -> bytes:
        """The packed listing of a commit's tree. Raises UnavailableError OBJECTS_MISSING."""
        if self.missing([commit]):
            raise objects_missing(f"commit {commit} is missing")
        raw = self.run(["cat-file", "commit", _oid(commit)]).out
        entries = tree_entries(self.runner, self.path, _oid(commit))
        return listing_bytes(raw, ((one.mode, one.oid, one.path) for one in entries))

    def keep_files(self, commit: GitCommit) -> None:
        """Make every file of the tree present, in one fetch. Raises UnavailableError OBJECTS_MISSING."""
        self.need(one.oid for one in tree_entries(self.runner, self.path, _oid(commit)) if one.kind == "blob")

    def export(self, commit: GitCommit, target: Path) -> GitTree:
        """Write the tree below `target`. Raises RefusedError TREE_MISMATCH when another tree came out."""
        expected = self.tree_of(commit)
        self.keep_files(commit)
        actual = export_tree(self.runner, self.path, _oid(commit), target)
        if actual != expected:
            raise RefusedError(
                "TREE_MISMATCH", "the exported files are not the tree", expected=expected, actual=actual
            )
        return actual

    # how git is asked

    def run(self, argv: Sequence[str], *, stdin: bytes | None = None, answers: Sequence[int] = (0,)) -> Ran:
        """Run git; a status that is no answer raises UnavailableError OBJECTS_MISSING."""
        self._ready()
        key = (tuple(argv), stdin)
        ran = self._asked.get(key) or self.runner.run(argv, repo=self.path, stdin=stdin)
        if ran.status not in answers:
            raise objects_missing(f"git {argv[0]} could not tell (status {ran.status})", ran.err)
        if argv[0] in LASTING and len(ran.out) <= KEPT_BYTES:
            self._asked[key] = ran
        return ran

    def text(self, argv: Sequence[str]) -> str:
        """The one line that git prints."""
        return self.run(argv).out.decode("utf-8", "surrogateescape").strip()

    def _walk_whole(self, revisions: Sequence[str]) -> None:
        """Prove that a "no" is one: git 2.39 also answers 1 where a parent is missing."""
        self.run(["rev-list", "--count", *revisions])

    def _kind(self, oid: str) -> str:
        ran = self.runner.run(["cat-file", "-t", _oid(oid)], repo=self.path)
        return ran.out.decode("ascii", "replace").strip() if ran.status == 0 else ""

    def _module_urls(self, blob: str) -> dict[str, str]:
        argv = ["config", "-z", "--no-includes", "--blob", blob, "--list"]
        ran = self.runner.run(argv, repo=self.path)
        pairs = (row.partition("\n") for row in ran.out.decode("utf-8", "surrogateescape").split("\0") if row)
        values = {key: value for key, _, value in pairs}
        paths = {key[: -len(".path")]: value for key, value in values.items() if key.endswith(".path")}
        return {path: values.get(f"{section}.url", "") for section, path in paths.items()}

    def _ready(self) -> None:
        if not self.path.is_dir():
            _init(self.runner, self.path)


class GitStore:
    """The mirrors below `root/git`, one per name; `remote` gives the server of a URL of the recipe."""

    def __init__(self, root: Path, runner: GitRunner, remote: Callable[[str], Remote]) -> None:
        self._root = root / "git"
        self._runner = runner
        self._remote = remote

    def mirror(self, name: str, url: str) -> GitMirror:
        """The mirror called `name` of the repository at `url`, a URL of the recipe."""
        if not _NAME.match(name):
            raise ValueError(name)
        return GitMirror(self._runner, self._root / f"{name}.git", self._remote(url))


def _oid(commit: str) -> str:
    """The id itself, checked: nothing that could be an option or a revision expression reaches git."""
    if not _OID.match(commit):
        raise ValueError(commit)
    return commit


def _init(runner: GitRunner, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".init-", dir=path.parent))
    try:
        argv = ["init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--end-of-options"]
        ran = runner.run([*argv, str(scratch)], repo=scratch)
        if ran.status != 0:
            raise UnavailableError(
                "RIGHTS", "a bare repository cannot be made", actual=ran.err, where=str(path)
            )
        scratch.rename(path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
