"""What a person who is logged in already has for a forge: asked of git's and gh's own stores, late, once.

Asked only after a forge has refused, only for hosts that the user's environment names (or github.com, where
it names none), never for a host out of a document or a redirect. Nothing prompts: no terminal, no window, ten
seconds. The programs see the user's own configuration, but no repository's: they run in `/`.
Source of the rules: contract, section 3, tokens; git-credential(1); gh auth token.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tic_manifest.adapters import telling
from tic_manifest.adapters.forge_http import origin, token_for
from tic_manifest.formats.urls import is_loopback

SECONDS = 10.0
"""How long a program may take to answer."""

MOST = 1 << 14
_GITHUB = "https://github.com"
_API = "https://api.github.com"
_QUIET = {
    "GCM_INTERACTIVE": "never",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "GH_PROMPT_DISABLED": "1",
    "GIT_ASKPASS": "/bin/false",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS": "/bin/false",
}
_DROPPED = {"DISPLAY", "WAYLAND_DISPLAY", "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"}


@dataclass(frozen=True)
class Login:
    """A name and a secret for one origin. The secret is not part of its text."""

    user: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Place:
    """A forge that the user's environment names: where its interface and its git answer."""

    api: str
    git: str


def places(environ: Mapping[str, str]) -> tuple[Place, ...]:
    """The forges of GITHUB_API_URL (default: GitHub) and GH_HOST; git of one is GITHUB_SERVER_URL."""
    api = environ.get("GITHUB_API_URL") or _API
    same = urlsplit(api)
    derived = _GITHUB if origin(api) == origin(_API) else f"{same.scheme}://{same.netloc}"
    found = [Place(api, environ.get("GITHUB_SERVER_URL") or derived)]
    if environ.get("GH_HOST"):
        found.append(Place(f"https://{environ['GH_HOST']}", f"https://{environ['GH_HOST']}"))
    return tuple(one for one in found if _is_private(one.api) and _is_private(one.git))


class UserLogin:
    """Answers for the forges of the user's environment; each program is asked at most once for a host."""

    def __init__(self, environ: Mapping[str, str], *, seconds: float = SECONDS) -> None:
        self._environ = environ
        self._seconds = seconds
        self._kept: dict[tuple[str, str], Login | None] = {}

    def for_git(self, url: str) -> Login | None:
        """For a git server: the token set for that very origin, git's own store, then gh."""
        for place in places(self._environ):
            if origin(place.git) == origin(url):
                token = token_for(self._environ, place.git)
                if token:
                    return Login("x-access-token", token)
                return self._ask("git", place.git) or self._ask("gh", place.git)
        return None

    def for_api(self, url: str) -> str:
        """A token for an interface that none was set for: gh's, then git's where git has the same origin."""
        for place in places(self._environ):
            if origin(place.api) == origin(url) and not token_for(self._environ, url):
                found = self._ask("gh", place.git)
                if found is None and origin(place.api) == origin(place.git):
                    found = self._ask("git", place.git)
                return found.secret if found else ""
        return ""

    def _ask(self, program: str, url: str) -> Login | None:
        key = (program, url)
        if key not in self._kept:
            self._kept[key] = self._from_git(url) if program == "git" else self._from_gh(url)
        return self._kept[key]

    def _from_git(self, url: str) -> Login | None:
        parts = urlsplit(url)
        asked = f"protocol={parts.scheme}\nhost={parts.netloc.rpartition('@')[2]}\n\n"
        out = self._run(["git", "credential", "fill"], asked)
        pairs = dict(line.split("=", 1) for line in out.split("\n") if "=" in line)
        return _login(pairs.get("username", ""), pairs.get("password", ""))

    def _from_gh(self, url: str) -> Login | None:
        host = urlsplit(url).netloc.rpartition("@")[2]
        return _login("x-access-token", self._run(["gh", "auth", "token", "--hostname", host], "").strip())

    def _run(self, argv: Sequence[str], asked: str) -> str:
        """What a program prints; "" where it is not there, fails or takes too long."""
        program = shutil.which(argv[0], path=self._environ.get("PATH", os.defpath))
        if program is None:
            return ""
        telling.program(argv)
        kept = {name: value for name, value in self._environ.items() if name not in _DROPPED}
        process = subprocess.Popen(
            [program, *argv[1:]], cwd="/", env=kept | _QUIET, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            out, _ = process.communicate(asked.encode(), timeout=self._seconds)
        except BaseException as error:
            _end(process)
            if isinstance(error, subprocess.TimeoutExpired):
                return ""
            raise
        return out[:MOST].decode("utf-8", "replace") if process.returncode == 0 else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program that does not answer, and whatever it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _login(user: str, secret: str) -> Login | None:
    if not user or not secret or not (user + secret).isprintable():
        return None
    return Login(user, secret)


def _is_private(url: str) -> bool:
    return urlsplit(url).scheme == "https" or is_loopback(urlsplit(url).hostname or "")
