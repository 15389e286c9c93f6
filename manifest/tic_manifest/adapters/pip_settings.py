"""Where this machine's pip finds distributions. uv reads none of pip's configuration, so it is passed on.

None of it reaches a lock. Addresses may hold credentials: they travel in the environment of uv only.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from tic_manifest.adapters import telling

_LINE = re.compile(r"^(:env:|[a-z]+)\.([a-z-]+)=(.*)$")
_SECTIONS = ("global", "download", "install", ":env:")
"""Later ones win: pip's environment over its files, a command's section over the global one."""


@dataclass(frozen=True, kw_only=True)
class PipSettings:
    """The part of pip's configuration that says where distributions are."""

    index_url: str = ""
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    no_index: bool = False
    cert: str = ""
    proxy: str = ""

    def uv_environment(self, extra: Sequence[str] = ()) -> dict[str, str]:
        """Variables for uv; `extra` are further indexes."""
        indexes = (*self.extra_index_urls, *extra)
        given = {
            "UV_DEFAULT_INDEX": self.index_url, "UV_INDEX": " ".join(indexes),
            "UV_FIND_LINKS": ",".join(self.find_links),
            "SSL_CERT_FILE": self.cert, "ALL_PROXY": self.proxy,
        }  # fmt: skip
        return {name: value for name, value in given.items() if value}

    def credentials(self, extra: Sequence[str] = ()) -> dict[str, tuple[str, str]]:
        """User and password by host, each for its own host only."""
        parts = [urlsplit(url) for url in (self.index_url, *self.extra_index_urls, *extra) if url]
        return {
            one.netloc.rpartition("@")[2]: (one.username, one.password or "") for one in parts if one.username
        }


def read_pip_settings() -> PipSettings:
    """What `pip config list` says here; empty settings where there is no pip."""
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    for command in (argv, ["pip3", *argv[3:]]):
        telling.program(command)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return parse_pip_settings(done.stdout)
    return PipSettings()


def parse_pip_settings(text: str) -> PipSettings:
    """Settings of the output of `pip config list`: lines `section.key='value'`."""
    values = _values(text)
    words = {key: tuple(value.split()) for key, value in values.items()}
    return PipSettings(
        index_url=values.get("index-url", ""),
        extra_index_urls=words.get("extra-index-url", ()),
        find_links=words.get("find-links", ()),
        constraints=words.get("constraint", ()),
        no_index=values.get("no-index", "").lower() in {"1", "true", "yes", "on"},
        cert=values.get("cert", ""),
        proxy=values.get("proxy", ""),
    )


def _values(text: str) -> Mapping[str, str]:
    found: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for match in filter(None, map(_LINE.match, text.splitlines())):
        section, key, value = match.groups()
        if section in found:
            try:
                found[section][key] = str(ast.literal_eval(value))
            except (ValueError, SyntaxError):
                found[section][key] = value
    return {key: value for section in _SECTIONS for key, value in found[section].items()}
