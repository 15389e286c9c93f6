"""Distribution files into the store: hashed while they stream, several at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import unquote, urlsplit

import requests

from tic_manifest.adapters.pip_settings import PipSettings
from tic_manifest.errors import UnavailableError
from tic_manifest.model.lock import LockedFile
from tic_manifest.ports import Progress, Step, Store

_AT_ONCE = 4
_TRIES = 4
_TIMEOUT = (15, 120)
_CHUNK = 1 << 18


@dataclass(frozen=True, kw_only=True)
class Found:
    """A file that an index has. `url` may be a file: URL; it never leaves this package."""

    name: str
    version: str
    file: str
    url: str
    sha256: str
    size: int

    @classmethod
    def of(cls, name: str, version: str, file: str, wheel: Mapping[str, Any]) -> Found:
        """From one entry of a pylock file (PEP 751): `url` or `path`, `hashes`, `size`."""
        url = str(wheel.get("url") or Path(str(wheel["path"])).absolute().as_uri())
        sha256 = str(wheel.get("hashes", {}).get("sha256", ""))
        size = int(wheel.get("size") or 0)
        found = cls(name=name, version=version, file=file, url=url, sha256=sha256, size=size)
        return replace(found, size=size or found.local_size())

    def expecting(self, sha256: str) -> Found:
        """The same file, held to a hash that a person wrote."""
        return replace(self, sha256=sha256)

    def path(self) -> Path | None:
        """Where a file: URL points."""
        parts = urlsplit(self.url)
        return Path(unquote(parts.path)) if parts.scheme == "file" else None

    def local_size(self) -> int:
        """Size of a local file in bytes; 0 for others."""
        path = self.path()
        return path.stat().st_size if path and path.is_file() else 0


def fetch(
    found: Sequence[Found], settings: PipSettings, indexes: Sequence[str], store: Store, progress: Progress
) -> tuple[LockedFile, ...]:
    """Store every file that is not there. Raises UnavailableError NETWORK, RefusedError WHEEL_HASH."""
    missing = [one for one in found if not one.sha256 or store.path(f"sha256:{one.sha256}") is None]
    session = _session(settings)
    credentials = settings.credentials(indexes)
    total = sum(one.size for one in missing)
    with progress.step(f"python: {len(missing)} of {len(found)} wheels", total) as step:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            jobs = {one: pool.submit(_store, one, session, credentials, store, step) for one in missing}
        digests = {one: job.result() for one, job in jobs.items()}
    return tuple(
        sorted((_locked(one, digests, store) for one in found), key=lambda one: (one.name, one.file))
    )


def _locked(one: Found, digests: Mapping[Found, str], store: Store) -> LockedFile:
    digest = digests.get(one, f"sha256:{one.sha256}")
    path = store.path(digest)
    size = path.stat().st_size if path else one.size
    return LockedFile(
        name=one.name, version=one.version, file=one.file, sha256=digest.removeprefix("sha256:"), size=size
    )


def _session(settings: PipSettings) -> requests.Session:
    session = requests.Session()
    session.auth = _nobody  # a callable keeps requests from reading .netrc
    if settings.cert:
        session.verify = settings.cert
    if settings.proxy:
        session.proxies = {"http": settings.proxy, "https": settings.proxy}
    return session


def _nobody(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _store(
    one: Found,
    session: requests.Session,
    credentials: Mapping[str, tuple[str, str]],
    store: Store,
    step: Step,
) -> str:
    expected = f"sha256:{one.sha256}" if one.sha256 else None
    path = one.path()
    if path is not None:
        with _opened(path) as stream:
            return store.put(
                cast("IO[bytes]", _Counted(iter(lambda: stream.read(_CHUNK), b""), step)), expected=expected
            )
    for left in reversed(range(_TRIES)):
        try:
            return _download(one, session, credentials, store, step, expected)
        except requests.RequestException as error:
            if not left:
                raise _unreachable(one, error) from error
    raise AssertionError("unreachable")


def _download(
    one: Found,
    session: requests.Session,
    credentials: Mapping[str, tuple[str, str]],
    store: Store,
    step: Step,
    expected: str | None,
) -> str:
    who = credentials.get(urlsplit(one.url).netloc.rpartition("@")[2])
    auth = requests.auth.HTTPBasicAuth(*who) if who else None
    with session.get(one.url, stream=True, timeout=_TIMEOUT, auth=auth) as answer:
        answer.raise_for_status()
        pieces = answer.iter_content(_CHUNK)
        return store.put(cast("IO[bytes]", _Counted(pieces, step)), expected=expected)


class _Counted:
    """A stream over pieces that tells a step how much went through."""

    def __init__(self, pieces: Iterator[bytes], step: Step) -> None:
        self._pieces, self._step = pieces, step

    def read(self, amount: int = -1) -> bytes:
        """The next piece, whatever its length; empty at the end."""
        piece = next(self._pieces, b"")
        self._step.advance(len(piece))
        return piece


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise UnavailableError(
            "NETWORK", "cannot read a wheel", where=path.name, actual=os.strerror(error.errno or 0)
        ) from error


def _unreachable(one: Found, error: requests.RequestException) -> UnavailableError:
    host = urlsplit(one.url).hostname or "?"
    answer = error.response
    said = f"HTTP {answer.status_code}" if answer is not None else type(error).__name__
    return UnavailableError(
        "NETWORK",
        "a wheel could not be fetched",
        where=one.file,
        actual=f"{said} from {host}",
        remedy="run the same command again; files that are in the store are kept",
    )
