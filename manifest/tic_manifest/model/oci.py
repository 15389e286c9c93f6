"""OCI values as this tool uses them: descriptors, the documents of an image, references, facts of blobs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from tic_manifest.model.base import Digest, Value

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_CONFIG = "application/vnd.docker.container.image.v1+json"
EMPTY = "application/vnd.oci.empty.v1+json"
INDEX_TYPES = frozenset({INDEX, DOCKER_INDEX})
MANIFEST_TYPES = frozenset({MANIFEST, DOCKER_MANIFEST})
CONFIG_TYPES = frozenset({CONFIG, DOCKER_CONFIG})

REF_NAME = "org.opencontainers.image.ref.name"
TITLE = "org.opencontainers.image.title"
ATTESTATION_KIND = "vnd.docker.reference.type"
ATTESTATION_OF = "vnd.docker.reference.digest"

MAX_MANIFEST_BYTES = 4 << 20
"""A platform manifest, image index or config is at most this long (distribution-spec: 4 MiB)."""


class Kind(StrEnum):
    """What a digest names. Never say bare "manifest"."""

    INDEX = "image index"
    MANIFEST = "platform manifest"
    CONFIG = "config"
    LAYER = "layer"
    ARTIFACT = "artifact"
    UNKNOWN = "blob"


class Encoding(StrEnum):
    """How a layer's bytes are packed."""

    TAR = "tar"
    GZIP = "gzip"
    ZSTD = "zstd"


class Platform(Value):
    """Platform of an image, as in an index."""

    architecture: str
    os: str
    variant: str | None = None

    def __str__(self) -> str:
        parts = (self.os, self.architecture, self.variant)
        return "/".join(part for part in parts if part)


class Descriptor(Value):
    """A typed link to bytes; `size` in bytes. Links out of the store (`urls`) are dropped: never followed."""

    media_type: str
    digest: Digest
    size: Annotated[int, Field(ge=0, le=1 << 62)]
    artifact_type: str | None = None
    platform: Platform | None = None
    annotations: dict[str, str] = {}


class ImageIndex(Value):
    """An image index: one descriptor per platform, and attached children."""

    media_type: str
    manifests: tuple[Descriptor, ...]
    artifact_type: str | None = None
    subject: Descriptor | None = None
    annotations: dict[str, str] = {}


class ImageManifest(Value):
    """A platform manifest, or an artifact of the same shape."""

    media_type: str
    config: Descriptor
    layers: tuple[Descriptor, ...]
    artifact_type: str | None = None
    subject: Descriptor | None = None
    annotations: dict[str, str] = {}

    @property
    def type_of_artifact(self) -> str:
        """`artifactType`, else the config's media type (image-spec, manifest.md)."""
        return self.artifact_type or self.config.media_type


class ImageConfig(Value):
    """What a config says about running the image; `diff_ids` in the order of the layers."""

    architecture: str
    os: str
    variant: str | None = None
    env: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    user: str = ""
    working_dir: str = ""
    labels: dict[str, str] = {}
    diff_ids: tuple[Digest, ...] = ()

    @property
    def platform(self) -> Platform:
        """The platform that the config names."""
        return Platform(architecture=self.architecture, os=self.os, variant=self.variant)


class ImageReference(Value):
    """Where an image is and which one. Exactly one of `layout`, `archive` and `registry` is set.

    `registry` is HOST[:PORT]; `tag` is set, and `digest` is not, where a name that can move was given.
    """

    layout: str | None = None
    archive: str | None = None
    """A file that `docker save` wrote: read, never written."""
    registry: str | None = None
    repository: str | None = None
    digest: Digest | None = None
    tag: str | None = None

    @property
    def place(self) -> str:
        """The reference without digest or tag."""
        if self.archive is not None:
            return f"docker-archive:{self.archive}"
        return f"oci:{self.layout}" if self.layout is not None else f"{self.registry}/{self.repository}"

    def at(self, digest: Digest) -> str:
        """The reference of another document in the same place."""
        return f"{self.place}@{digest}"

    def __str__(self) -> str:
        return self.at(self.digest) if self.digest else f"{self.place}:{self.tag or ''}"


class Blob(Value):
    """A blob that is to be read: what its descriptor and, for a layer, the config say of it."""

    descriptor: Descriptor
    encoding: Encoding | None = None
    """Set for layers whose unpacked bytes are hashed as well."""
    diff_id: Digest | None = None
    layer: int | None = None
    """The number of a layer in its platform manifest, from 1."""
    stored: int | None = None
    """The stored length in bytes, where it is known: all of it is read, whatever the descriptor says."""

    @property
    def limit(self) -> int:
        """How many bytes are read at most, and one more to see that there are more."""
        return max(self.descriptor.size, self.stored or 0)


class BlobFact(Value):
    """What was read of a blob. `digest` and `diff_id` are recomputed; null means not computed."""

    blob: Blob
    length: int | None
    """Bytes read; null where the blob is not there."""
    digest: Digest | None = None
    unpacked: int | None = None
    diff_id: Digest | None = None
    encoding: Encoding | None = None
    """The encoding that the first bytes show."""
    error: str = ""
    """Why unpacking ended early; empty where it did not."""


class Referrers(Value):
    """Artifacts that say they are about a subject. `problems` are answers that make no sense."""

    entries: tuple[Descriptor, ...] = ()
    via: str = ""
    problems: tuple[str, ...] = ()


class JudgedImage(Value):
    """A platform of an image whose documents were read and hashed: what a delivery is judged against."""

    index_digest: Digest | None
    platform_digest: Digest
    platform: Platform
    manifest: ImageManifest
    config: ImageConfig
