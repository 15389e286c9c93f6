"""Attach a delivery manifest and its evidence to an image in a layout (contract, section 6).

Every write is whole or not at all, blobs come first and index.json last: a kill leaves the old layout or the
new one. Doing it again with the same bytes changes nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from tic_manifest.adapters.layout import LayoutSource, fallback_tag, open_file, pieces
from tic_manifest.errors import RefusedError, UnavailableError
from tic_manifest.formats.artifact import (
    EMPTY_JSON,
    artifact_bytes,
    artifact_descriptor,
    attestation_bytes,
    attestation_config_bytes,
    evidence_layers,
    merge_referrers,
    referrers_bytes,
    sbom_layer,
)
from tic_manifest.formats.canonical import digest_of
from tic_manifest.formats.statement import Signed
from tic_manifest.formats.strict_json import load_json
from tic_manifest.model.base import Digest
from tic_manifest.model.delivery import (
    BUNDLE_TYPE,
    DSSE_TYPE,
    EVIDENCE_TYPE,
    SBOM_FILE,
    SBOM_TYPE,
    STATEMENT_TYPE,
)
from tic_manifest.model.oci import INDEX, MANIFEST, REF_NAME, Descriptor
from tic_manifest.model.receipt import Artifact


class LayoutWriter:
    """Adds documents to a layout so that a kill leaves the old layout or the new one, never a half."""

    def __init__(self, root: Path) -> None:
        self._root = root
        LayoutSource(root)

    def put(self, data: bytes) -> Digest:
        """Store small bytes as a blob; nothing happens where it is there already, whole."""
        digest = digest_of(data)
        target = self._blob(digest)
        if not _holds(target, len(data), digest):
            _replace(target, data)
        return digest

    def put_file(self, source: Path, digest: Digest, size: int) -> None:
        """Store a file as a blob. Raises RefusedError BLOB_DIGEST where its bytes are others."""
        target = self._blob(digest)
        if not _holds(target, size, digest):
            _copy(source, target, digest, size)

    def tag(self, entries: dict[str, Descriptor]) -> None:
        """Set `ref.name` entries of index.json; entries of other names stay as they are."""
        path = self._root / "index.json"
        data = load_json(path.read_bytes(), str(path))
        kept = [
            one for one in data["manifests"] if (one.get("annotations") or {}).get(REF_NAME) not in entries
        ]
        data["manifests"] = kept + [_entry(name, one) for name, one in sorted(entries.items())]
        raw = _plain_json(data)
        if raw != path.read_bytes():
            _replace(path, raw)

    def _blob(self, digest: Digest) -> Path:
        folder = self._root / "blobs" / "sha256"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / digest.removeprefix("sha256:")


def _entry(name: str, descriptor: Descriptor) -> dict[str, object]:
    data = descriptor.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    return {**data, "annotations": {**descriptor.annotations, REF_NAME: name}}


def _plain_json(data: object) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


def _holds(path: Path, size: int, digest: Digest) -> bool:
    if not path.is_file() or path.is_symlink() or path.stat().st_size != size:
        return False
    with path.open("rb") as stream:
        return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest() == digest


def _replace(target: Path, data: bytes) -> None:
    with _temporary(target) as (stream, commit):
        stream.write(data)
        commit()


def _copy(source: Path, target: Path, digest: Digest, size: int) -> None:
    handle = open_file(source)
    if handle is None:
        raise UnavailableError("BLOB_MISSING", "a file of evidence is gone", where=str(source))
    hasher = hashlib.sha256()
    with _temporary(target) as (stream, commit):
        for piece in pieces(handle, size + 1):
            hasher.update(piece)
            stream.write(piece)
        if "sha256:" + hasher.hexdigest() != digest:
            raise RefusedError(
                "BLOB_DIGEST", "a file of evidence changed", where=str(source), expected=digest
            )
        commit()


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[tuple[IO[bytes], Callable[[], None]]]:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".new-")
    done = False

    def commit() -> None:
        nonlocal done
        stream.flush()
        os.fsync(stream.fileno())
        os.chmod(name, 0o644)
        done = True

    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream, commit
        if done:
            os.replace(name, target)
    except OSError as error:
        code = "DISK_FULL" if error.errno == 28 else "RIGHTS"
        raise UnavailableError(code, "cannot write", where=str(target), actual=str(error)) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def attach(
    layout: Path,
    platform: Descriptor,
    index: Descriptor | None,
    statement: bytes,
    evidence: Mapping[str, bytes | Path],
    *,
    signed: Signed | None = None,
) -> tuple[Descriptor, ...]:
    """Attach a Statement to platform manifest and image index, and every file of evidence to the former.

    `evidence` is name to bytes or file. Unsigned, the raw Statement is attached; signed, the bundle and, for
    cosign 2, the envelope under the tag `sha256-<hex>.att`. Returns the descriptors of the artifacts.

    Raises UnavailableError (DISK_FULL, RIGHTS, BLOB_MISSING), RefusedError (LAYOUT, BLOB_DIGEST).
    """
    writer = LayoutWriter(layout)
    writer.put(EMPTY_JSON)
    kind, layer = _statement_layer(writer, statement, signed)
    entries: dict[str, Descriptor] = {}
    made: list[Descriptor] = []
    for subject in (platform, *([index] if index else [])):
        artifacts = [_put_artifact(writer, kind, subject, (layer,))]
        if subject is platform:
            artifacts.append(_put_evidence(writer, platform, evidence))
            artifacts += _put_sbom(writer, platform, evidence)
        if signed:
            entries[f"{fallback_tag(subject.digest)}.att"] = _put_attestation(writer, signed)
        entries[fallback_tag(subject.digest)] = _put_referrers(layout, writer, subject.digest, artifacts)
        made += artifacts
    writer.tag(entries)
    return tuple(made)


def artifact_of(name: str, content: bytes | Path) -> Artifact:
    """Name, digest and size in bytes of a file of evidence, as the predicate lists it."""
    if isinstance(content, bytes):
        return Artifact(name=name, digest=digest_of(content), size=len(content))
    stream = open_file(content)
    if stream is None:
        raise UnavailableError("BLOB_MISSING", "a file of evidence is gone", where=str(content))
    hasher, size = hashlib.sha256(), 0
    for piece in pieces(stream, 1 << 62):
        hasher.update(piece)
        size += len(piece)
    return Artifact(name=name, digest="sha256:" + hasher.hexdigest(), size=size)


def _statement_layer(writer: LayoutWriter, statement: bytes, signed: Signed | None) -> tuple[str, Descriptor]:
    raw, kind = (signed.bundle, BUNDLE_TYPE) if signed else (statement, STATEMENT_TYPE)
    return kind, Descriptor(media_type=kind, digest=writer.put(raw), size=len(raw))


def _put_artifact(
    writer: LayoutWriter, kind: str, subject: Descriptor, layers: Sequence[Descriptor]
) -> Descriptor:
    raw = artifact_bytes(kind, subject, layers)
    writer.put(raw)
    return artifact_descriptor(raw, kind)


def _put_evidence(
    writer: LayoutWriter, platform: Descriptor, evidence: Mapping[str, bytes | Path]
) -> Descriptor:
    files = [artifact_of(name, content) for name, content in evidence.items()]
    for one in files:
        content = evidence[one.name]
        if isinstance(content, bytes):
            writer.put(content)
        else:
            writer.put_file(content, one.digest, one.size)
    return _put_artifact(writer, EVIDENCE_TYPE, platform, evidence_layers(files))


def _put_sbom(
    writer: LayoutWriter, platform: Descriptor, evidence: Mapping[str, bytes | Path]
) -> list[Descriptor]:
    """The SBOM as an artifact of its own, where tools look for one; its bytes are those of the evidence."""
    if SBOM_FILE not in evidence:
        return []
    file = artifact_of(SBOM_FILE, evidence[SBOM_FILE])
    return [_put_artifact(writer, SBOM_TYPE, platform, (sbom_layer(file),))]


def _put_attestation(writer: LayoutWriter, signed: Signed) -> Descriptor:
    envelope = Descriptor(media_type=DSSE_TYPE, digest=writer.put(signed.envelope), size=len(signed.envelope))
    writer.put(attestation_config_bytes(envelope))
    raw = attestation_bytes(envelope)
    return Descriptor(media_type=MANIFEST, digest=writer.put(raw), size=len(raw))


def _put_referrers(
    layout: Path, writer: LayoutWriter, subject: Digest, artifacts: Sequence[Descriptor]
) -> Descriptor:
    known = LayoutSource(layout).referrers(subject)
    if known.problems:
        raise RefusedError("REFERRERS_INVALID", known.problems[0], where=known.via)
    raw = referrers_bytes(merge_referrers(known.entries, artifacts))
    return Descriptor(media_type=INDEX, digest=writer.put(raw), size=len(raw))
