"""Credentials of registries: where docker and podman keep them, and the token that a registry asks for.

Files in order: `REGISTRY_AUTH_FILE` alone where it is set, `$XDG_RUNTIME_DIR/containers/auth.json`,
`~/.config/containers/auth.json`, `$DOCKER_CONFIG/config.json`, `~/.docker/config.json`; helpers named in them
are asked. A secret goes to the registry it was stored for, and to a token service only on the same host or
domain (contract, section 3).
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tic_manifest.adapters import telling
from tic_manifest.errors import RefusedError
from tic_manifest.formats.strict_json import load_json
from tic_manifest.formats.urls import is_loopback

HELPER_SECONDS = 30
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CHALLENGE = re.compile(r'([A-Za-z]+)="((?:[^"\\]|\\.)*)"')
_DOCKER_HUB = {"docker.io", "index.docker.io", "registry-1.docker.io"}


@dataclass(frozen=True)
class Credentials:
    """A user and a secret, or an identity token alone (`user` is empty). Never printed."""

    user: str
    secret: str
    identity_token: bool = False

    def __repr__(self) -> str:
        return "Credentials(…)"

    def basic(self) -> str:
        """The value of a Basic Authorization header."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.secret}".encode()).decode()


def find_credentials(environ: Mapping[str, str], host: str, repository: str) -> Credentials | None:
    """What is stored for a registry; None where nothing is. A file that cannot be read counts as absent."""
    for path in auth_files(environ):
        data = _load(path)
        found = None if data is None else _from_file(data, host, repository, environ)
        if found is not None:
            return found
    return None


def auth_files(environ: Mapping[str, str]) -> Iterator[Path]:
    """Where credentials may be stored, in the order in which they count."""
    home = environ.get("HOME") or environ.get("USERPROFILE") or ""
    if environ.get("REGISTRY_AUTH_FILE"):
        yield Path(environ["REGISTRY_AUTH_FILE"])
        return
    if environ.get("XDG_RUNTIME_DIR"):
        yield Path(environ["XDG_RUNTIME_DIR"]) / "containers" / "auth.json"
    config = environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    if config:
        yield Path(config) / "containers" / "auth.json"
    docker = environ.get("DOCKER_CONFIG") or (f"{home}/.docker" if home else "")
    if docker:
        yield Path(docker) / "config.json"


@dataclass(frozen=True)
class Challenge:
    """What a 401 asks for: scheme (`basic` or `bearer`) and its parameters."""

    scheme: str
    parameters: Mapping[str, str]


def read_challenge(header: str) -> Challenge:
    """A WWW-Authenticate header as a value (RFC 6750, distribution-spec token authentication)."""
    scheme, _, rest = header.strip().partition(" ")
    pairs = _CHALLENGE.findall(rest)
    return Challenge(scheme.lower(), {name.lower(): re.sub(r"\\(.)", r"\1", value) for name, value in pairs})


def may_send(registry: str, realm: str) -> bool:
    """Whether a token service may be given what was stored for a registry: same host or same domain."""
    parts = urlsplit(realm)
    there, here = (parts.hostname or "").lower(), (urlsplit(f"//{registry}").hostname or "").lower()
    if parts.scheme != "https" and not is_loopback(there):
        return False
    if here in _DOCKER_HUB:
        return there == "auth.docker.io"
    return there == here or (not _is_address(there) and _domain(there) == _domain(here) != "")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _domain(host: str) -> str:
    """The last three labels where the last but one is short (`co.uk`), else the last two."""
    labels = host.split(".")
    keep = 3 if len(labels) > 2 and len(labels[-2]) <= 3 else 2
    return ".".join(labels[-keep:]) if len(labels) >= keep else ""


def _load(path: Path) -> dict[str, Any] | None:
    try:
        data = load_json(path.read_bytes(), str(path), max_bytes=1 << 20)
    except (OSError, RefusedError):
        return None
    return data if isinstance(data, dict) else None


def _from_file(
    data: dict[str, Any], host: str, repository: str, environ: Mapping[str, str]
) -> Credentials | None:
    helpers = data.get("credHelpers")
    for key in _keys(host, repository):
        helper = helpers.get(key) if isinstance(helpers, dict) else None
        if isinstance(helper, str):
            return _ask(helper, key, environ)
    auths = data.get("auths")
    for key in _keys(host, repository):
        entry = auths.get(key) if isinstance(auths, dict) else None
        found = _entry(entry) if isinstance(entry, dict) else None
        if found is not None:
            return found
    store = data.get("credsStore")
    return _ask(store, _keys(host, repository)[-1], environ) if isinstance(store, str) and store else None


def _keys(host: str, repository: str) -> list[str]:
    """Keys under which a registry stands, the narrowest first (containers-auth.json(5))."""
    parts = repository.split("/")
    narrow = [f"{host}/{'/'.join(parts[:end])}" for end in range(len(parts), 0, -1)]
    if host in _DOCKER_HUB:
        return [*narrow, "docker.io", "https://index.docker.io/v1/"]
    return [*narrow, f"https://{host}", host]


def _entry(entry: dict[str, Any]) -> Credentials | None:
    token = entry.get("identitytoken")
    if isinstance(token, str) and token:
        return Credentials("", token, identity_token=True)
    auth = entry.get("auth")
    try:
        plain = base64.b64decode(auth).decode() if isinstance(auth, str) else ""
    except (binascii.Error, UnicodeDecodeError):
        return None
    user, colon, secret = plain.rstrip("\0").partition(":")
    return Credentials(user, secret) if colon and secret else None


def _ask(helper: str, server: str, environ: Mapping[str, str]) -> Credentials | None:
    """Ask `docker-credential-NAME get`; its answer stays in memory."""
    if not _HELPER.fullmatch(helper):
        return None
    telling.program([f"docker-credential-{helper}", "get"])
    try:
        done = subprocess.run(
            [f"docker-credential-{helper}", "get"], input=server.encode(), capture_output=True, check=False,
            timeout=HELPER_SECONDS, env=dict(environ),
        )  # fmt: skip
        data = json.loads(done.stdout) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if not isinstance(data, dict) or not isinstance(data.get("Secret"), str) or not data["Secret"]:
        return None
    user = str(data.get("Username") or "")
    return (
        Credentials("", data["Secret"], identity_token=True)
        if user == "<token>"
        else Credentials(user, data["Secret"])
    )
