"""Reading bare repositories with git, free of any user's configuration."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

HEX = re.compile(r"^[0-9a-f]{40}$")


def isolated() -> dict[str, str]:
    """An environment for git: no configuration of a user or a system, no replaced objects, no prompt."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return kept | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }


class Bare:
    """A bare repository, read only. Its refs are read once: make a new value for every request."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._refs: dict[str, str] | None = None

    def git(self, *argv: str) -> tuple[int, str]:
        """Exit status and standard output of a git command."""
        done = subprocess.run(
            ["git", "--git-dir", str(self.path), *argv], env=isolated(), capture_output=True, check=False
        )
        return done.returncode, done.stdout.decode(errors="replace")

    def commit(self, revision: str) -> str | None:
        """The commit that a revision names, or None."""
        status, out = self.git("rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")
        return out.strip() if status == 0 else None

    def default_branch(self) -> str:
        """The branch that HEAD names; where it names none that is there, the most likely one that is."""
        named = (self.path / "HEAD").read_text().strip().removeprefix("ref: refs/heads/")
        there = [ref.removeprefix("refs/heads/") for ref in self.refs("refs/heads")]
        return next((one for one in (named, "main", "master", *there) if one in there), named)

    def refs(self, prefix: str) -> dict[str, str]:
        """Full ref names at or below a prefix, each with its object, in order of name; read once."""
        if self._refs is None:
            out = self.git("for-each-ref", "--format=%(refname) %(objectname)")[1]
            self._refs = dict(line.split(" ") for line in out.splitlines())
        below = prefix.rstrip("/") + "/"
        return {ref: sha for ref, sha in self._refs.items() if ref == prefix or ref.startswith(below)}

    def merges(self, base: str, head: str) -> bool | None:
        """Whether the two commits merge without conflict; None where git cannot say."""
        status, _ = self.git("merge-tree", "--write-tree", "--no-messages", base, head)
        return {0: True, 1: False}.get(status)

    def count(self, *argv: str) -> int:
        """How many commits a range holds."""
        return int(self.git("rev-list", "--count", *argv)[1].strip() or 0)

    def range(self, *argv: str) -> list[str]:
        """Commits of a range, oldest first."""
        return self.git("rev-list", "--reverse", *argv)[1].split()

    def raw(self, commit: str) -> dict[str, list[str]]:
        """The header fields and the message of a commit: tree, parent, author, committer, message."""
        head, _, message = self.git("cat-file", "commit", commit)[1].partition("\n\n")
        fields: dict[str, list[str]] = {"parent": [], "message": [message.rstrip("\n")]}
        for line in head.splitlines():
            key, _, value = line.partition(" ")
            fields.setdefault(key, []).append(value)
        return fields

    def changes(self, base: str, head: str) -> list[tuple[str, int, int]]:
        """Path, lines added and lines deleted between the merge base and the head."""
        rows = self.git("diff", "--numstat", "--no-renames", f"{base}...{head}")[1].splitlines()
        cells = [row.split("\t", 2) for row in rows]
        return [(path, _number(added), _number(gone)) for added, gone, path in cells]


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
