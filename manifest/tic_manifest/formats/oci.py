"""Raw OCI and Docker image documents to values, read as strictly as two different readers would agree on.

Source of the rules: contract, section 6; image-spec manifest.md, image-index.md, config.md, descriptor.md.
Known keys must be spelled exactly and have their type; an unknown key is ignored and noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from tic_manifest.errors import RefusedError
from tic_manifest.formats.strict_json import case_variants, first_error, fold, load_json
from tic_manifest.model.base import Value
from tic_manifest.model.oci import (
    CONFIG_TYPES,
    INDEX_TYPES,
    MANIFEST_TYPES,
    MAX_MANIFEST_BYTES,
    Descriptor,
    Encoding,
    ImageConfig,
    ImageIndex,
    ImageManifest,
    Kind,
)

MAX_CONFIG_BYTES = 8 << 20
MAX_DEPTH = 32

_DESCRIPTOR = ("mediaType", "digest", "size", "urls", "annotations", "data", "platform", "artifactType")
_PLATFORM = ("architecture", "os", "os.version", "os.features", "variant", "features")
_MANIFEST = ("schemaVersion", "mediaType", "artifactType", "config", "layers", "subject", "annotations")
_INDEX = ("schemaVersion", "mediaType", "artifactType", "manifests", "subject", "annotations")
_CONFIG = (
    "created", "author", "architecture", "os", "os.version", "os.features", "variant", "config", "rootfs",
    "history",
)  # fmt: skip
_CONFIG_DOCKER = ("container", "container_config", "docker_version", "id", "parent", "comment", "Size")
_RUN = (
    "User", "ExposedPorts", "Env", "Entrypoint", "Cmd", "Volumes", "WorkingDir", "Labels", "StopSignal",
    "ArgsEscaped", "Memory", "MemorySwap", "CpuShares", "Healthcheck",
)  # fmt: skip
_RUN_DOCKER = (
    "Hostname", "Domainname", "AttachStdin", "AttachStdout", "AttachStderr", "Tty", "OpenStdin", "StdinOnce",
    "Image", "OnBuild", "Shell", "NetworkDisabled", "MacAddress", "StopTimeout",
)  # fmt: skip
_ROOTFS = ("type", "diff_ids")
_OF_OTHERS = {
    "manifest": ("manifests", "fsLayers", "signatures", "history"),
    "index": ("config", "layers", "fsLayers", "signatures", "history"),
}

_KIND_OF_TYPE = dict.fromkeys(INDEX_TYPES, Kind.INDEX) | dict.fromkeys(MANIFEST_TYPES, Kind.MANIFEST)
_OCI_LAYERS = (
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
)
_DOCKER_LAYERS = {
    "application/vnd.docker.image.rootfs.diff.tar": Encoding.TAR,
    "application/vnd.docker.image.rootfs.diff.tar.gzip": Encoding.GZIP,
    "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip": Encoding.GZIP,
    "application/vnd.docker.image.rootfs.diff.tar.zstd": Encoding.ZSTD,
}

T = TypeVar("T", bound=Value)


@dataclass(frozen=True, kw_only=True)
class Parsed(Generic[T]):
    """A document and the paths of keys that were ignored because they are not known."""

    value: T
    unknown: tuple[str, ...]


def kind_of(raw: bytes) -> Kind:
    """What a blob looks like: a document by its shape, a layer by its first bytes. Never raises."""
    if raw[:2] == b"\x1f\x8b" or raw[:4] == b"\x28\xb5\x2f\xfd" or raw[257:262] == b"ustar":
        return Kind.LAYER
    try:
        data = load_json(raw, "blob", max_bytes=MAX_CONFIG_BYTES, max_depth=MAX_DEPTH)
    except RefusedError as error:
        return Kind.MANIFEST if error.code in {"JSON_DUPLICATE_KEY", "JSON_DEPTH"} else Kind.UNKNOWN
    if not isinstance(data, dict):
        return Kind.UNKNOWN
    return _kind_of_object(data)


def _kind_of_object(data: dict[str, Any]) -> Kind:
    keys = {fold(key) for key in data}
    if "manifests" in keys:
        return Kind.INDEX
    if keys & {"layers", "fslayers"} or _is_one_of(data.get("mediaType"), MANIFEST_TYPES):
        config = data.get("config")
        said = config.get("mediaType") if isinstance(config, dict) else None
        return Kind.ARTIFACT if "subject" in keys and not _is_one_of(said, CONFIG_TYPES) else Kind.MANIFEST
    return Kind.CONFIG if "rootfs" in keys else Kind.UNKNOWN


def _is_one_of(value: Any, allowed: frozenset[str]) -> bool:
    return isinstance(value, str) and value in allowed


def parse_manifest(raw: bytes, where: str, media_type: str | None = None) -> Parsed[ImageManifest]:
    """A platform manifest or artifact; `media_type` is what its descriptor says.

    Raises RefusedError: what `load_json` raises, JSON_CASE_VARIANT, MEDIATYPE_CONFUSION, SCHEMA.
    """
    data = _document(raw, where, MAX_MANIFEST_BYTES)
    _one_kind(data, "manifest", where)
    reader = _Reader(where)
    known = reader.object(data, _MANIFEST, "$")
    fields = {
        "media_type": _media_type(data, media_type, MANIFEST_TYPES, where),
        "config": reader.descriptor(known.get("config"), "$.config"),
        "layers": reader.descriptors(known.get("layers"), "$.layers"),
        "artifact_type": known.get("artifactType"),
        "subject": reader.optional(known.get("subject"), "$.subject"),
        "annotations": known.get("annotations") or {},
    }
    return Parsed(value=_build(ImageManifest, fields, where), unknown=tuple(reader.unknown))


def parse_index(raw: bytes, where: str, media_type: str | None = None) -> Parsed[ImageIndex]:
    """An image index; raises as `parse_manifest`."""
    data = _document(raw, where, MAX_MANIFEST_BYTES)
    _one_kind(data, "index", where)
    reader = _Reader(where)
    known = reader.object(data, _INDEX, "$")
    fields = {
        "media_type": _media_type(data, media_type, INDEX_TYPES, where),
        "manifests": reader.descriptors(known.get("manifests"), "$.manifests"),
        "artifact_type": known.get("artifactType"),
        "subject": reader.optional(known.get("subject"), "$.subject"),
        "annotations": known.get("annotations") or {},
    }
    return Parsed(value=_build(ImageIndex, fields, where), unknown=tuple(reader.unknown))


def parse_config(raw: bytes, where: str, media_type: str | None = None) -> Parsed[ImageConfig]:
    """A config; raises as `parse_manifest`. Keys that only Docker writes are known and not used."""
    if media_type is not None and media_type not in CONFIG_TYPES:
        raise _confused(where, "the media type of a config", media_type)
    data = _document(raw, where, MAX_CONFIG_BYTES)
    reader = _Reader(where)
    known = reader.object(data, _CONFIG + _CONFIG_DOCKER, "$")
    run = reader.object(known.get("config") or {}, _RUN + _RUN_DOCKER, "$.config")
    rootfs = reader.object(known.get("rootfs"), _ROOTFS, "$.rootfs")
    if rootfs.get("type") != "layers":
        raise _schema(where, "$.rootfs.type", "layers", rootfs.get("type"))
    fields = {
        "architecture": known.get("architecture"),
        "os": known.get("os"),
        "variant": known.get("variant"),
        "env": _strings(run.get("Env")),
        "entrypoint": _strings(run.get("Entrypoint")),
        "cmd": _strings(run.get("Cmd")),
        "user": run.get("User") or "",
        "working_dir": run.get("WorkingDir") or "",
        "labels": run.get("Labels") or {},
        "diff_ids": _strings(rootfs.get("diff_ids")),
    }
    return Parsed(value=_build(ImageConfig, fields, where), unknown=tuple(reader.unknown))


class _Reader:
    """Takes known keys out of objects and remembers the others."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.unknown: list[str] = []

    def object(self, data: Any, known: tuple[str, ...], path: str) -> dict[str, Any]:
        """The known keys of an object. Raises RefusedError JSON_CASE_VARIANT or SCHEMA."""
        if not isinstance(data, dict):
            raise _schema(self.where, path, "an object", data)
        refuse_variants(data, known, self.where, path)
        self.unknown += [f"{path}.{key}" for key in data if key not in known]
        return {key: data[key] for key in known if key in data}

    def descriptor(self, data: Any, path: str) -> Descriptor:
        """A descriptor; its inline `data` must not stand for other bytes and is not used."""
        known = self.object(data, _DESCRIPTOR, path)
        platform = known.get("platform")
        fields = {
            "media_type": known.get("mediaType"),
            "digest": known.get("digest"),
            "size": known.get("size"),
            "artifact_type": known.get("artifactType"),
            "annotations": known.get("annotations") or {},
            "platform": None if platform is None else self._platform(platform, f"{path}.platform"),
        }
        return _build(Descriptor, fields, self.where, path)

    def descriptors(self, data: Any, path: str) -> tuple[Descriptor, ...]:
        """A list of descriptors. Raises RefusedError SCHEMA."""
        if not isinstance(data, list):
            raise _schema(self.where, path, "a list", data)
        return tuple(self.descriptor(one, f"{path}[{index}]") for index, one in enumerate(data))

    def optional(self, data: Any, path: str) -> Descriptor | None:
        """A descriptor that may be absent."""
        return None if data is None else self.descriptor(data, path)

    def _platform(self, data: Any, path: str) -> dict[str, Any]:
        known = self.object(data, _PLATFORM, path)
        return {key: known[key] for key in ("architecture", "os", "variant") if key in known}


def refuse_variants(data: Mapping[str, Any], known: Iterable[str], where: str, path: str) -> None:
    """Raises RefusedError JSON_CASE_VARIANT where a key would be taken for a known one."""
    variants = case_variants(data, known)
    if variants:
        raise RefusedError(
            "JSON_CASE_VARIANT",
            "a key differs from a known key by letter case alone",
            where=where,
            expected="keys as the specification spells them",
            actual=", ".join(f"{path}.{ascii(key)[1:-1]}" for key in variants[:5]),
        )


def _document(raw: bytes, where: str, limit: int) -> dict[str, Any]:
    data = load_json(raw, where, max_bytes=limit, max_depth=MAX_DEPTH)
    if not isinstance(data, dict):
        raise _schema(where, "$", "an object", data)
    return data


def _one_kind(data: dict[str, Any], kind: str, where: str) -> None:
    foreign = sorted(key for key in _OF_OTHERS[kind] if key in data)
    if foreign:
        raise _confused(where, f"the keys of an image {kind} alone", ", ".join(foreign))
    version = data.get("schemaVersion")
    if version != 2 or isinstance(version, bool):
        raise _schema(where, "$.schemaVersion", "2", version)


def _media_type(data: dict[str, Any], described: str | None, allowed: frozenset[str], where: str) -> str:
    said = data.get("mediaType")
    if said is not None and not isinstance(said, str):
        raise _schema(where, "$.mediaType", "text", said)
    if said is not None and described is not None and said != described:
        raise _confused(where, f"the media type of its descriptor, {described}", said)
    media_type = said or described or (min(allowed, key=lambda one: "docker" in one))
    if media_type not in allowed:
        raise _confused(where, " or ".join(sorted(allowed)), media_type)
    return media_type


def _strings(value: Any) -> Any:
    return () if value is None else tuple(value) if isinstance(value, list) else value


def _build(model: type[T], fields: dict[str, Any], where: str, path: str = "$") -> T:
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise RefusedError(
            "SCHEMA", "document does not fit the OCI image specification", where=where,
            actual=path + first_error(error)[1:],
        ) from error  # fmt: skip


def _schema(where: str, path: str, expected: str, actual: Any) -> RefusedError:
    shown = ascii(actual)
    return RefusedError(
        "SCHEMA", f"{path} does not fit the OCI image specification", where=where, expected=expected,
        actual=shown if len(shown) <= 120 else shown[:120] + "...",
    )  # fmt: skip


def _confused(where: str, expected: str, actual: str) -> RefusedError:
    return RefusedError(
        "MEDIATYPE_CONFUSION",
        "a document can be read as two kinds",
        where=where,
        expected=expected,
        actual=actual,
    )


def subject_of(raw: bytes) -> str | None:
    """The digest that a document says it is about; None for anything else. Never raises."""
    try:
        data = load_json(raw, "document", max_bytes=MAX_MANIFEST_BYTES, max_depth=MAX_DEPTH)
    except RefusedError:
        return None
    subject = data.get("subject") if isinstance(data, dict) else None
    digest = subject.get("digest") if isinstance(subject, dict) else None
    return digest if isinstance(digest, str) else None


def check_content_type(raw: bytes, header: str, where: str) -> None:
    """The Content-Type of an answer against the document's own media type, where both name one of an image.

    Raises RefusedError MEDIATYPE_CONFUSION. A body that is no JSON object says nothing here.
    """
    sent = header.partition(";")[0].strip().lower()
    try:
        data = load_json(raw, where, max_bytes=MAX_MANIFEST_BYTES, max_depth=MAX_DEPTH)
    except RefusedError:
        return
    said = data.get("mediaType") if isinstance(data, dict) else None
    known = INDEX_TYPES | MANIFEST_TYPES
    if said is None and isinstance(data, dict) and sent in known:
        said = sent if _kind_of_object(data) is _KIND_OF_TYPE[sent] else "a document of another kind"
    if sent in known and said != sent:
        raise _confused(where, f"the media type that was sent, {sent}", ascii(said))


def layer_encoding(media_type: str) -> Encoding | None:
    """The encoding that a layer's media type names; None for a type that is no layer of a file system."""
    base, _, suffix = media_type.partition("+")
    if media_type in _DOCKER_LAYERS:
        return _DOCKER_LAYERS[media_type]
    if base not in _OCI_LAYERS:
        return None
    return {"": Encoding.TAR, "gzip": Encoding.GZIP, "zstd": Encoding.ZSTD}.get(suffix)


def is_foreign(media_type: str) -> bool:
    """Whether the layer may lie outside the registry; links to there are never followed."""
    return "nondistributable" in media_type or ".foreign." in media_type
