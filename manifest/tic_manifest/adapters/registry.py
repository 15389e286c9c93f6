"""Images in a registry (OCI distribution-spec). Nothing that a header claims about content is believed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError

from tic_manifest.adapters.layout import PIECE, fallback_tag, read_fallback
from tic_manifest.adapters.registry_http import RegistryHttp
from tic_manifest.errors import RefusedError, UnavailableError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.formats.oci import check_content_type, parse_index
from tic_manifest.formats.urls import join_url
from tic_manifest.model.base import Digest
from tic_manifest.model.oci import INDEX_TYPES, MANIFEST_TYPES, MAX_MANIFEST_BYTES, Descriptor, Referrers

MAX_PAGES = 50
RESUMES = 3
"""How often in a row a blob is asked for again without getting a byte more."""
MAX_RESUMES = 100
_ACCEPT = {"Accept": ", ".join(sorted(INDEX_TYPES | MANIFEST_TYPES))}
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_NEXT = re.compile(r'<([^>]+)>\s*;[^,]*\brel="?next"?')


class RegistrySource:
    """An `ImageSource` over one repository."""

    def __init__(self, registry: str, repository: str, environ: Mapping[str, str]) -> None:
        self._name = f"{registry}/{repository}"
        self._http = RegistryHttp(registry, repository, environ)
        self._tagged: dict[Digest, bytes] = {}
        self._has_api = True

    def describe(self) -> str:
        """`HOST[:PORT]/REPOSITORY`."""
        return self._name

    def manifest(self, digest: Digest) -> bytes | None:
        """The body that the registry sends for a digest, whatever its headers say."""
        if digest in self._tagged:
            return self._tagged[digest]
        return self._document(digest)

    def blob(self, digest: Digest, size: int) -> Iterator[bytes] | None:
        """The body, resumed where the connection ends early; a registry that keeps ending it gives less."""
        answer = self._http.request("GET", f"blobs/{digest}")
        if answer.status_code == 404:
            answer.close()
            return None
        if answer.status_code != 200:
            raise self._odd(answer, f"blobs/{digest}")
        return self._resumed(answer, digest, size)

    def length(self, digest: Digest) -> int | None:
        """Content-Length of the blob from HEAD; from a range of one byte where HEAD says none."""
        with self._http.request("HEAD", f"blobs/{digest}") as answer:
            said = answer.headers.get("Content-Length", "")
            if answer.status_code == 404:
                return None
            if answer.status_code == 200 and said.isdigit():
                return int(said)
            if answer.status_code not in {200, 405, 501}:
                raise self._odd(answer, f"blobs/{digest}")
        with self._http.request("GET", f"blobs/{digest}", {"Range": "bytes=0-0"}) as answer:
            found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            if answer.status_code == 404:
                return None
            if answer.status_code == 206 and found and found[3] != "*":
                return int(found[3])
            raise self._odd(answer, f"blobs/{digest}")

    def resolve(self, tag: str) -> Digest | None:
        """The digest of the body behind a tag; the registry's own header is not asked."""
        raw = self._document(tag)
        if raw is None:
            return None
        digest = digest_of(raw)
        self._tagged[digest] = raw
        return digest

    def index_entries(self) -> tuple[Descriptor, ...]:
        """Nothing: a registry does not say what it holds."""
        return ()

    def referrers(self, subject: Digest) -> Referrers:
        """The referrers API, page by page; the fallback tag where the registry has none (404)."""
        if not self._has_api:
            return self._fallback(subject, 404)
        via = f"referrers API of {self._name}"
        entries: list[Descriptor] = []
        path: str | None = f"referrers/{subject}"
        for _ in range(MAX_PAGES):
            answer = self._http.request(
                "GET", str(path), {"Accept": "application/vnd.oci.image.index.v1+json"}
            )
            with answer:
                if answer.status_code != 200:
                    return self._fallback(subject, answer.status_code)
                raw = _body(answer, MAX_MANIFEST_BYTES + 1)
                try:
                    entries += parse_index(raw, via).value.manifests
                except RefusedError as error:
                    return Referrers(via=via, problems=(f"not an image index: {error.what} [{error.code}]",))
                path = self._next(answer)
            if path is None:
                return Referrers(via=via, entries=tuple(entries))
        return Referrers(via=via, entries=tuple(entries), problems=(f"more than {MAX_PAGES} pages",))

    def _fallback(self, subject: Digest, status: int) -> Referrers:
        self._has_api = status != 404
        digest = self.resolve(fallback_tag(subject))
        if digest is not None:
            return read_fallback(self.manifest(digest), digest, subject)
        odd = () if status == 404 else (f"the referrers API answers HTTP {status}",)
        return Referrers(via=f"tag {fallback_tag(subject)}: absent", problems=odd)

    def _next(self, answer: requests.Response) -> str | None:
        found = _NEXT.search(answer.headers.get("Link", ""))
        if not found:
            return None
        url = join_url(answer.url, found[1])
        # a page of another host is not asked for: it would be a host learned from a document
        return url if url and urlsplit(url).netloc == urlsplit(self._http.base).netloc else None

    def _document(self, reference: str) -> bytes | None:
        with self._http.request("GET", f"manifests/{reference}", _ACCEPT) as answer:
            if answer.status_code == 404:
                return None
            if answer.status_code != 200:
                self._require_blob(answer, reference)
                return None
            raw = _body(answer, MAX_MANIFEST_BYTES + 1)
        if ":" not in reference or digest_of(raw) == reference:
            check_content_type(raw, answer.headers.get("Content-Type", ""), f"{self._name}@{reference}")
        return raw

    def _require_blob(self, answer: requests.Response, reference: str) -> None:
        """docker-registry answers 500 where a config's digest is asked for; anything else is its fault."""
        error = self._odd(answer, f"manifests/{reference}")
        if ":" not in reference or self.length(reference) is None:
            raise error

    def _resumed(self, answer: requests.Response, digest: Digest, size: int) -> Iterator[bytes]:
        """Pieces of a body, at most `size` + 1 bytes; asks for the rest where the connection ends early."""
        got, tries, asked = 0, 0, 0
        current: requests.Response | None = answer
        while current is not None and got <= size:
            before = got
            for piece in _pieces(current, size + 1 - got):
                got += len(piece)
                yield piece
            current.close()
            if got >= size:
                return
            tries = tries + 1 if got == before else 1
            asked += 1
            current = self._rest(digest, got) if tries <= RESUMES and asked <= MAX_RESUMES else None

    def _rest(self, digest: Digest, start: int) -> requests.Response | None:
        """The rest of a blob; None where the registry does not give just that."""
        try:
            answer = self._http.request("GET", f"blobs/{digest}", {"Range": f"bytes={start}-"})
        except UnavailableError:
            return None
        found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if answer.status_code == 206 and found and int(found[1]) == start:
            return answer
        if answer.status_code == 200 and _skip(answer, start):
            return answer
        answer.close()
        return None

    def _odd(self, answer: requests.Response, path: str) -> UnavailableError:
        answer.close()
        return UnavailableError(
            "NETWORK", "the registry gave no usable answer", where=f"{self._name} {path}",
            actual=f"HTTP {answer.status_code}", remedy="run the same command again",
        )  # fmt: skip


def _pieces(answer: requests.Response, limit: int) -> Iterator[bytes]:
    """Pieces of a body until it ends, as far as it came."""
    try:
        while limit > 0:
            piece: bytes = answer.raw.read(min(PIECE, limit), decode_content=False)
            if not piece:
                return
            limit -= len(piece)
            yield piece
    except (HTTPError, OSError):
        return


def _skip(answer: requests.Response, count: int) -> bool:
    skipped = sum(len(piece) for piece in _pieces(answer, count))
    return skipped == count


def _body(answer: requests.Response, limit: int) -> bytes:
    return b"".join(_pieces(answer, limit))
