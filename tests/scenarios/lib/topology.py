"""Helpers for `make` of scenarios: bare repositories with real git, pull requests, a recipe. Standard library only.

Everything is deterministic: identities and dates come from a counter, so the same steps give the same commits.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

START = 1767225600  # 2026-01-01T00:00:00Z
MINUTE = 60
Files = Mapping[str, str | bytes | None]
"""Path to content; None deletes; a value `160000 <sha>` is a gitlink; a leading `100755 ` makes it executable."""


def _env() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return kept | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


def git(where: Path, *argv: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run git in a folder; its output without the last newline. Raises CalledProcessError."""
    done = subprocess.run(
        ["git", *argv], cwd=where, input=stdin, capture_output=True, check=False, env=_env() | dict(env or {})
    )
    if done.returncode:
        raise RuntimeError(f"git {' '.join(argv)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode(errors="replace").rstrip("\n")


def delete(repo: Path, oid: str) -> None:
    """Delete one object of a bare repository, out of a pack too."""
    for pack in sorted((repo / "objects" / "pack").glob("*.pack")):
        pack.rename(repo / pack.name)
        git(repo, "unpack-objects", "-q", stdin=(repo / pack.name).read_bytes())
        (repo / pack.name).unlink()
        for rest in (repo / "objects" / "pack").glob(f"{pack.stem}.*"):
            rest.unlink()
    (repo / "objects" / oid[:2] / oid[2:]).unlink()


@dataclass
class Made:
    """What a commit was made of, so that it can be made again elsewhere."""

    files: Files
    message: str
    author: str
    date: int


@dataclass
class Repo:
    """A bare repository that the local forge serves as `full_name`."""

    world: Topology
    full_name: str
    path: Path
    facts: dict[str, Any] = field(default_factory=dict)
    made: dict[str, Made] = field(default_factory=dict)

    def git(self, *argv: str, stdin: bytes | None = None) -> str:
        """Run git in the repository."""
        return git(self.path, *argv, stdin=stdin)

    def tip(self, revision: str) -> str:
        """The commit that a revision names."""
        return self.git("rev-parse", "--verify", f"{revision}^{{commit}}")

    def commit(
        self,
        branch: str,
        files: Files | None = None,
        *,
        on: str | None = None,
        merge: Iterable[str] = (),
        message: str = "",
        author: str = "Author",
        date: int | None = None,
        root: bool = False,
    ) -> str:
        """One commit at the tip of a branch. A new branch starts `on` a revision (main); `root` has no parent."""
        self.world.clock += MINUTE
        made = Made(
            files or {}, message or f"{branch}: change {len(self.made)}", author, date or self.world.clock
        )
        ref = branch if branch.startswith("refs/") else f"refs/heads/{branch}"
        parent = None if root else self.tip(on or (ref if self.has(ref) else "main"))
        data = _import(ref, made, self.world.clock, parent, [self.tip(one) for one in merge])
        self.git("fast-import", "--quiet", "--force", stdin=data)
        sha = self.tip(ref)
        self.made[sha] = made
        return sha

    def series(self, branch: str, count: int, *, on: str = "main") -> list[str]:
        """Many commits in one go, each with a file of its own."""
        parts, parent = [], self.tip(on)
        for number in range(count):
            self.world.clock += MINUTE
            made = Made(
                {f"series/{branch}-{number}.txt": f"{number}\n"},
                f"{branch}: {number}",
                "Author",
                self.world.clock,
            )
            parts.append(
                _import(
                    f"refs/heads/{branch}",
                    made,
                    self.world.clock,
                    parent if number == 0 else None,
                    [],
                    reset=number == 0,
                )
            )
        self.git("fast-import", "--quiet", "--force", stdin=b"".join(parts))
        return self.git("rev-list", "--reverse", f"{branch}", f"^{parent}").split()

    def merge(self, branch: str, other: str) -> str:
        """Merge a revision into a branch with git's own merge. A conflict is settled by `commit(merge=[...])`."""
        ours, theirs = self.tip(f"refs/heads/{branch}"), self.tip(other)
        tree = self.git("merge-tree", "--write-tree", ours, theirs)
        self.world.clock += MINUTE
        who = {"NAME": "Author", "EMAIL": "author@example.com", "DATE": f"{self.world.clock} +0000"}
        env = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in who.items()}
        message = f"Merge {other} into {branch}"
        sha = git(self.path, "commit-tree", tree, "-p", ours, "-p", theirs, "-m", message, env=env)
        return self.point(f"refs/heads/{branch}", sha)

    def pick(
        self,
        branch: str,
        revision: str,
        *,
        on: str | None = None,
        files: Files | None = None,
        trailer: str = "",
    ) -> str:
        """The change of a commit again at the tip of a branch: same author and author date, another commit."""
        made = self.made[self.tip(revision)]
        return self.commit(
            branch,
            files if files is not None else made.files,
            on=on,
            author=made.author,
            date=made.date,
            message=made.message + trailer,
        )

    def squash(
        self, branch: str, commits: Iterable[str], *, author: str = "Author", message: str = "Squashed"
    ) -> str:
        """The changes of several commits as one."""
        files: dict[str, str | bytes | None] = {}
        for one in commits:
            files |= self.made[one].files
        return self.commit(branch, files, author=author, message=message)

    def point(self, ref: str, revision: str) -> str:
        """Let a ref name a commit."""
        ref = ref if ref.startswith("refs/") else f"refs/heads/{ref}"
        sha = self.tip(revision)
        self.git("update-ref", ref, sha)
        return sha

    def drop(self, ref: str) -> None:
        """Delete a ref."""
        self.git("update-ref", "-d", ref if ref.startswith("refs/") else f"refs/heads/{ref}")

    def has(self, ref: str) -> bool:
        """Whether a ref is there."""
        return bool(self.git("for-each-ref", "--format=%(refname)", ref).split()[:1] == [ref])

    def forget(self) -> None:
        """Throw away every object that no ref reaches, as a server does in time."""
        self.git("reflog", "expire", "--expire=now", "--all")
        self.git("gc", "--quiet", "--prune=now")

    def lose(self, revision: str) -> None:
        """Delete one object, whatever needs it."""
        sha = self.git("rev-parse", "--verify", revision)
        delete(self.path, sha)

    def pull(self, number: int, head: str, base: str = "main", *, at: str | None = None, **facts: Any) -> int:
        """A pull request of a branch. `at` is its recorded head where that is not the tip of the branch.

        The interface's `base.sha` is the fork point, as on GitHub: neither the merge base in general nor the tip.
        """
        source = facts.get("head_repo") and self.world.named(facts["head_repo"])
        if source and source is not self:
            self.git(
                "fetch",
                "--quiet",
                "--no-tags",
                str(source.path),
                f"+refs/heads/{head}:refs/pull/{number}/head",
            )
        else:
            self.point(
                f"refs/pull/{number}/head",
                at or (f"refs/heads/{head}" if self.has(f"refs/heads/{head}") else head),
            )
        told = {"base": base, "head": head, "title": f"Change {number}", "body": "", "user": "author"}
        if self.has(f"refs/heads/{base}"):
            told["base_sha"] = self._fork_point(base, f"refs/pull/{number}/head")
        self.facts.setdefault("pulls", {})[str(number)] = told | facts
        return number

    def pulls(self, numbers: Iterable[int], head: str, base: str = "main") -> None:
        """Many pull requests of one branch in one go."""
        first, *rest = numbers
        self.pull(first, head, base)
        sha = self.tip(head)
        self.git(
            "update-ref",
            "--stdin",
            stdin="".join(f"update refs/pull/{one}/head {sha}\n" for one in rest).encode(),
        )
        told = self.facts["pulls"][str(first)]
        self.facts["pulls"] |= {str(one): told | {"title": f"Change {one}"} for one in rest}

    def _fork_point(self, base: str, head: str) -> str:
        try:
            return self.git("merge-base", base, head)
        except RuntimeError:
            return self.tip(base)

    def merge_ref(self, number: int, base: str, head: str) -> str:
        """Let `refs/pull/N/merge` be the merge of two revisions."""
        self.point(f"refs/heads/tmp-merge-{number}", base)
        sha = self.merge(f"tmp-merge-{number}", head)
        self.drop(f"tmp-merge-{number}")
        return self.point(f"refs/pull/{number}/merge", sha)

    def pin(self, number: int, **changes: Any) -> dict[str, Any]:
        """The pull request as a recipe names it: base is the tip of its base branch, head its recorded head."""
        facts = self.facts.get("pulls", {}).get(str(number), {"base": "main"})
        head, base = f"refs/pull/{number}/head", f"refs/heads/{facts['base']}"
        pin: dict[str, Any] = {
            "url": f"{self.world.web}/{self.full_name}/pull/{number}",
            "git": f"{self.world.git_url}/{self.full_name}.git",
            "target": {"owner": self.full_name.partition("/")[0], "branch": facts["base"]},
            "trunks": ["main"],
        }
        pin["base"] = changes.pop("base", None) or self.tip(base)
        pin["head"] = changes.pop("head", None) or self.tip(head)
        if "branch" in changes:
            pin["target"]["branch"] = changes.pop("branch")
        return pin | changes


class Topology:
    """The work folder: repositories made so far, the forge's addresses, the recipe at the end."""

    def __init__(self, work: Path | None = None, *, api: str | None = None) -> None:
        self.work = work or Path.cwd()
        self.forge = os.environ.get("FORGE", "http://127.0.0.1:1")
        self.git_url = os.environ.get("GIT", "http://127.0.0.1:2")
        self.api, self.web = api or self.forge, self.forge
        self.clock = START
        self.repos: list[Repo] = []

    def repo(
        self, full_name: str = "o/r", *, files: Files | None = None, bare: bool = False, **facts: Any
    ) -> Repo:
        """A repository with a first commit on main (`bare`: without)."""
        names = {one.path.name for one in self.repos}
        folder = f"{full_name.rpartition('/')[2]}.git"
        folder = folder if folder not in names else f"{full_name.replace('/', '+')}.git"
        path = self.work / folder
        git(self.work, "-c", "init.defaultBranch=main", "init", "--quiet", "--bare", str(path))
        made = Repo(self, full_name, path, {"full_name": full_name, "id": 1001 + len(self.repos), **facts})
        self.repos.append(made)
        if not bare:
            made.commit(
                "main",
                files or {"README": "root\n", "a.txt": LINES, "b.txt": LINES},
                root=True,
                message="root",
            )
        return made

    def fork(self, of: Repo, full_name: str) -> Repo:
        """A fork: all branches of the original, under a name of its own."""
        made = self.repo(full_name, bare=True, parent=of.full_name)
        made.git("fetch", "--quiet", str(of.path), "+refs/heads/*:refs/heads/*")
        made.made = of.made
        return made

    @property
    def identity(self) -> list[str]:
        """Options that give git in a checkout an identity."""
        return ["-c", "user.name=Author", "-c", "user.email=author@example.com"]

    def checkout(self, of: Repo, revision: str, *, submodules: bool = False) -> Path:
        """A clone over HTTP at `checkout`, detached at a revision."""
        place = self.work / "checkout"
        git(self.work, "clone", "--quiet", f"{self.git_url}/{of.full_name}.git", str(place))
        git(place, "checkout", "--quiet", "--detach", of.tip(revision))
        if submodules:
            git(place, "submodule", "--quiet", "update", "--init")
        return place

    def tool(self, *argv: str) -> int:
        """Run tic-manifest in the work folder, as a run before the one that is judged; its exit code."""
        return subprocess.run(["python3", "-m", "tic_manifest", *argv], cwd=self.work, check=False).returncode

    def named(self, full_name: str) -> Repo | None:
        """A repository made before."""
        return next((one for one in self.repos if one.full_name == full_name), None)

    def recipe(
        self, policy: Mapping[str, Any] | None = None, name: str = "recipe.yaml", **pulls: Mapping[str, Any]
    ) -> Path:
        """Write the facts of every repository, and a recipe of these pins."""
        for one in self.repos:
            (one.path / "pulls.json").write_text(json.dumps(one.facts, indent=1))
        recipe: dict[str, Any] = {
            "schema": "tic/recipe/v1",
            "name": "scenario",
            "forge": {"api": self.api},
            "pull_requests": {key: dict(pull) for key, pull in pulls.items()},
        }
        path = self.work / name
        path.write_text(json.dumps(recipe | ({"policy": dict(policy)} if policy else {}), indent=1) + "\n")
        return path

    def lockable(self, base: Any = None, **pulls: Mapping[str, Any]) -> Path:
        """A recipe that `lock` takes, on a Debian base unless another is given; sets `{project}`."""
        path = self.recipe(**pulls)
        more = {"base": base or {"debian": {"suite": "bookworm", "packages": ["python3"]}}}
        recipe = json.loads(path.read_text()) | more | {"python": {"version": "3.11"}}
        path.write_text(json.dumps(recipe, indent=1) + "\n")
        self.vars(project=str(Path(__file__).resolve().parents[3]))
        return path

    def vars(self, **values: str) -> None:
        """Values for api.json and command.json."""
        (self.work / "vars.json").write_text(json.dumps(values))


LINES = "".join(f"line {number}\n" for number in range(1, 21))


def edit(line: int, text: str, content: str = LINES) -> str:
    """The file with one line (1..) replaced."""
    rows = content.splitlines()
    rows[line - 1] = text
    return "\n".join(rows) + "\n"


def _import(
    ref: str, made: Made, when: int, parent: str | None, merges: list[str], *, reset: bool = True
) -> bytes:
    """One commit as a stream for `git fast-import`."""
    who = f"{made.author} <{made.author.lower().replace(' ', '.')}@example.com>"
    message = made.message.encode()
    parts = [f"reset {ref}\n".encode()] if reset else []
    parts.append(f"commit {ref}\nauthor {who} {made.date} +0000\ncommitter {who} {when} +0000\n".encode())
    parts.append(b"data %d\n%s\n" % (len(message), message))
    parts += [f"from {parent}\n".encode()] if parent else []
    parts += [f"merge {one}\n".encode() for one in merges]
    return b"".join([*parts, *(_file(path, content) for path, content in made.files.items()), b"\n"])


_MODE = re.compile(rb"^(100755) (.*)$", re.S)


def _file(path: str, content: str | bytes | None) -> bytes:
    if content is None:
        return f"D {path}\n".encode()
    data = content.encode() if isinstance(content, str) else content
    if data.startswith(b"160000 "):
        return b"M 160000 %s %s\n" % (data.split()[1], path.encode())
    mode = _MODE.match(data)
    data = mode[2] if mode else data
    return b"M %s inline %s\ndata %d\n%s\n" % (mode[1] if mode else b"100644", path.encode(), len(data), data)
