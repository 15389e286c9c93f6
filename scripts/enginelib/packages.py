"""Packages from the distribution. What a newer release has is taken by name, and nothing else from it.

The machine's own apt configuration is never changed: a release that the machine does not have is read through
a private view (own sources, own pins, own lists) that follows the machine's own source.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from enginelib.say import MissingError, run, say

ENGINE = ("docker.io", "docker-cli", "docker-buildx", "containerd")
# The first Debian release, by number, that has each name in the version we need, and its codename.
NEEDS: dict[str, tuple[int, str]] = {
    **dict.fromkeys(ENGINE, (13, "trixie")),
    "cosign": (13, "trixie"),
    "oras": (13, "trixie"),
    "crane": (14, "forky"),
    "skopeo": (12, "bookworm"),
    "docker-registry": (12, "bookworm"),
    "mmdebstrap": (12, "bookworm"),
}
TOOLS = ("mmdebstrap", "skopeo", "docker-registry", "cosign", "oras", "crane")
ROLLING = 99  # testing and unstable have no number
POLICY = Path("/usr/sbin/policy-rc.d")
POLICY_TEXT = """#!/bin/sh
# tic-engine: no service is started while a package is installed; removed afterwards
exit 101
"""
CORE_FIELDS = {"arch": "Architectures", "lang": "Languages", "target": "Targets"}


@dataclass(frozen=True)
class Distribution:
    """What /etc/os-release says: `number` is the release as an integer, 99 for testing and unstable."""

    name: str
    number: int
    codename: str


def distribution(path: Path = Path("/etc/os-release")) -> Distribution | None:
    """Return this machine's distribution when it is Debian or Ubuntu, else None."""
    try:
        pairs = [line.partition("=") for line in path.read_text().splitlines()]
    except OSError:
        return None
    fields = {key: value.strip("\"'") for key, _, value in pairs}
    if fields.get("ID") not in ("debian", "ubuntu"):
        return None
    number = int((fields.get("VERSION_ID") or str(ROLLING)).partition(".")[0])
    return Distribution(fields["ID"], number, fields.get("VERSION_CODENAME", ""))


def names_for_engine(system: Distribution) -> Sequence[str]:
    """Return the packages of an engine: Ubuntu has client and containerd as dependencies of docker.io."""
    return ENGINE if system.name == "debian" else ("docker.io", "docker-buildx")


def install(names: Sequence[str], work: Path) -> None:
    """Install packages by name. `work` holds the private view of apt while it is needed.

    Raises MissingError when this is no Debian or Ubuntu, we are not root, or it would change a package.
    """
    system = distribution()
    if system is None:
        raise MissingError(f"only on Debian and Ubuntu are packages installed; get these: {' '.join(names)}")
    if os.geteuid() != 0:
        raise MissingError(f"not root, so these packages cannot be installed: {' '.join(names)}")
    os.umask(0o022)  # apt reads what is written here as a user of its own
    newer = newer_releases(system, names)
    source = f" (with {', '.join(newer)} as a source for them alone)" if newer else ""
    say(f"installing {' '.join(names)}{source}")
    with services_left_alone(), private_view(system, newer, work) as options:
        update(options)
        refuse_changes(names, options)
        apt(["install", "--yes", "--no-install-recommends", *names], options)


def newer_releases(system: Distribution, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the codenames of releases that must be added as sources, each with the names taken from it."""
    newer: dict[str, list[str]] = {}
    for name in names if system.name == "debian" else ():
        number, codename = NEEDS[name]
        if number > system.number:
            newer.setdefault(codename, []).append(name)
    if newer and system.number < 12:
        raise MissingError(f"Debian {system.number} is too old: the packages need Debian 12's glibc or newer")
    return newer


def apt(words: Sequence[str], options: Sequence[str], folder: Path | None = None) -> str:
    """Run apt-get and return its output; raises MissingError with its last lines when it fails."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    argv = ["apt-get", "--quiet=2", "-o", "DPkg::Lock::Timeout=300", *options, *words]
    result = run(argv, env=env, timeout=1200, cwd=folder)
    if result.returncode != 0:
        lines = (result.stdout + result.stderr).strip().splitlines()[-12:]
        raise MissingError(f"apt-get {words[0]} failed:\n" + "\n".join("  " + line for line in lines))
    return result.stdout


def update(options: Sequence[str]) -> None:
    """Read the package lists; a source that does not answer matters only when something is missing then."""
    try:
        apt(["update"], options)
    except MissingError as error:
        say(str(error))


def refuse_changes(names: Sequence[str], options: Sequence[str]) -> None:
    """Refuse an installation that would upgrade or remove anything: it may belong to another engine."""
    plan = apt(["install", "--simulate", "--no-install-recommends", *names], options)
    upgraded = re.findall(r"^Inst (\S+) \[", plan, re.MULTILINE)
    removed = re.findall(r"^Remv (\S+)", plan, re.MULTILINE)
    if upgraded or removed:
        raise MissingError(
            f"installing {' '.join(names)} would upgrade ({' '.join(upgraded) or 'none'}) or remove "
            f"({' '.join(removed) or 'none'}) packages of this machine, perhaps another engine's; it is left "
            "alone. Do that by hand, or name an engine with BuildKit 0.13 or newer in DOCKER_HOST."
        )


@contextlib.contextmanager
def services_left_alone() -> Iterator[None]:
    """Keep packages from starting the distribution's services, now and at the next boot."""
    ours = not POLICY.exists() or POLICY.read_text(errors="replace") == POLICY_TEXT
    if not ours and run([str(POLICY), "docker", "start"]).returncode != 101:
        raise MissingError(f"{POLICY} lets packages start services, so none is installed; install by hand")
    before = {unit for unit in units() if unit.exists()}
    if ours:
        POLICY.write_text(POLICY_TEXT)
        POLICY.chmod(0o755)
    try:
        yield
    finally:
        if ours:
            POLICY.unlink()
        disable([unit.name for unit in units() if unit.exists() and unit not in before])


def units() -> list[Path]:
    """Return where the units lie that the packages here bring."""
    names = ("docker.service", "docker.socket", "containerd.service", "docker-registry.service")
    return [Path("/lib/systemd/system") / name for name in names]


def disable(names: Sequence[str]) -> None:
    """Disable units that came with our installation; a machine without systemctl starts none."""
    if names and shutil.which("systemctl"):
        run(["systemctl", "--quiet", "disable", *names])


@contextlib.contextmanager
def private_view(system: Distribution, newer: dict[str, list[str]], work: Path) -> Iterator[list[str]]:
    """Yield the options with which apt sees the newer releases as well; none when none is needed."""
    if not newer:
        yield []
        return
    view = work / "apt"
    shutil.rmtree(view, ignore_errors=True)
    try:
        yield write_view(view, debian_sources(system), newer)
    finally:
        shutil.rmtree(view, ignore_errors=True)


def write_view(view: Path, stanzas: list[dict[str, str]], newer: dict[str, list[str]]) -> list[str]:
    """Write sources and pins below `view`; return apt's options that name them."""
    for folder in ("sources", "preferences", "lists/partial", "archives/partial"):
        (view / folder).mkdir(parents=True)
    for place in (view.parent, view):  # apt downloads as a user of its own
        place.chmod(place.stat().st_mode | 0o011)
    added = [{**stanzas[0], "Suites": codename, "Components": "main"} for codename in newer]
    texts = ["".join(f"{key}: {value}\n" for key, value in stanza.items()) for stanza in stanzas + added]
    (view / "sources/debian.sources").write_text("\n".join(texts))
    (view / "preferences/pins").write_text("\n".join(pins(newer)))
    places = {
        "Etc::SourceList": "/dev/null",
        "Etc::SourceParts": view / "sources",
        "Etc::Preferences": "/dev/null",
        "Etc::PreferencesParts": view / "preferences",
        "State::Lists": view / "lists",
        "Cache::Archives": view / "archives",
        "Cache::pkgcache": "",
        "Cache::srcpkgcache": "",
    }
    return [word for key, value in places.items() for word in ("-o", f"Dir::{key}={value}")]


def pins(newer: dict[str, list[str]]) -> list[str]:
    """Return pins: everything of a newer release at 1, which no package here prefers, our names at 500."""
    lines = []
    for codename, names in newer.items():
        lines.append(f"Package: *\nPin: release n={codename}\nPin-Priority: 1\n")
        lines.append(f"Package: {' '.join(names)}\nPin: release n={codename}\nPin-Priority: 500\n")
    return lines


def debian_sources(system: Distribution, etc: Path = Path("/etc/apt")) -> list[dict[str, str]]:
    """Return the machine's own sources of its release, the archive that also has its updates first."""
    files = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]
    stanzas = [stanza for file in files if file.is_file() for stanza in read_sources(file)]
    wanted = {system.codename + end for end in ("", "-updates", "-security")}
    ours = [stanza for stanza in stanzas if wanted & set(stanza["Suites"].split())]
    updated = {stanza["URIs"] for stanza in ours if f"{system.codename}-updates" in stanza["Suites"].split()}

    def rank(stanza: dict[str, str]) -> tuple[bool, bool, bool]:
        return (
            system.codename not in stanza["Suites"].split(),
            stanza["URIs"] not in updated,
            not stanza["URIs"].rstrip("/").endswith("/debian"),
        )

    ours.sort(key=rank)
    if not ours or rank(ours[0])[0]:
        raise MissingError(
            f"apt has no source of {system.codename}, from which one of a newer release follows"
        )
    return ours


def read_sources(file: Path) -> list[dict[str, str]]:
    """Read apt sources of either format as stanzas of fields, without disabled ones and source packages."""
    text = file.read_text(errors="replace")
    reader = {".sources": stanzas_of, ".list": lines_of}.get(file.suffix)
    return [stanza for stanza in (reader(text) if reader else []) if is_active(stanza)]


def is_active(stanza: dict[str, str]) -> bool:
    """Tell whether a stanza names a source of binary packages that is not disabled."""
    enabled = stanza.get("Enabled", "yes").lower() not in ("no", "false")
    binary = "deb" in stanza.get("Types", "").split()
    return enabled and binary and bool(stanza.get("URIs") and stanza.get("Suites"))


def stanzas_of(text: str) -> list[dict[str, str]]:
    """Read the deb822 format; a field's continuation lines (an embedded key) stay as they are."""
    stanzas = []
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for block in re.split(r"\n\s*\n", text):
        pairs = re.findall(r"^([\w-]+):[ \t]*(.*(?:\n[ \t]+.*)*)", block, re.MULTILINE)
        stanzas.append({key: value.rstrip() for key, value in pairs})
    return stanzas


def lines_of(text: str) -> list[dict[str, str]]:
    """Read the one-line format, `deb [option=value …] URI suite component…`."""
    stanzas = []
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^]]*)\]\s*)?(\S+)\s+(\S+)\s+([^#]+)", line)
        if match:
            options, uri, suite, components = match.groups()
            stanza = {"Types": "deb", "URIs": uri, "Suites": suite, "Components": components.strip()}
            for option in (options or "").split():
                key, _, value = option.partition("=")
                stanza[CORE_FIELDS.get(key, key.title())] = value.replace(",", " ")
            stanzas.append(stanza)
    return stanzas
