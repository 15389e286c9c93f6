"""Which Debian packages make a root: asked of apt with its own folders, believed when Debian's keys signed.

The machine's own apt sources say where to look; nothing of the machine's state is read or changed, and no
address leaves this module.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tic_manifest.adapters import deb, telling
from tic_manifest.errors import UnavailableError
from tic_manifest.model.lock import DebianRoot, LockedFile
from tic_manifest.model.recipe import Debian
from tic_manifest.ports import Progress, Store

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
ARCHITECTURES = {"amd64": "amd64", "arm64": "arm64", "386": "i386", "ppc64le": "ppc64el", "s390x": "s390x"}
"""OCI's names of architectures to Debian's."""
OCI_NAMES = {debian: oci for oci, debian in ARCHITECTURES.items()}
_DEFAULT = {"": "http://deb.debian.org/debian", "-security": "http://deb.debian.org/debian-security"}
_POCKETS = ("", "-updates", "-security")
_TARGETS = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)"
_URI = re.compile(r"^'[^']+' (\S+) (\d+)", re.M)
_POLL_SECONDS = 0.3
_Advance = Callable[[int], None]


def resolve(
    debian: Debian, architecture: str, store: Store, progress: Progress, environment: Mapping[str, str]
) -> DebianRoot:
    """Every package of the root by version and hash, each in the store.

    Raises UnavailableError TOOL_MISSING, NETWORK, or RESOLVE with apt's own words.
    """
    _require_tools()
    arch = ARCHITECTURES.get(architecture, architecture)
    with (
        tempfile.TemporaryDirectory(prefix="tic-apt-") as folder,
        _apt(Path(folder), debian.suite, arch, environment) as apt,
    ):
        progress.say(f"debian {debian.suite}: reading the package lists")
        apt.call("NETWORK", "apt-get", "-q", "update")
        wanted = ("?essential", *apt.merged(), *debian.packages)
        with progress.step(f"debian {debian.suite} packages", apt.size(wanted)) as step:
            apt.download(wanted, step.advance)
        files = [_locked(path, store) for path in sorted((apt.folder / "cache/archives").glob("*.deb"))]
    packages = tuple(sorted(files, key=lambda one: (one.name, one.file)))
    return DebianRoot(suite=debian.suite, architecture=arch, packages=packages)


def _locked(path: Path, store: Store) -> LockedFile:
    fields = deb.control(path)
    version = fields["Version"]
    file = f"{fields['Package']}_{version.rpartition(':')[2]}_{fields['Architecture']}.deb"
    with path.open("rb") as stream:
        digest = store.put(stream)
    return LockedFile(
        name=fields["Package"],
        version=version,
        file=file,
        sha256=digest.removeprefix("sha256:"),
        size=path.stat().st_size,
    )


class _Apt:
    """apt with its own state, cache and sources below `folder`."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._env = {**environment, "APT_CONFIG": str(folder / "apt.conf"), "LC_ALL": "C"}

    def call(self, code: str, *argv: str) -> str:
        """Run to the end; the standard output. Raises UnavailableError with apt's words."""
        telling.program(argv)
        done = subprocess.run(
            argv, env=self._env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
        if done.returncode:
            raise _failed(code, argv, done.stdout + done.stderr)
        return done.stdout

    def merged(self) -> tuple[str, ...]:
        """The package that says /usr is merged, where the suite has it; else apt takes a converter."""
        said = self.call("RESOLVE", "apt-cache", "pkgnames", "usr-is-merged")
        return ("usr-is-merged",) if "usr-is-merged" in said.split() else ()

    def size(self, wanted: Sequence[str]) -> int:
        """Bytes that a download of the packages fetches. Raises UnavailableError RESOLVE."""
        said = self.call("RESOLVE", *_install(wanted, "--print-uris"))
        return sum(int(size) for _, size in _URI.findall(said))

    def download(self, wanted: Sequence[str], advance: _Advance) -> None:
        """Fetch the packages; apt checks every file against the signed lists."""
        log = self.folder / "download.log"
        with log.open("wb") as out:
            argv = _install(wanted, "--download-only")
            telling.program(argv)
            running = subprocess.Popen(argv, env=self._env, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
            try:
                self._watch(running, advance)
            finally:
                running.kill()
                running.wait()
        if running.returncode:
            raise _failed("NETWORK", argv, log.read_text(errors="replace"))

    def _watch(self, running: subprocess.Popen[bytes], advance: _Advance) -> None:
        seen = 0
        while running.poll() is None:
            time.sleep(_POLL_SECONDS)
            archives = (self.folder / "cache/archives").rglob("*.deb")
            now = sum(map(_size, archives))
            advance(max(0, now - seen))
            seen = max(seen, now)


def _size(path: Path) -> int:
    """Bytes of a file that apt may have moved to its place meanwhile."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _install(wanted: Sequence[str], *options: str) -> list[str]:
    return ["apt-get", "-q", "-y", *options, "install", "--", *wanted]


@contextmanager
def _apt(folder: Path, suite: str, arch: str, environment: Mapping[str, str]) -> Iterator[_Apt]:
    for name in ("state/lists/partial", "cache/archives/partial", "parts"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "apt.conf").write_text(_configuration(folder, arch))
    (folder / "sources.list").write_text(_sources(suite))
    yield _Apt(folder, environment)


def _configuration(folder: Path, arch: str) -> str:
    own = {
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::main": "/dev/null",
        "Dir::Etc::parts": folder / "parts",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::Log": folder / "log",
        "APT::Architecture": arch,
        "APT::Install-Recommends": "false",
        "APT::Install-Suggests": "false",
        "APT::Sandbox::User": _user(),
        "APT::Get::AllowUnauthenticated": "false",
        "Acquire::Languages": "none",
    }
    lines = [f'{key} "{value}";' for key, value in own.items()]
    return "\n".join([*_acquire(), *lines, f'APT::Architectures {{ "{arch}"; }};', ""])


def _user() -> str:
    return "root" if os.geteuid() == 0 else ""


def _acquire() -> list[str]:
    """The machine's way to the network (proxy, certificates); none of its hooks."""
    said = _host("apt-config", "dump", "Acquire")
    keep = re.compile(
        r'^Acquire::(?:[a-z]+::)?(?:http|https|Proxy|Timeout|Retries|CaInfo|CaPath)\S* "[^"]*";$', re.I
    )
    return [line for line in said.splitlines() if keep.match(line)]


def _sources(suite: str) -> str:
    """One line for each pocket of the suite, at the machine's own mirror where it has one."""
    known = _mirrors()
    lines = []
    for pocket in _POCKETS:
        kind = "-security" if pocket == "-security" else ""
        exact = known.get(suite + pocket)
        uri = exact or known.get(f"*{kind}") or _DEFAULT[kind]
        lines.append(f"deb [signed-by={KEYRING}] {uri} {suite}{pocket} main")
    return "\n".join(lines) + "\n"


def _mirrors() -> dict[str, str]:
    """Suite to address, from the machine's sources; `*` and `*-security` for any Debian suite."""
    found: dict[str, str] = {}
    for line in _host("apt-get", "indextargets", "--format", _TARGETS, "Created-By: Packages").splitlines():
        uri, release, component, origin = (line.split("|") + [""] * 4)[:4]
        if (
            component == "main"
            and origin in {"Debian", "Debian Backports"}
            and uri.startswith(("http", "file"))
        ):
            found.setdefault(release, uri)
            found.setdefault("*-security" if release.endswith("-security") else "*", uri)
    return found


def _host(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return done.stdout if done.returncode == 0 else ""


def _require_tools() -> None:
    if shutil.which("apt-get") is None:
        raise UnavailableError(
            "TOOL_MISSING",
            "apt-get is not here: a base of Debian packages is resolved with it",
            remedy="lock on Debian or Ubuntu, or name a base image by digest in the recipe",
        )
    if not KEYRING.is_file():
        raise UnavailableError(
            "TOOL_MISSING",
            "the keys of the Debian archive are not here",
            where=str(KEYRING),
            remedy="apt-get install debian-archive-keyring",
        )


def _failed(code: str, argv: Sequence[str], said: str) -> UnavailableError:
    words = [line for line in said.splitlines() if line.startswith(("E:", "W:", "Err:"))]
    tail = " / ".join(words[-5:] or said.splitlines()[-3:])
    return UnavailableError(code, f"{argv[0]} failed", actual=tail[:1000])
