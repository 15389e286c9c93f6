"""What a git server says: its refs, its objects, and its refusals told apart by their words (LC_ALL=C)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tic_manifest.adapters.git_objects import objects_missing
from tic_manifest.adapters.git_run import GitRunner, Ran, login_environment
from tic_manifest.adapters.user_login import Login
from tic_manifest.errors import PersonError, RefusedError, TicError, UnavailableError
from tic_manifest.model.base import GitCommit

_NAME = "tic"
_FILTER = "--filter=blob:none"
_OPTIONS = ["--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance"]
_ROW = re.compile(r"^([0-9a-f]{40})\t(\S+)$")
_GONE = re.compile(r"not our ref|unadvertised object|remote ref .* not found|couldn't find remote ref", re.I)
_ACCESS = re.compile(
    r"returned error: 40[134]|Authentication failed|could not read (Username|Password)|not found", re.I
)
_LIMIT = re.compile(r"returned error: 429|rate limit", re.I)
_TIME = re.compile(r"timed out|timeout|too slow|did not complete", re.I)
_NET = re.compile(
    r"could not resolve|failed to connect|couldn't connect|connection (refused|reset)|returned error: 5\d\d|"
    r"SSL|certificate|empty reply|hung up|early EOF|network|transport '|unable to access",
    re.I,
)


class Remote(Protocol):
    """A git server, or the recording of one."""

    def refs(self, mirror: Path, patterns: Sequence[str]) -> dict[str, GitCommit]:
        """Full ref names to the objects they name now. Raises UnavailableError."""

    def fetch(self, mirror: Path, wants: Mapping[str, str]) -> None:
        """Make commits and all their trees present: remote name (a commit or a ref) to local ref.

        Blobs come along only where the server cannot leave them out. Raises RefusedError PIN_UNFETCHABLE
        where the server has no such object, UnavailableError otherwise.
        """

    def blobs(self, mirror: Path, oids: Sequence[str]) -> None:
        """Make blobs present. Raises UnavailableError OBJECTS_MISSING, whatever the reason."""


class HttpRemote:
    """A real server behind a URL; `shown` is the URL as the recipe names it, `say` tells a person.

    `login` is asked for a name and a secret where the server refuses those who bring none.
    """

    def __init__(
        self,
        runner: GitRunner,
        url: str,
        shown: str,
        *,
        timeout_seconds: int = 3600,
        say: Callable[[str], None] = lambda text: None,
        login: Callable[[str], Login | None] = lambda url: None,
    ) -> None:
        self._runner = runner
        self._url = url
        self._shown = shown
        self._timeout = timeout_seconds
        self._say = say
        self._login = login
        self._known: dict[str, str] = {}

    def refs(self, mirror: Path, patterns: Sequence[str]) -> dict[str, GitCommit]:
        """`git ls-remote`; a peeled tag is not listed."""
        argv = ["ls-remote", "--end-of-options", self._url, *patterns]
        ran = self._run(mirror, argv)
        rows = (_ROW.match(line) for line in ran.out.decode("utf-8", "replace").splitlines())
        return {row[2]: row[1] for row in rows if row and not row[2].endswith("^{}")}

    def fetch(self, mirror: Path, wants: Mapping[str, str]) -> None:
        """One `git fetch` of all wants, refspecs on stdin, blobs left out where the server knows how."""
        specs = "".join(f"+{there}:{here}\n" for there, here in wants.items())
        words = self._fetch(mirror, [_FILTER], specs)
        if "shallow" in words:
            # git warns, takes the objects without their parents, and exits with 0
            raise shallow(self._shown)
        if "filtering not recognized" in words:
            self._say(f"{self._shown}: this server sends no partial clone, so the mirror is a full one")

    def blobs(self, mirror: Path, oids: Sequence[str]) -> None:
        """One fetch of blobs by their ids; a server that refuses ids sends everything instead."""
        try:
            self._fetch(mirror, [_FILTER], "".join(f"{one}\n" for one in oids), negotiate=False)
        except TicError as error:
            if "unadvertised object" not in error.actual:
                raise _blobs_missing(self._shown, len(oids), error) from error
            self._whole(mirror, len(oids))

    def _whole(self, mirror: Path, count: int) -> None:
        self._say(f"{self._shown}: this server sends no object by its id, so the mirror becomes a full one")
        specs = "+refs/heads/*:refs/tic/whole/heads/*\n+refs/pull/*:refs/tic/whole/pull/*\n"
        try:
            self._fetch(mirror, ["--refetch", "--no-filter"], specs)
        except TicError as error:
            raise _blobs_missing(self._shown, count, error) from error

    def _fetch(self, mirror: Path, more: Sequence[str], specs: str, *, negotiate: bool = True) -> str:
        """What git says. The server is named on this command line alone: the mirror's configuration has none.

        So no other git process on the mirror can fetch in the middle of an answer, whatever its version
        (`GIT_NO_LAZY_FETCH` came with git 2.45 and 2.39.4).
        """
        names = {"url": self._url, "promisor": "true", "partialCloneFilter": "blob:none"}
        settings = [part for key, value in names.items() for part in ("-c", f"remote.{_NAME}.{key}={value}")]
        if not negotiate:
            settings += ["-c", "fetch.negotiationAlgorithm=noop"]
        argv = [*settings, "fetch", "--quiet", *_OPTIONS, *more, "--stdin", "--end-of-options", _NAME]
        return self._run(mirror, argv, specs.encode()).err

    def _run(self, mirror: Path, argv: list[str], stdin: bytes | None = None) -> Ran:
        try:
            return self._once(mirror, argv, stdin)
        except UnavailableError as error:
            found = self._login(self._url) if error.code == "NO_ACCESS" and not self._known else None
            if found is None:
                raise
            self._known = login_environment(self._url, found.user, found.secret)
        return self._once(mirror, argv, stdin)

    def _once(self, mirror: Path, argv: list[str], stdin: bytes | None) -> Ran:
        ran = self._runner.run(argv, repo=mirror, stdin=stdin, env=self._known, timeout_seconds=self._timeout)
        if ran.status != 0:
            raise remote_error(ran.err.replace(self._url, self._shown), self._shown)
        return ran


def shallow(shown: str) -> UnavailableError:
    """The server lacks history, so no merge base can be trusted."""
    return UnavailableError(
        "SHALLOW", "the server has a shallow history", where=shown, remedy="point the recipe at a full clone"
    )


def _blobs_missing(shown: str, count: int, error: TicError) -> UnavailableError:
    """Files that a question needs did not come: never a conflict, never an absent path."""
    what = f"{count} files could not be fetched from {shown}"
    return objects_missing(what, f"{error.what}: {error.actual}")


def remote_error(words: str, shown: str) -> TicError:
    """The error that git's words stand for. Only "no such object" is the pin's fault."""
    text = words.strip()[-600:]
    if "mismatched algorithms" in words or "sha256" in words.lower():
        return PersonError("RECIPE", "a SHA-256 repository is not supported yet", where=shown, actual=text)
    if "shallow" in words:
        return shallow(shown)
    if _GONE.search(words):
        return RefusedError(
            "PIN_UNFETCHABLE",
            "the server has no such object",
            where=shown,
            expected="every pinned commit on the server",
            actual=text,
            remedy="pin a commit that the pull request holds",
        )
    for pattern, code in (
        (_LIMIT, "RATE_LIMITED"),
        (_ACCESS, "NO_ACCESS"),
        (_TIME, "TIMEOUT"),
        (_NET, "NETWORK"),
    ):
        if pattern.search(words):
            return UnavailableError(
                code,
                "the git server gave no answer",
                where=shown,
                actual=text,
                remedy="run the same command again",
            )
    return objects_missing(f"git could not fetch from {shown}", text)
