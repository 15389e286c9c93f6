"""Image references: `host[:port]/repo@sha256:…`, `[::1]:5000/repo@…`, `oci:DIR@sha256:…`.

Source of the forms: contract, section 3; `docker-archive:FILE@sha256:…` is read by `verify` alone.
"""

from __future__ import annotations

import ipaddress
import re

from tic_manifest.errors import PersonError
from tic_manifest.model.oci import ImageReference

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:.]{{2,45}}\])(?::[0-9]{{1,5}})?")
ARCHIVE = "docker-archive:"
FORMS = "HOST[:PORT]/REPOSITORY@sha256:…, [::1]:PORT/REPOSITORY@sha256:… or oci:DIR@sha256:…"


def parse_reference(text: str) -> ImageReference:
    """A reference as a value; one with a tag keeps the tag, for whoever looks up the digest behind it.

    Raises PersonError USAGE for what is no reference at all.
    """
    if len(text) > 4096 or any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        raise _error(text, "an image reference is too long or holds a control character")
    if text.startswith(ARCHIVE):
        return _archive(text.removeprefix(ARCHIVE), text)
    return _layout(text[4:], text) if text.startswith("oci:") else _registry(text)


def require_digest(reference: ImageReference) -> ImageReference:
    """The reference, if it names a digest. Raises PersonError MUTABLE_REF where it does not."""
    if reference.digest is None or reference.tag is not None:
        raise mutable(reference)
    return reference


def mutable(reference: ImageReference, behind: str | None = None) -> PersonError:
    """The error for a tag; `behind` is the digest that the tag names now, where that is known."""
    digest = behind or reference.digest
    return PersonError(
        "MUTABLE_REF",
        "an image must be named by digest alone",
        where=f"{reference.place}:{reference.tag}" if reference.tag else reference.place,
        expected=FORMS,
        actual=f"tag {reference.tag}" if reference.tag else "no digest",
        remedy=f"if this is the image you mean: {reference.at(digest)}"
        if digest
        else "name it by its digest",
    )


def _layout(rest: str, text: str) -> ImageReference:
    folder, at, digest = rest.rpartition("@")
    if at and _DIGEST.fullmatch(digest) and folder:
        return ImageReference(layout=folder, digest=digest)
    if at and digest.startswith(("sha256:", "sha512:")):
        raise _error(text, "not a sha256 digest of 64 lower-case hex digits")
    folder, colon, tag = rest.rpartition(":")
    if colon and folder and _TAG.fullmatch(tag):
        return ImageReference(layout=folder, tag=tag)
    if not rest:
        raise _error(text, "no folder is named")
    return ImageReference(layout=rest)


def _archive(rest: str, text: str) -> ImageReference:
    file, at, digest = rest.rpartition("@")
    if at and _DIGEST.fullmatch(digest) and file:
        return ImageReference(archive=file, digest=digest)
    if at and digest.startswith(("sha256:", "sha512:")):
        raise _error(text, "not a sha256 digest of 64 lower-case hex digits")
    if not rest:
        raise _error(text, "no file is named")
    return ImageReference(archive=rest)


def require_store(reference: ImageReference) -> ImageReference:
    """The reference, if it names a registry or a layout. Raises PersonError USAGE for an archive."""
    if reference.archive is not None:
        raise PersonError(
            "USAGE", "an archive of docker save is read by verify alone", where=str(reference),
            expected=FORMS, remedy="push the image to a registry or copy it into a layout",
        )  # fmt: skip
    return reference


def _registry(text: str) -> ImageReference:
    name, at, digest = text.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        raise _error(text, "not a sha256 digest of 64 lower-case hex digits")
    host, slash, path = name.partition("/")
    repository, colon, tag = path.partition(":")
    if not slash or not _is_host(host):
        raise _error(text, "no registry host is named")
    if not _REPOSITORY.fullmatch(repository) or len(repository) > 255:
        raise _error(text, "not a repository name")
    if colon and not _TAG.fullmatch(tag):
        raise _error(text, "not a tag")
    return ImageReference(
        registry=host,
        repository=repository,
        digest=digest if at else None,
        tag=tag if colon else None if at else "latest",
    )


def _is_host(host: str) -> bool:
    if not _HOST.fullmatch(host) or len(host) > 261:
        return False
    if host.startswith("[") and not _is_ipv6(host[1 : host.index("]")]):
        return False
    port = host.rpartition(":")[2] if not host.endswith("]") and ":" in host else "1"
    return ("." in host or ":" in host or host == "localhost") and 0 < int(port) < 65536


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _error(text: str, what: str) -> PersonError:
    shown = text if len(text) <= 200 else text[:200] + "..."
    return PersonError("USAGE", what, expected=FORMS, actual=shown)
