"""The image half of `verify`: documents, presence and bytes of every blob, each judged by rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal

from tic_manifest.errors import PersonError, RefusedError, UnavailableError
from tic_manifest.formats.oci import kind_of, layer_encoding, parse_config, parse_index, parse_manifest
from tic_manifest.model.base import Digest
from tic_manifest.model.files import LayerTree
from tic_manifest.model.oci import (
    MANIFEST_TYPES,
    MAX_MANIFEST_BYTES,
    Blob,
    BlobFact,
    Descriptor,
    ImageIndex,
    ImageManifest,
    JudgedImage,
    Kind,
    Platform,
)
from tic_manifest.model.verdict import Check, Finding, State, Status, check_of, finding
from tic_manifest.ports import BlobReader, ImageSource, Progress, TreeReader, Wanted
from tic_manifest.rules import image as rules
from tic_manifest.stages.remembered import Remembered

Depth = Literal["identity", "content", "files"]
MAX_PLATFORMS = 64


@dataclass(kw_only=True)
class ReadImage:
    """Everything that was read of an image before its blobs are; `found` are findings by check."""

    source: Remembered
    index: ImageIndex | None = None
    index_digest: Digest | None = None
    index_descriptor: Descriptor | None = None
    images: list[JudgedImage] = field(default_factory=list)
    descriptors: dict[Digest, Descriptor] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    wanted: list[tuple[Digest, int]] = field(default_factory=list)
    """Digest and size of blobs that judging needs whole, at any depth."""
    blobs: dict[tuple[Digest, Digest | None], tuple[Blob, str]] = field(default_factory=dict)
    """By digest and diff id, each with the words that name it: one layer may stand at two places."""
    trees: dict[tuple[Digest, Digest | None], LayerTree | None] = field(default_factory=dict)
    documents: list[Finding] = field(default_factory=list)
    presence: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)


def read_image(place: ImageSource, digest: Digest) -> ReadImage:
    """The documents behind a digest, hashed and parsed.

    Raises PersonError DIGEST_KIND for a digest of a config, layer or artifact, UnavailableError NOT_FOUND.
    Malformed documents become refused findings.
    """
    source = place if isinstance(place, Remembered) else Remembered(place)
    read = ReadImage(source=source)
    raw, kind = _root(source, digest)
    media = "application/vnd.oci.image.index.v1+json"
    where = rules.label(kind, digest)
    wrong = rules.check_document(raw, None, digest, where)
    read.documents += wrong
    read.kinds[digest] = kind.value
    if wrong:
        return read
    try:
        if kind is Kind.INDEX:
            read.index_descriptor = Descriptor(media_type=media, digest=digest, size=len(raw))
            _read_index(read, raw, digest)
        else:
            _read_platform(read, raw, Descriptor(media_type=_MANIFEST, digest=digest, size=len(raw)), None)
    except RefusedError as error:
        read.documents.append(rules.refusal(error, where))
    return read


def select(read: ReadImage, platforms: Iterable[Digest]) -> None:
    """Register the blobs of the platforms that are judged, and of what is attached to the index."""
    wanted = set(platforms)
    for one in read.images:
        if one.platform_digest in wanted:
            _register_image(read, one)


def register(read: ReadImage, descriptor: Descriptor, subject: str) -> None:
    """Register a blob that is to be there and to be read."""
    read.blobs.setdefault((descriptor.digest, None), (Blob(descriptor=descriptor), subject))


def check_presence(read: ReadImage) -> None:
    """Ask for the stored length of every registered blob; small ones that judging needs are read at once."""
    read.source.fetch(read.wanted)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        digests = sorted({digest for digest, _ in read.blobs})
        lengths = dict(zip(digests, pool.map(read.source.length, digests), strict=True))
    for key, (blob, subject) in list(read.blobs.items()):
        stored = lengths[key[0]]
        read.presence += rules.check_presence(blob.descriptor, stored, subject)
        read.blobs[key] = (blob.model_copy(update={"stored": stored}), subject)


def check_bytes(read: ReadImage, reader: BlobReader, progress: Progress) -> list[Finding]:
    """Read every registered blob to its end and judge what came."""
    there = _there(read)
    return _judged(reader(read.source, [read.blobs[key][0] for key in there], progress), read, there)


def check_files(
    read: ReadImage, reader: TreeReader, progress: Progress, with_blob_id: Wanted
) -> list[Finding]:
    """As `check_bytes`, and keep what each layer's archive holds."""
    there = _there(read)
    facts, trees = reader(read.source, [read.blobs[key][0] for key in there], progress, with_blob_id)
    read.trees = dict(zip(there, trees, strict=True))
    return _judged(facts, read, there)


def layers_of(read: ReadImage, image: JudgedImage) -> list[LayerTree | None]:
    """The trees of an image's layers, the lowest first; None for one that was not read."""
    pairs = zip_longest(image.manifest.layers, image.config.diff_ids)
    return [read.trees.get((layer.digest, diff_id)) for layer, diff_id in pairs if layer is not None]


def _there(read: ReadImage) -> list[tuple[Digest, Digest | None]]:
    return [key for key, (blob, _) in read.blobs.items() if blob.stored is not None]


def _judged(
    facts: list[BlobFact], read: ReadImage, keys: list[tuple[Digest, Digest | None]]
) -> list[Finding]:
    pairs = zip(facts, keys, strict=True)
    return [one for fact, key in pairs for one in rules.check_read(fact, read.blobs[key][1])]


def checks_of(read: ReadImage, depth: Depth, content: list[Finding] | None) -> list[Check]:
    """One row for each question; what the depth leaves unread is out of scope, never passed."""
    rows = [check_of("image.documents", read.documents)]
    if read.documents and not read.images:
        reason = "the documents could not be read"
        return [*rows, Check(id="image.presence", status=Status.NOT_RUN, reason=reason)]
    rows.append(check_of("image.presence", read.presence))
    if content is not None:
        rows.append(check_of("image.bytes", content))
    else:
        rows.append(_unread("image.bytes", f"depth {depth}: no blob was read"))
    return rows


def not_read(read: ReadImage, depth: Depth) -> tuple[str, ...]:
    """What this depth leaves unread, in words and numbers."""
    there = [blob for blob, _ in read.blobs.values()]
    size = sum(blob.descriptor.size for blob in there)
    blobs = (f"{len(there)} blobs, {size} bytes",) if depth == "identity" else ()
    if depth == "files":
        return ()
    return (
        *blobs,
        "the effective tree of each layer stack: RECORDs of distributions, trees of pull requests",
    )


def _unread(check_id: str, reason: str) -> Check:
    return Check(id=check_id, state=State.OUT_OF_SCOPE, status=Status.NOT_RUN, reason=reason)


_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def _root(source: ImageSource, digest: Digest) -> tuple[bytes, Kind]:
    raw = source.manifest(digest)
    if raw is None and source.length(digest) is None:
        raise UnavailableError(
            "NOT_FOUND", "no document has this digest here", where=f"{source.describe()}@{digest}",
            remedy="check repository and digest",
        )  # fmt: skip
    if raw is None:
        raw = b"".join(source.blob(digest, MAX_MANIFEST_BYTES) or ())
    kind = kind_of(raw)
    if kind in {Kind.INDEX, Kind.MANIFEST} or (len(raw) <= MAX_MANIFEST_BYTES and _is_damaged(raw, digest)):
        return raw, kind if kind in {Kind.INDEX, Kind.MANIFEST} else Kind.MANIFEST
    raise _wrong_kind(source, digest, kind)


def _is_damaged(raw: bytes, digest: Digest) -> bool:
    return bool(rules.check_document(raw, None, digest, ""))


def _wrong_kind(source: ImageSource, digest: Digest, kind: Kind) -> PersonError:
    variant = {Kind.CONFIG: "config", Kind.LAYER: "layer", Kind.ARTIFACT: "artifact"}.get(kind, "unknown")
    named = [f"{source.describe()}@{one}" for one in _who_names(source, digest)]
    return PersonError(
        f"DIGEST_KIND/{variant}",
        f"this is the digest of a {kind.value}, not of a platform manifest or image index",
        where=f"{source.describe()}@{digest}",
        expected="the digest of a platform manifest or an image index",
        actual=f"the digest of a {kind.value}",
        remedy=f"it is part of {', '.join(named)}" if named else "name the image that it is part of",
    )


def _who_names(source: ImageSource, digest: Digest) -> list[Digest]:
    """Platform manifests of a layout that name a blob; nothing can be said of a registry."""
    found: list[Digest] = []
    for entry in source.index_entries()[:MAX_PLATFORMS]:
        for one in _platforms_below(source, entry):
            raw = source.manifest(one)
            if raw is not None and digest.encode() in raw:
                found.append(one)
    return list(dict.fromkeys(found))


def _platforms_below(source: ImageSource, entry: Descriptor) -> list[Digest]:
    raw = source.manifest(entry.digest)
    if raw is None or kind_of(raw) is not Kind.INDEX:
        return [entry.digest]
    try:
        return [one.digest for one in parse_index(raw, entry.digest).value.manifests[:MAX_PLATFORMS]]
    except RefusedError:
        return []


def _read_index(read: ReadImage, raw: bytes, digest: Digest) -> None:
    parsed = parse_index(raw, rules.label(Kind.INDEX, digest))
    read.index, read.index_digest = parsed.value, digest
    read.notes += rules.unknown_keys(parsed.unknown, rules.label(Kind.INDEX, digest))
    if len(parsed.value.manifests) > MAX_PLATFORMS:
        raise RefusedError(
            "SCHEMA", "too many entries in an image index", expected=f"at most {MAX_PLATFORMS}",
            actual=str(len(parsed.value.manifests)),
        )  # fmt: skip
    for child in parsed.value.manifests:
        _read_child(read, child)
    _refuse_ambiguous(read)


def _read_child(read: ReadImage, child: Descriptor) -> None:
    attached = rules.is_attestation(child)
    kind = Kind.ARTIFACT if attached else Kind.MANIFEST
    where = rules.label(kind, child.digest, child.platform)
    _refuse_odd(child, where, attached)
    read.kinds[child.digest] = "attestation of BuildKit" if attached else kind.value
    raw = read.source.manifest(child.digest)
    if raw is None:
        read.documents += rules.check_presence(child, None, where)
        return
    wrong = rules.check_document(raw, child, child.digest, where)
    read.documents += wrong
    if any(one.code == "MANIFEST_DIGEST" for one in wrong):
        return
    try:
        if attached:
            _register_attached(read, parse_manifest(raw, where, child.media_type).value)
        else:
            _read_platform(read, raw, child, child.platform)
    except RefusedError as error:
        read.documents.append(rules.refusal(error, where))


def _refuse_odd(child: Descriptor, where: str, attached: bool) -> None:
    if child.media_type not in MANIFEST_TYPES:
        raise RefusedError(
            "SCHEMA", "an image index may hold platform manifests alone: tools read others differently",
            where=where, expected=" or ".join(sorted(MANIFEST_TYPES)), actual=child.media_type,
        )  # fmt: skip
    unknown = child.platform is not None and "unknown" in (child.platform.os, child.platform.architecture)
    if unknown and not attached:
        raise RefusedError(
            "SCHEMA", "a child of no known platform is not marked as an attestation", where=where,
            expected="annotation vnd.docker.reference.type: attestation-manifest",
        )  # fmt: skip


def _refuse_ambiguous(read: ReadImage) -> None:
    seen: dict[str, Digest] = {}
    for one in read.images:
        first = seen.setdefault(str(one.platform), one.platform_digest)
        if first != one.platform_digest:
            raise RefusedError(
                "SCHEMA", "two entries of the image index are for one platform: tools choose differently",
                expected="one", actual=f"{one.platform}: {first}, {one.platform_digest}",
            )  # fmt: skip


def _read_platform(read: ReadImage, raw: bytes, descriptor: Descriptor, described: Platform | None) -> None:
    where = rules.label(Kind.MANIFEST, descriptor.digest, described)
    parsed = parse_manifest(raw, where, descriptor.media_type if described else None)
    manifest = parsed.value
    read.notes += rules.unknown_keys(parsed.unknown, where)
    read.descriptors[descriptor.digest] = descriptor.model_copy(update={"media_type": manifest.media_type})
    read.kinds[manifest.config.digest] = Kind.CONFIG.value
    config_where = rules.label(Kind.CONFIG, manifest.config.digest)
    raw_config = _config_bytes(read, manifest, config_where)
    if raw_config is None:
        return
    config = parse_config(raw_config, config_where, manifest.config.media_type)
    read.notes += rules.unknown_keys(config.unknown, config_where)
    read.documents += rules.check_layers(manifest, config.value, where)
    read.documents += rules.check_platform(described, config.value, where)
    read.documents += rules.check_twice(config.value.env, config_where)
    read.images.append(
        JudgedImage(
            index_digest=read.index_digest, platform_digest=descriptor.digest,
            platform=described or config.value.platform, manifest=manifest, config=config.value,
        )
    )  # fmt: skip


def _config_bytes(read: ReadImage, manifest: ImageManifest, where: str) -> bytes | None:
    asked = min(manifest.config.size, MAX_MANIFEST_BYTES)
    pieces = read.source.blob(manifest.config.digest, asked)
    if pieces is None:
        read.documents += rules.check_presence(manifest.config, None, where)
        return None
    raw = b"".join(pieces)
    if len(raw) > asked:  # it is longer than its descriptor says: all of it tells whether it is the one named
        raw = b"".join(read.source.blob(manifest.config.digest, MAX_MANIFEST_BYTES) or ())
    wrong = rules.check_document(raw, manifest.config, manifest.config.digest, where)
    for one in wrong:
        code = "BLOB_DIGEST" if one.code == "MANIFEST_DIGEST" else one.code
        read.documents.append(
            finding(code, one.status, where, expected=one.expected, actual=one.actual, remedy=one.remedy)
        )
    return None if any(one.code == "MANIFEST_DIGEST" for one in wrong) else raw


def _register_attached(read: ReadImage, manifest: ImageManifest) -> None:
    for one in (manifest.config, *manifest.layers):
        register(read, one, f"blob {one.digest} of an attestation of BuildKit")


def _register_image(read: ReadImage, one: JudgedImage) -> None:
    place = f"platform manifest {one.platform_digest}"
    register(read, one.manifest.config, f"config {one.manifest.config.digest}")
    for number, layer in enumerate(one.manifest.layers):
        diff_id = one.config.diff_ids[number] if number < len(one.config.diff_ids) else None
        encoding = layer_encoding(layer.media_type)
        blob = Blob(descriptor=layer, encoding=encoding, diff_id=diff_id, layer=number + 1)
        read.blobs.setdefault((layer.digest, diff_id), (blob, f"layer {number + 1} of {place}"))
        read.kinds[layer.digest] = Kind.LAYER.value
