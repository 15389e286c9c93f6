"""Write a bare repository whose commit ids are the same everywhere, through `git fast-import`.

Trees come from memory, so file system, umask, attributes and the user's git configuration have no part in
them; names, addresses and dates are fixed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from catalogue import Demo
from edits import Tree

UPSTREAM = "Demo Upstream <upstream@forge.invalid>"
AUTHOR = "Demo Author <author@forge.invalid>"
EPOCH = 1788220800  # 2026-09-01T00:00:00Z, the date of every base commit
HOUR = 3600
STAMP, PULLS = "demo-stamp.json", "demo-pulls.json"

ISOLATED = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "TZ": "UTC",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


def git(repository: Path, *args: str, data: bytes | None = None) -> str:
    """Run git on a bare repository, isolated from every configuration; returns its output, stripped."""
    command = ["git", f"--git-dir={repository}", *args]
    done = subprocess.run(command, input=data, capture_output=True, env=ISOLATED, check=True)
    return done.stdout.decode().strip()


class Stream:
    """A fast-import stream: blobs once each, commits on top of one another."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.blobs: dict[bytes, int] = {}
        self.marks = 0

    def _mark(self) -> int:
        self.marks += 1
        return self.marks

    def blob(self, data: bytes) -> int:
        """Mark of a blob."""
        if data not in self.blobs:
            self.blobs[data] = mark = self._mark()
            self.parts += [b"blob\nmark :%d\ndata %d\n" % (mark, len(data)), data, b"\n"]
        return self.blobs[data]

    def commit(
        self, *, ref: str, who: str, when: int, message: str, parents: list[int], before: Tree, after: Tree
    ) -> int:
        """A commit on `ref` that turns `before`, the first parent's tree, into `after`; returns its mark."""
        lines = list(self._changes(before, after))
        mark, text = self._mark(), message.encode()
        stamp = f"{who} {when} +0000".encode()
        self.parts.append(
            b"commit %s\nmark :%d\nauthor %s\ncommitter %s\n" % (ref.encode(), mark, stamp, stamp)
        )
        self.parts.append(b"data %d\n%s\n" % (len(text), text))
        for word, parent in zip(("from", "merge"), parents, strict=False):
            self.parts.append(b"%s :%d\n" % (word.encode(), parent))
        self.parts += [*lines, b"\n"]
        return mark

    def _changes(self, before: Tree, after: Tree) -> Iterator[bytes]:
        for path in sorted(before.keys() - after.keys()):
            yield b"D %s\n" % quoted(path)
        for path, entry in sorted(after.items()):
            if before.get(path) != entry:
                yield b"M %s :%d %s\n" % (entry.mode.encode(), self.blob(entry.data), quoted(path))


def quoted(path: str) -> bytes:
    """A path as fast-import reads it: in quotes, so that spaces and the like are safe."""
    text = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return b'"' + text.encode() + b'"'


def stream(demo: Demo, base: Tree, trees: list[Tree]) -> bytes:
    """Trunk with the base commit, the commits on refs/pull/N/head, their branch and the test merge."""
    trunk, number = demo.repository["trunk"], demo.pull_request["number"]
    out, before = Stream(), base
    root = out.commit(
        ref=f"refs/heads/{trunk}", who=UPSTREAM, when=EPOCH, message=demo.repository["message"],
        parents=[], before={}, after=base,
    )  # fmt: skip
    head, when = root, EPOCH
    for change, tree in zip(demo.commits, trees, strict=True):
        when += HOUR
        head = out.commit(
            ref=f"refs/pull/{number}/head", who=AUTHOR, when=when, message=change.message,
            parents=[head], before=before, after=tree,
        )  # fmt: skip
        before = tree
    message = f"Merge pull request #{number} into {trunk}\n"
    out.commit(
        ref=f"refs/pull/{number}/merge", who=UPSTREAM, when=when + HOUR, message=message,
        parents=[root, head], before=base, after=before,
    )  # fmt: skip
    branch = demo.pull_request["branch"]
    out.parts.append(b"reset refs/heads/%s\nfrom :%d\n\n" % (branch.encode(), head))
    return b"".join(out.parts)


def build(demo: Demo, root: Path, cache: Path, heads: dict[str, str]) -> str:
    """Make the repository below `root` unless it is there and unchanged; returns the pull request's head."""
    place, wanted = root / demo.path, demo.inputs_digest(heads)
    number = demo.pull_request["number"]
    if not _current(place, wanted):
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=".making-") as work:
            made = Path(work) / "repository.git"
            _write(demo, made, cache, heads, wanted)
            shutil.rmtree(place, ignore_errors=True)
            made.rename(place)
    return git(place, "rev-parse", "--verify", "--end-of-options", f"refs/pull/{number}/head")


def _current(place: Path, wanted: str) -> bool:
    try:
        stamp = json.loads((place / STAMP).read_text())
    except (OSError, ValueError):
        return False
    return bool(stamp.get("inputs") == wanted)


def _write(demo: Demo, made: Path, cache: Path, heads: dict[str, str], inputs: str) -> None:
    base = demo.base_tree(cache)
    trees = demo.trees(base, heads)
    command = [
        "git",
        "init",
        "--quiet",
        "--bare",
        "--template=",
        f"--initial-branch={demo.repository['trunk']}",
    ]
    subprocess.run([*command, "--", str(made)], env=ISOLATED, check=True)
    git(made, "fast-import", "--quiet", "--date-format=raw", data=stream(demo, base, trees))
    for name in ("uploadpack.allowFilter", "uploadpack.allowReachableSHA1InWant"):
        git(made, "config", name, "true")
    (made / PULLS).write_text(json.dumps({"repository": demo.repository, "pulls": [demo.pull_request]}))
    (made / STAMP).write_text(json.dumps({"inputs": inputs}))


def ids(demo: Demo, root: Path) -> dict[str, str]:
    """Base and head commit of the pull request, 40 hex digits each."""
    place, trunk = root / demo.path, demo.repository["trunk"]
    refs = {"base": f"refs/heads/{trunk}", "head": f"refs/pull/{demo.pull_request['number']}/head"}
    return {k: git(place, "rev-parse", "--verify", "--end-of-options", ref) for k, ref in refs.items()}
