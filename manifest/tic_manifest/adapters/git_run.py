"""The one place that runs git: no user or system configuration, no hooks, no replace objects, no prompt.

GitPython starts the process; everything it would take from the user's environment is overridden or unset
here. Source of the rules: rules/pr-gate.md F43 and design.md (libraries, git).
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from tic_manifest.adapters import telling
from tic_manifest.errors import UnavailableError

MINIMUM = (2, 38)
"""`merge-tree --write-tree` came with git 2.38."""

CONFIG = {
    "advice.detachedHead": "false",
    # from git 2.43 on a bare repository takes attributes from HEAD's tree; this is the empty tree
    "attr.tree": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.quotePath": "false",
    "gc.auto": "0",
    "http.lowSpeedLimit": "1",
    "http.lowSpeedTime": "60",
    "maintenance.auto": "false",
    "merge.conflictStyle": "merge",
    "protocol.version": "2",
    "submodule.recurse": "false",
}
"""Set on every call, so that no default of the machine decides."""

_KEPT = {"GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_PROXY_SSL_CAINFO", "GIT_SSL_CERT", "GIT_SSL_KEY"}
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIAL|API_?KEY", re.IGNORECASE)


@dataclass(frozen=True)
class Ran:
    """How a git process ended. `out` is bytes; `err` is its words, for people only."""

    status: int
    out: bytes
    err: str


class GitRunner:
    """Runs git with a fixed environment.

    `environ` is the user's environment (proxy and CA variables pass); `protocols` the transports allowed.
    """

    def __init__(self, environ: Mapping[str, str], *, protocols: Sequence[str] = ("http", "https")) -> None:
        self._unset = _to_unset(environ)
        self._env = _fixed_environment(environ, protocols)
        self._checked = False

    def version(self) -> str:
        """`2.39.5`. Raises UnavailableError TOOL_MISSING where git is absent or older than 2.38."""
        text = self._execute(["git", "version"], Path("/"), None, None, {}).out.decode("ascii", "replace")
        found = re.search(r"(\d+)\.(\d+)(?:\.\d+)*", text)
        if not found or (int(found[1]), int(found[2])) < MINIMUM:
            raise _missing(f"git {found[0] if found else 'of unknown version'}")
        self._checked = True
        return found[0]

    def run(
        self,
        args: Sequence[str],
        *,
        repo: Path,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        timeout_seconds: int | None = None,
        folder: Path | None = None,
    ) -> Ran:
        """Run `git ARGS` on the bare repository `repo`; every status is an answer, none is an exception.

        No process fetches a missing object by itself. Raises UnavailableError TOOL_MISSING.
        """
        self._check_version()
        more = {"GIT_DIR": str(repo), "GIT_NO_LAZY_FETCH": "1", **(env or {})}
        return self._execute(self._argv(args), folder or repo, stdin, timeout_seconds, more)

    def pipe(self, first: Sequence[str], second: Sequence[str], *, repo: Path, stdin: bytes) -> Ran:
        """`git FIRST | git SECOND` through a temporary file, so that no patch is held in memory.

        The status is the first that is not 0.
        """
        self._check_version()
        env = {"GIT_DIR": str(repo), "GIT_NO_LAZY_FETCH": "1"}
        with tempfile.TemporaryFile() as between:
            ran = self._execute(self._argv(first), repo, stdin, None, env, between)
            if ran.status != 0:
                return ran
            between.seek(0)
            return self._execute(self._argv(second), repo, between, None, env)

    def start(self, args: Sequence[str], *, repo: Path) -> Any:
        """A running `git ARGS` with pipes, for `cat-file --batch`. The caller closes its stdin."""
        from subprocess import PIPE

        self._check_version()
        env = self._env | {"GIT_DIR": str(repo), "GIT_NO_LAZY_FETCH": "1"}
        argv = [*self._prefix(env), *self._argv(args)]
        telling.program(argv)
        return _git_class()(str(repo)).execute(argv, as_process=True, istream=PIPE, env=env, shell=False)

    def _argv(self, args: Sequence[str]) -> list[str]:
        settings = [part for key, value in CONFIG.items() for part in ("-c", f"{key}={value}")]
        return ["git", *settings, *args]

    def _check_version(self) -> None:
        if not self._checked:
            self.version()

    def _execute(
        self,
        argv: list[str],
        folder: Path,
        stdin: bytes | IO[bytes] | None,
        timeout: int | None,
        env: Mapping[str, str],
        stdout: IO[bytes] | None = None,
    ) -> Ran:
        whole = {**self._env, **env}
        telling.program(argv)
        with _readable(stdin) as given:
            status, out, err = _git_class()(str(folder)).execute(
                [*self._prefix(whole), *argv],
                istream=given,
                output_stream=stdout,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                kill_after_timeout=timeout,
                env=whole,
                shell=False,
            )
        return Ran(int(status), b"" if stdout is not None else bytes(out), str(err))

    def _prefix(self, given: Mapping[str, str]) -> list[str]:
        """Takes the user's variables away, but those that we have set to something of ours."""
        return ["env", *(part for name in self._unset if name not in given for part in ("-u", name))]


@contextmanager
def _readable(data: bytes | IO[bytes] | None) -> Iterator[IO[bytes]]:
    if data is not None and not isinstance(data, bytes):
        yield data
        return
    with tempfile.TemporaryFile() as given:
        given.write(data or b"")
        given.seek(0)
        yield given


def _git_class() -> Any:
    try:
        from git.cmd import Git
    except ImportError as error:
        raise _missing("git or GitPython is not installed") from error
    return Git


def _missing(actual: str) -> UnavailableError:
    return UnavailableError(
        "TOOL_MISSING",
        "git is missing or too old",
        expected="git 2.38 or newer and the Python package GitPython",
        actual=actual,
        remedy="install git 2.38 or newer, for example: apt-get install git",
    )


def login_environment(url: str, user: str, secret: str) -> dict[str, str]:
    """Variables that let git answer one origin, and no other, with a name and a secret.

    A credential helper of git's own configuration: it is asked for the host that git talks to, so a redirect
    elsewhere gets nothing, and the secret stands in no argument and no file (gitcredentials(7)).
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    pairs = 'printf "username=%s\\npassword=%s\\n" "$TIC_GIT_USER" "$TIC_GIT_SECRET"'
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"credential.{parts.scheme}://{host}.helper",
        "GIT_CONFIG_VALUE_0": f'!f() {{ test "$1" = get && {pairs}; }}; f',
        "TIC_GIT_USER": user,
        "TIC_GIT_SECRET": secret,
    }


def _to_unset(environ: Mapping[str, str]) -> list[str]:
    """Variables of the user that git must not see: everything that steers git, and secrets."""
    return sorted(
        name
        for name in environ
        if (name.startswith("GIT_") and name not in _KEPT)
        or _SECRET.search(name)
        or name == "XDG_CONFIG_HOME"
    )


def _fixed_environment(environ: Mapping[str, str], protocols: Iterable[str]) -> dict[str, str]:
    fixed = {
        "GIT_ALLOW_PROTOCOL": ":".join(protocols),
        "GIT_ASKPASS": "/bin/false",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        # libcurl reads $HOME/.netrc, which the contract forbids (section 3, tokens)
        "HOME": "/nonexistent",
        "SSH_ASKPASS": "/bin/false",
        "TZ": "UTC",
    }
    bundle = (
        environ.get("SSL_CERT_FILE") or environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE")
    )
    if bundle and "GIT_SSL_CAINFO" not in environ:
        fixed["GIT_SSL_CAINFO"] = bundle
    return fixed
