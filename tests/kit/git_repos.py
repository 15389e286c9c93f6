"""Small real repositories for tests, free of any user's configuration, with fixed identities and dates."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tic_manifest.adapters.git_gate import GateMirror
from tic_manifest.adapters.git_remote import HttpRemote
from tic_manifest.adapters.git_run import GitRunner


def git(where: Path, *argv: str, stdin: bytes = b"", date: int = 1_700_000_000) -> str:
    """Run git in a folder; its output without the last newline."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    who = {"NAME": "A", "EMAIL": "a@example.com", "DATE": f"{date} +0000"}
    more = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
    env = kept | more | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    done = subprocess.run(["git", *argv], cwd=where, input=stdin, env=env, capture_output=True, check=True)
    return done.stdout.decode().rstrip("\n")


def checkout(root: Path) -> Path:
    """An empty repository with files, on branch main."""
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    return root


def commit(
    root: Path, files: dict[str, str | None], message: str = "change", date: int = 1_700_000_000
) -> str:
    """Write files (None deletes), commit everything; the commit's id."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink() if text is None else path.write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message, date=date)
    return git(root, "rev-parse", "HEAD")


def runner(**more: str) -> GitRunner:
    """Git as the product runs it, with local files allowed as remotes."""
    return GitRunner({**os.environ, **more}, protocols=("file",))


def mirror(tmp: Path, source: Path) -> GateMirror:
    """A mirror of a repository on this disk."""
    one = runner()
    return GateMirror(
        one, tmp / "mirror.git", HttpRemote(one, f"file://{source}", "https://forge.invalid/o/r.git")
    )
