"""Sets, patches and merges of one mirror: what the gate asks of git. Implements `ports_gate.GateGit`.

Walks follow all parents, never `--first-parent` (rules/pr-gate.md F11), and never `A...B` (section 5).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tic_manifest.adapters.git import GitMirror, Merge
from tic_manifest.adapters.git_attributes import (
    attribute_blobs,
    attribute_lines,
    lfs_paths,
    scratch_repository,
)
from tic_manifest.adapters.git_blobs import RAW, blobs_of, changes, is_partial
from tic_manifest.adapters.git_objects import BlobReader, blob_reader, objects_missing, tree_entries
from tic_manifest.adapters.git_remote import Remote
from tic_manifest.adapters.git_run import GitRunner
from tic_manifest.model.base import Digest, GitCommit, GitTree
from tic_manifest.ports_gate import Commit

_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{40})")
_POINTER = b"version https://git-lfs.github.com/spec/v1\n"
_FORMAT = "%H%x00%P%x00%an%x00%ae%x00%aI%x00%B%x00"
_NOBODY = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "tic"), ("EMAIL", "tic@localhost"), ("DATE", "@0 +0000"))
}
_DIFF = ["diff-tree", "--stdin", "-r", "--root", "--no-renames", "--no-ext-diff", "--no-textconv"]


class GateMirror(GitMirror):
    """A bare mirror with the gate's questions."""

    def __init__(self, runner: GitRunner, path: Path, remote: Remote) -> None:
        super().__init__(runner, path, remote)
        self._heard: list[str] = []

    def remote_refs(self, patterns: Sequence[str]) -> dict[str, GitCommit]:
        """As `GitMirror`; the answer goes into the digest of answers."""
        found = super().remote_refs(patterns)
        self._heard.append(repr(sorted(found.items())))
        return found

    def answers(self) -> Digest:
        """Digest of the refs that the server named, in the order asked."""
        return "sha256:" + hashlib.sha256("\n".join(self._heard).encode()).hexdigest()

    def parents(self, commit: GitCommit) -> tuple[GitCommit, ...]:
        """Parents of a commit, in order."""
        return self.commits([commit])[0].parents

    def reachable(self, tips: Sequence[GitCommit], exclude: Sequence[GitCommit]) -> tuple[GitCommit, ...]:
        """`rev-list TIPS --not EXCLUDE`, newest first."""
        return tuple(self._rev_list(tips, exclude, "--topo-order").decode("ascii").split())

    def own_of(
        self, heads: Mapping[int, GitCommit], exclude: Sequence[GitCommit]
    ) -> dict[int, frozenset[GitCommit]]:
        """What each head has and no excluded commit has; the small graph is walked once per head."""
        rows = self._rev_list(list(heads.values()), exclude, "--parents").decode("ascii").splitlines()
        graph = {row.split()[0]: row.split()[1:] for row in rows}
        return {number: _closure(graph, oid) for number, oid in heads.items()}

    def commits(self, oids: Sequence[GitCommit], *, patches: bool = False) -> tuple[Commit, ...]:
        """Headers in the order asked for."""
        if not oids:
            return ()
        argv = ["log", "--no-walk=unsorted", "--no-show-signature", f"--format={_FORMAT}", "--stdin"]
        raw = self.run(argv, stdin=_lines(oids)).out.decode("utf-8", "replace")
        fields = raw.split("\0")[:-1]
        ids = self._patch_ids(oids) if patches else {}
        rows = [fields[at : at + 6] for at in range(0, len(fields), 6)]
        found = {row[0].strip(): _commit(row, ids) for row in rows}
        if not set(oids) <= set(found):
            raise objects_missing("git did not show every commit")
        return tuple(found[oid] for oid in oids)

    def path_sets(self, oids: Sequence[GitCommit]) -> dict[GitCommit, frozenset[str]]:
        """Paths that each commit changes; merges have none."""
        if not oids:
            return {}
        raw = self.run([*_DIFF, "-z", "--name-only"], stdin=_lines(oids)).out
        found: dict[GitCommit, set[str]] = {}
        wanted, current = set(oids), ""
        for word in raw.decode("utf-8", "surrogateescape").split("\0"):
            if word.strip() in wanted:
                current = word.strip()
                found[current] = set()
            elif word and current:
                found[current].add(word)
        return {oid: frozenset(paths) for oid, paths in found.items()}

    def net_patch(self, base: GitCommit, head: GitCommit) -> str:
        """The stable patch id of `base..head` as one difference."""
        tree = ["diff-tree", "-r", "-p", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv"]
        self.need(blobs_of(self.differences(base, head)))
        ran = self.runner.pipe([*tree, base, head], ["patch-id", "--stable"], repo=self.path, stdin=b"")
        if ran.status != 0:
            raise objects_missing("git could not compare two commits", ran.err)
        return ran.out.decode("ascii").partition(" ")[0]

    def range_diff(
        self, old: tuple[GitCommit, GitCommit], new: tuple[GitCommit, GitCommit]
    ) -> tuple[str, ...]:
        """Which commit became which: `=` equal, `!` changed, `<` gone, `>` new (git range-diff)."""
        for fork, tip in (old, new):
            self._need_patches(self.reachable([tip], [fork]))
        argv = ["-c", "core.abbrev=40", "range-diff", "--no-color", "--no-patch"]
        out = self.run([*argv, f"{old[0]}..{old[1]}", f"{new[0]}..{new[1]}"]).out
        return tuple(out.decode("utf-8", "replace").splitlines())

    def merge_driven(self, base: GitCommit, head: GitCommit) -> tuple[str, ...] | None:
        """Merge again with the built-in drivers that the base's `.gitattributes` ask for."""
        lines = self._attributes(base, ("merge", "binary", "[attr]"))
        if not lines:
            return None
        self.need_merge(base, head)
        with scratch_repository(self.runner, self.path, lines) as scratch:
            return GitMirror(self.runner, scratch, self.remote).merge(base, head).conflicts

    def replay(self, base: GitCommit, oids: Sequence[GitCommit]) -> Merge:
        """Cherry-pick by merge-tree: a stand-in commit has the tree so far and the picked commit's parent."""
        merged = Merge(self.tree_of(base), ())
        for oid in oids:
            parents = self.parents(oid)
            if len(parents) == 1 and not merged.conflicts:
                merged = self.merge(self.stand_in(merged.tree, parents[0]), oid)
        return merged

    def rebased(self, onto: GitCommit, oids: Sequence[GitCommit]) -> GitCommit:
        """As `replay`, with commits of the same author, date and message: what a rebase would push."""
        tip, tree = onto, self.tree_of(onto)
        for one in self.commits(oids):
            merged = self.merge(self.stand_in(tree, one.parents[0]), one.oid)
            if merged.tree != tree:
                tip, tree = self._written(merged.tree, tip, one), merged.tree
        return tip

    def stand_in(self, tree: GitTree, parent: GitCommit) -> GitCommit:
        """A commit with a tree and a parent and nothing of the machine."""
        return self._commit(tree, parent, b"stand-in\n", _NOBODY)

    def _written(self, tree: GitTree, parent: GitCommit, like: Commit) -> GitCommit:
        author = {"NAME": like.author, "EMAIL": like.email, "DATE": like.date}
        who = _NOBODY | {f"GIT_AUTHOR_{key}": value for key, value in author.items() if value}
        return self._commit(tree, parent, like.message.encode(), who)

    def _commit(self, tree: GitTree, parent: GitCommit, message: bytes, who: Mapping[str, str]) -> GitCommit:
        argv = ["commit-tree", "-p", parent, "-F", "-", tree]
        ran = self.runner.run(argv, repo=self.path, stdin=message, env=who)
        if ran.status != 0:
            raise objects_missing("git could not write a commit", ran.err)
        return ran.out.decode("ascii").strip()

    def reverts(self, tip: GitCommit, head: GitCommit) -> tuple[GitCommit, ...]:
        """Commits of the last thousand reverts below `tip` that revert `head` or a merge of it."""
        argv = ["log", "-z", "--max-count=1000", "--fixed-strings", "--grep=This reverts commit"]
        rows = self.run([*argv, "--format=%H %B", tip]).out.decode("utf-8", "replace").split("\0")
        pairs = [(row[:40], oid) for row in rows if row for oid in _REVERTS.findall(row)]
        present = {oid for _, oid in pairs} - set(self.missing([oid for _, oid in pairs]))
        merges = {one.oid for one in self.commits(sorted(present)) if head in one.parents[1:]}
        return tuple(sorted({by for by, oid in pairs if oid == head or oid in merges}))

    def tree_changes(self, left: GitTree, right: GitTree) -> tuple[str, ...]:
        """Paths that differ between two trees, sorted."""
        return self.changed_paths(left, right)

    def lfs_malformed(self, commit: GitCommit) -> tuple[str, ...]:
        """Paths given to LFS whose blob is no pointer file (git-lfs specification)."""
        lines = self._attributes(commit, ("filter=lfs", "[attr]"))
        if not any("filter=lfs" in line for line in lines):
            return ()
        entries = {
            one.path: one for one in tree_entries(self.runner, self.path, commit) if one.kind == "blob"
        }
        paths = lfs_paths(self.runner, self.path, lines, list(entries))
        self.need(entries[path].oid for path in paths)
        with blob_reader(self.runner, self.path) as blobs:
            bad = [path for path in paths if not _is_pointer(blobs, entries[path].oid)]
        return tuple(sorted(path.decode("utf-8", "surrogateescape") for path in bad))

    def keep_pin(self, repo_id: int, number: int, commit: GitCommit, base: GitCommit) -> None:
        """A ref of our own and the files, so that the pin outlives a force-push (rules/pr-gate.md F20)."""
        self.run(["update-ref", f"refs/tic/pins/{repo_id:d}/{number:d}/{commit}", commit])
        if is_partial(self.path):
            asked = ["rev-list", "--objects", "--no-object-names", "--missing=print", commit, f"^{base}"]
            rows = self.run(asked).out.decode("ascii").split()
            self.need(row[1:] for row in rows if row.startswith("?"))

    def was_pinned(self, repo_id: int, number: int, commit: GitCommit) -> bool:
        """Whether such a ref is here."""
        ref = f"refs/tic/pins/{repo_id:d}/{number:d}/{commit}"
        return self.run(["show-ref", "--verify", "--quiet", ref], answers=(0, 1)).status == 0

    def _attributes(self, commit: GitCommit, words: Sequence[str]) -> list[str]:
        self.need(attribute_blobs(self.runner, self.path, commit))
        return attribute_lines(self.runner, self.path, commit, words)

    def _need_patches(self, oids: Sequence[GitCommit]) -> None:
        """Make present what the patches of commits read."""
        if oids and is_partial(self.path):
            raw = self.run([*_DIFF, *RAW, "--no-commit-id"], stdin=_lines(oids)).out
            self.need(blobs_of(changes(raw)))

    def _patch_ids(self, oids: Sequence[GitCommit]) -> dict[GitCommit, str]:
        self._need_patches(oids)
        first = [*_DIFF, "-p", "--full-index"]
        ran = self.runner.pipe(first, ["patch-id", "--stable"], repo=self.path, stdin=_lines(oids))
        if ran.status != 0:
            raise objects_missing("git could not compute patches", ran.err)
        rows = (row.split() for row in ran.out.decode("ascii").splitlines())
        return {row[1]: row[0] for row in rows if len(row) == 2}

    def _rev_list(self, tips: Sequence[GitCommit], exclude: Sequence[GitCommit], *options: str) -> bytes:
        if not tips:
            return b""
        asked = _lines(tips) + b"".join(b"^" + one.encode("ascii") + b"\n" for one in exclude)
        return self.run(["rev-list", *options, "--stdin"], stdin=asked).out


def _closure(graph: Mapping[str, Sequence[str]], tip: str) -> frozenset[str]:
    seen: set[str] = set()
    stack = [tip]
    while stack:
        oid = stack.pop()
        if oid in graph and oid not in seen:
            seen.add(oid)
            stack.extend(graph[oid])
    return frozenset(seen)


def _commit(row: Sequence[str], patches: Mapping[str, str]) -> Commit:
    oid, parents, author, email, date, message = row
    oid = oid.strip()
    return Commit(oid, tuple(parents.split()), author, email, date, message.strip(), patches.get(oid, ""))


def _lines(oids: Sequence[str]) -> bytes:
    return "".join(f"{oid}\n" for oid in oids).encode("ascii")


def _is_pointer(blobs: BlobReader, oid: str) -> bool:
    head = b"".join(blobs.chunks(oid))[:1024]
    return head.startswith(_POINTER)
