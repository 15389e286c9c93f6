"""Mirrors of a registry, as registries.conf names them (containers-registries.conf(5), version 2)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tic_manifest.errors import PersonError

MAX_BYTES = 1 << 20
MAX_MIRRORS = 8
SYSTEM = "/etc/containers/registries.conf"


def mirrors_of(registry: str, repository: str, environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Registry and repository of each mirror, in order; of several entries the longest prefix counts.

    Read from CONTAINERS_REGISTRIES_CONF, else the user's file, else the system's. Raises PersonError USAGE.
    """
    path = _file(environ)
    if path is None:
        return ()
    name = f"{registry}/{repository}"
    fit = [(prefix, one) for prefix, one in _entries(path) if name == prefix or name.startswith(f"{prefix}/")]
    if not fit:
        return ()
    prefix, chosen = max(fit, key=lambda row: len(row[0]))
    rest = name.removeprefix(prefix)
    listed = chosen.get("mirror")
    rows = listed if isinstance(listed, list) else []
    places = [one.get("location") for one in rows if isinstance(one, dict)]
    named = [place for place in places if isinstance(place, str) and place]
    return tuple(_split(f"{place}{rest}") for place in named[:MAX_MIRRORS])


def _file(environ: Mapping[str, str]) -> Path | None:
    named = environ.get("CONTAINERS_REGISTRIES_CONF")
    if named:
        return Path(named)
    home = environ.get("HOME")
    own = [Path(home) / ".config" / "containers" / "registries.conf"] if home else []
    return next((path for path in [*own, Path(SYSTEM)] if path.is_file()), None)


def _entries(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
        data = tomllib.loads(raw.decode()) if len(raw) <= MAX_BYTES else {}
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise PersonError(
            "USAGE", "cannot read the list of registries", where=str(path), actual=str(error)[:200],
            remedy="mend the file, or name another with CONTAINERS_REGISTRIES_CONF",
        ) from error  # fmt: skip
    listed = data.get("registry")
    for one in listed if isinstance(listed, list) else ():
        prefix = one.get("prefix") or one.get("location") if isinstance(one, dict) else None
        if isinstance(prefix, str) and prefix:
            yield prefix.rstrip("/"), one


def _split(name: str) -> tuple[str, str]:
    host, _, repository = name.partition("/")
    return host, repository
