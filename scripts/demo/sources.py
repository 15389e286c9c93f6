"""Source distributions by name, version, file name and sha256, found the way pip finds them, kept in a cache.

`pip download` would run the build backend of an sdist to learn its metadata, so the file is taken from the
package index directly: the indexes and find-links are those of pip's own configuration.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import html.parser
import os
import re
import ssl
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from edits import EXECUTABLE, LINK, PLAIN, Entry, Tree

MAX_BYTES, MAX_ENTRY, TIMEOUT_S = 1 << 30, 1 << 28, 60


class SourceError(Exception):
    """A source distribution that cannot be had, or is not the one that was named."""


def default_index() -> str:
    """The index that pip itself asks when nothing is configured, in pip's own words."""
    code = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    if ran.returncode:
        raise SourceError("pip is missing, so no package index is known")
    return ran.stdout.strip()


@dataclass(frozen=True)
class Sdist:
    """What identifies a source distribution; where it was found does not."""

    project: str
    version: str
    file: str
    sha256: str


def fetch(sdist: Sdist, cache: Path) -> Path:
    """The file in the cache, downloaded first where it is missing. Raises SourceError."""
    target = cache / sdist.sha256 / sdist.file
    if target.is_file() and digest(target) == sdist.sha256:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    tried = []
    for url in candidates(sdist):
        try:
            download(url, sdist, target)
            return target
        except (OSError, SourceError) as error:
            tried.append(f"{urllib.parse.urlsplit(url).hostname or 'a local file'}: {error}")
    raise SourceError(
        f"{sdist.file} (sha256 {sdist.sha256}) cannot be had: {'; '.join(tried) or 'no index lists it'}"
    )


def digest(file: Path) -> str:
    """Hex sha256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def download(url: str, sdist: Sdist, target: Path) -> None:
    """Stream to a temporary name, check the hash, then give it its name. Raises OSError or SourceError."""
    seen, size = hashlib.sha256(), 0
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".part-", delete=False) as part:
        try:
            with opened(url) as answer:
                while block := answer.read(1 << 20):
                    size += len(block)
                    if size > MAX_BYTES:
                        raise SourceError("larger than any source distribution here")
                    seen.update(block)
                    part.write(block)
            if seen.hexdigest() != sdist.sha256:
                raise SourceError(f"has sha256 {seen.hexdigest()}")
            os.replace(part.name, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part.name)


def opened(url: str) -> Any:
    """An answer to read from; certificates are checked against pip's own authorities where it names some."""
    authorities = os.environ.get("PIP_CERT") or pip_settings().get("cert")
    context = ssl.create_default_context(cafile=authorities) if url.startswith("https:") else None
    request = urllib.request.Request(url, headers={"Accept": "text/html, */*;q=0.1"})
    return urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context)


def candidates(sdist: Sdist) -> Iterator[str]:
    """URLs of the file: pip's find-links folders, then each index page that lists the file name."""
    settings = pip_settings()
    for place in settings.get("find-links", "").split():
        if Path(place, sdist.file).is_file():
            yield Path(place, sdist.file).absolute().as_uri()
    indexes = [settings.get("index-url") or default_index(), *settings.get("extra-index-url", "").split()]
    name = re.sub(r"[-_.]+", "-", sdist.project).lower()
    for index in indexes:
        page = f"{index.rstrip('/')}/{name}/"
        with contextlib.suppress(OSError):
            yield from (link for link in links(page) if named(link) == sdist.file)


def named(link: str) -> str:
    """The file name of a link."""
    return PurePosixPath(urllib.parse.unquote(urllib.parse.urlsplit(link).path)).name


@functools.cache
def pip_settings() -> dict[str, str]:
    """pip's configuration as pip resolves it; environment variables win, as they do for pip."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, str] = {}
    for line in listed.stdout.splitlines():
        key, _, value = line.partition("=")
        found[key.rpartition(".")[2]] = value.strip("'\"").replace("\\n", " ")
    for name in ("index-url", "extra-index-url", "find-links"):
        given = os.environ.get("PIP_" + name.upper().replace("-", "_"))
        if given is not None:
            found[name] = given
    return found


class _Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.found.append(href)


def links(page: str) -> list[str]:
    """Absolute links of an index page (PEP 503 HTML)."""
    url = page + "index.html" if page.startswith("file:") else page
    with opened(url) as answer:
        parser = _Links()
        parser.feed(answer.read(MAX_BYTES).decode("utf-8", "replace"))
    return [urllib.parse.urljoin(url, link) for link in parser.found]


def read_sdist(file: Path) -> Tree:
    """The tree of a source distribution without its top folder; modes normalised to git's.

    Raises SourceError on an entry that is no file, folder or link, climbs out, or is very large.
    """
    tree: Tree = {}
    with tarfile.open(file, "r:gz") as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if path.is_absolute() or ".." in path.parts or member.size > MAX_ENTRY:
                raise SourceError(f"{member.name!r} does not belong into a source distribution")
            if member.isdir():
                continue
            if not (member.isreg() or member.issym()):
                raise SourceError(f"{member.name!r} is neither file, folder nor link")
            tree["/".join(path.parts[1:])] = _entry(archive, member)
    return tree


def _entry(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Entry:
    if member.issym():
        return Entry(LINK, member.linkname.encode())
    stream = archive.extractfile(member)
    data = stream.read() if stream is not None else b""
    return Entry(EXECUTABLE if member.mode & 0o100 else PLAIN, data)
