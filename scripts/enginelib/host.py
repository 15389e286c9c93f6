"""What a clean root takes over from the machine: certificates, proxies, pip's configuration.

Nothing here names a path of one machine: paths come from the environment and from pip's configuration files.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

PASSED = re.compile(
    r"PIP_.*|SSL_.*|GIT_SSL_.*|.*CA_BUNDLE|.*_ca_certs_file|.*_proxy|TIC_.*|SOURCE_DATE_EPOCH|TERM|CI",
    re.IGNORECASE,
)
CERTIFICATES = re.compile(r"PIP_CERT|SSL_CERT_.*|GIT_SSL_.*|.*CA_BUNDLE|.*_ca_certs_file", re.IGNORECASE)


def variables() -> dict[str, str]:
    """Return the environment for a command in the clean root."""
    passed = {key: value for key, value in os.environ.items() if PASSED.fullmatch(key)}
    fixed = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
    return {**passed, **fixed, "LANG": "C.UTF-8"}


def shared() -> dict[Path, Path]:
    """Return the files and folders that are shown read-only inside, each with its path there."""
    found = {path: path for path in certificates()}
    for file, inside in pip_files().items():
        found[file] = inside
        found.update({path: path for path in paths_in(words_of(file))})
    found.update({path: path for path in paths_in(pip_variables())})
    return {source: inside for source, inside in found.items() if source.exists()}


def certificates() -> list[Path]:
    """Return what the environment names as certificates."""
    named = [value for key, value in os.environ.items() if CERTIFICATES.fullmatch(key)]
    return sorted({Path(path) for value in named for path in value.split(os.pathsep) if path.startswith("/")})


def pip_files() -> dict[Path, Path]:
    """Return pip's configuration files of this machine and user, each with its path inside."""
    folders = os.environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(os.pathsep)
    files = {Path(folder) / "pip/pip.conf": Path(folder) / "pip/pip.conf" for folder in folders}
    files[Path("/etc/pip.conf")] = Path("/etc/pip.conf")
    named = os.environ.get("PIP_CONFIG_FILE", "")
    if named.startswith("/"):
        files[Path(named)] = Path(named)
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME", home / ".config"))
    files[home / ".pip/pip.conf"] = Path("/root/.pip/pip.conf")
    files[config / "pip/pip.conf"] = Path("/root/.config/pip/pip.conf")
    return {file: inside for file, inside in files.items() if file.is_file()}


def words_of(file: Path) -> list[tuple[str, str]]:
    """Return the settings of one pip configuration file as pairs of key and word; a bad one has none."""
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(file.read_text())
    except (OSError, UnicodeDecodeError, configparser.Error):
        return []
    pairs = [pair for section in parser.sections() for pair in parser.items(section)]
    return [(key, word) for key, value in pairs for word in value.split()]


def pip_variables() -> list[tuple[str, str]]:
    """Return pip's settings from the environment as pairs of key and word."""
    pairs = [(key, value) for key, value in os.environ.items() if key.startswith("PIP_")]
    return [(key[4:].lower().replace("_", "-"), word) for key, value in pairs for word in value.split()]


def paths_in(settings: Iterable[tuple[str, str]]) -> list[Path]:
    """Return the local files and folders that settings name; an index comes with the files beside it."""
    found = []
    for key, word in settings:
        path = unquote(urlsplit(word).path) if word.startswith("file:") else word
        if path.startswith("/"):
            place = Path(path)
            found.append(place.parent if "index" in key and place.parent != Path("/") else place)
    return found
