"""Images in an archive of `docker save` or `skopeo copy ... docker-archive:`, read where they lie.

Two forms: an OCI layout in a tar file (Docker 25 and later), and the older one with `manifest.json` alone,
whose platform manifest is the one that `docker load` makes. An archive that holds one image answers with that
image's document whatever digest is asked for first: whoever asks hashes it, and sees that it is another.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tic_manifest.adapters.layout import LayoutSource, pieces
from tic_manifest.adapters.tar_files import TarFiles
from tic_manifest.errors import PersonError, RefusedError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.formats.docker_archive import entry_of, manifest_of, parse_archive_manifest
from tic_manifest.formats.oci import kind_of, parse_config, parse_index, parse_manifest
from tic_manifest.model.base import Digest
from tic_manifest.model.oci import MAX_MANIFEST_BYTES, REF_NAME, Descriptor, Kind, Referrers
from tic_manifest.ports import ImageSource

LIST = "manifest.json"
MARK = "oci-layout"


def open_archive(path: Path, asked: Digest | None) -> ImageSource:
    """The images of an archive. Raises PersonError LAYOUT, RefusedError for what is broken or ambiguous."""
    files = TarFiles(path)
    if files.length(MARK) is not None:
        return LayoutArchive(path, files, asked)
    if files.length(LIST) is None:
        raise PersonError(
            "LAYOUT", "not an archive of images", where=str(path), expected=f"{LIST} or {MARK}",
            remedy="name a file that docker save or skopeo copy docker-archive: wrote",
        )  # fmt: skip
    return OldArchive(path, files, asked)


class LayoutArchive(LayoutSource):
    """An `ImageSource` over the newer form; its `manifest.json` must name the same images."""

    def __init__(self, path: Path, files: TarFiles, asked: Digest | None) -> None:
        super().__init__(path, files)
        self._asked = asked
        self._check_list(files)

    def describe(self) -> str:
        """`docker-archive:FILE`."""
        return f"docker-archive:{self._root}"

    def manifest(self, digest: Digest) -> bytes | None:
        """As in a layout; the only image's document for the digest asked for, if that is not there."""
        found = super().manifest(digest)
        if found is None and digest == self._asked and (only := _only(self._images())):
            return super().manifest(only)
        return found

    def _images(self) -> list[Digest]:
        """Entries of index.json that are images, not what is attached to one."""
        found: list[Digest] = []
        for one in self.index_entries():
            raw = super().manifest(one.digest)
            attached = one.annotations.get(REF_NAME, "").startswith("sha256-")
            if raw is not None and not attached and kind_of(raw) in {Kind.INDEX, Kind.MANIFEST}:
                found.append(one.digest)
        return list(dict.fromkeys(found))

    def _check_list(self, files: TarFiles) -> None:
        raw = self._small(LIST) if files.length(LIST) is not None else None
        if raw is None:
            return
        there = {config for digest in self._images() for config in self._configs(digest)}
        for one in parse_archive_manifest(raw, f"{self._root}: {LIST}"):
            said = f"sha256:{one.config.removeprefix('blobs/sha256/').removesuffix('.json')}"
            if said not in there:
                raise RefusedError(
                    "MEDIATYPE_CONFUSION", "two lists of the archive name different images",
                    where=str(self._root), expected=", ".join(sorted(there)), actual=f"{LIST}: {said[:200]}",
                )  # fmt: skip

    def _configs(self, digest: Digest) -> Iterator[Digest]:
        raw = super().manifest(digest)
        if raw is not None and kind_of(raw) is Kind.INDEX:
            for child in parse_index(raw, digest).value.manifests:
                yield from self._configs(child.digest) if child.digest != digest else ()
        elif raw is not None:
            yield parse_manifest(raw, digest).value.config.digest


class OldArchive:
    """An `ImageSource` over the older form. Nothing can be attached in it."""

    def __init__(self, path: Path, files: TarFiles, asked: Digest | None) -> None:
        self._path, self._files, self._asked = path, files, asked
        self._documents: dict[Digest, bytes] = {}
        self._members: dict[Digest, str] = {}
        for one in parse_archive_manifest(self._small(LIST), f"{path}: {LIST}"):
            self._add(one.config, one.layers)

    def describe(self) -> str:
        """`docker-archive:FILE`."""
        return f"docker-archive:{self._path}"

    def manifest(self, digest: Digest) -> bytes | None:
        """The platform manifest that `docker load` makes; that of the only image for the digest asked for."""
        only = _only(list(self._documents))
        known = digest in self._documents or digest in self._members
        return self._documents.get(only if only and digest == self._asked and not known else digest)

    def blob(self, digest: Digest, size: int) -> Iterator[bytes] | None:
        """Pieces of a config or layer, at most `size` + 1 bytes in all; None when absent."""
        stream = self._files.open(self._members.get(digest, ""))
        return None if stream is None else pieces(stream, size + 1)

    def length(self, digest: Digest) -> int | None:
        """The length of a config or layer."""
        return self._files.length(self._members.get(digest, ""))

    def resolve(self, tag: str) -> Digest | None:
        """Nothing: names of an archive are not read."""
        return None

    def index_entries(self) -> tuple[Descriptor, ...]:
        """One entry for each image."""
        return tuple(entry_of(raw) for raw in self._documents.values())

    def referrers(self, subject: Digest) -> Referrers:
        """Nothing."""
        return Referrers(via="the archive: it can hold nothing that is attached")

    def _add(self, config: str, layers: tuple[str, ...]) -> None:
        raw, where = self._small(config), f"{self._path}: {config}"
        diff_ids = parse_config(raw, where).value.diff_ids
        sizes = [self._files.length(name) for name in layers]
        found = [size for size in sizes if size is not None]
        if not len(found) == len(layers) == len(diff_ids):
            raise RefusedError(
                "DIFFID", "the layers of the archive are not as many as the config names", where=where,
                expected=str(len(diff_ids)), actual=f"{len(found)} of {len(layers)} layers are there",
            )  # fmt: skip
        made = manifest_of(raw, diff_ids, found)
        self._documents[digest_of(made)] = made
        self._members |= {digest_of(raw): config, **dict(zip(diff_ids, layers, strict=True))}

    def _small(self, name: str) -> bytes:
        stream = self._files.open(name)
        raw = b"" if stream is None else b"".join(pieces(stream, MAX_MANIFEST_BYTES + 1))
        if stream is None or len(raw) > MAX_MANIFEST_BYTES:
            actual = "absent" if stream is None else "too large"
            raise RefusedError(
                "LAYOUT", "a document of the archive", where=f"{self._path}: {name}", actual=actual
            )
        return raw


def _only(digests: list[Digest]) -> Digest | None:
    return digests[0] if len(digests) == 1 else None
