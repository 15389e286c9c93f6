"""Artifacts that are attached to an image: OCI manifests with a `subject` (image-spec, manifest.md).

One artifact holds one Statement, one bundle or every file of evidence; the config is the empty descriptor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tic_manifest.formats.canonical import digest_of
from tic_manifest.model.delivery import DSSE_TYPE, EVIDENCE_LAYER, SBOM_TYPE, STATEMENT_TYPE
from tic_manifest.model.oci import EMPTY, INDEX, MANIFEST, TITLE, Descriptor
from tic_manifest.model.receipt import Artifact

EMPTY_JSON = b"{}"
SIMPLE_SIGNATURE = "dev.cosignproject.cosign/signature"
_EMPTY = Descriptor(media_type=EMPTY, digest=digest_of(EMPTY_JSON), size=len(EMPTY_JSON))


def artifact_bytes(artifact_type: str, subject: Descriptor, layers: Sequence[Descriptor]) -> bytes:
    """The bytes of an artifact about `subject`."""
    return _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": artifact_type,
            "config": _data(_EMPTY),
            "layers": [_data(one) for one in layers],
            "subject": _data(_bare(subject)),
        }
    )


def artifact_descriptor(raw: bytes, artifact_type: str) -> Descriptor:
    """How an artifact is listed: with its type, as the referrers API lists it."""
    return Descriptor(media_type=MANIFEST, digest=digest_of(raw), size=len(raw), artifact_type=artifact_type)


def attestation_bytes(envelope: Descriptor) -> bytes:
    """What cosign 2 reads under the tag `sha256-<hex>.att`: an image whose layer is the DSSE envelope."""
    layer = envelope.model_copy(
        update={
            "media_type": DSSE_TYPE,
            "annotations": {SIMPLE_SIGNATURE: "", "predicateType": "https://tic-manifest.dev/delivery/v1"},
        }
    )
    return _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": _data(attestation_config(envelope)),
            "layers": [_data(layer)],
        }
    )


def attestation_config_bytes(envelope: Descriptor) -> bytes:
    """The config beside an attestation: cosign reads it as that of an image with one layer."""
    return _json(
        {
            "architecture": "",
            "created": "0001-01-01T00:00:00Z",
            "history": [{"created": "0001-01-01T00:00:00Z"}],
            "os": "",
            "rootfs": {"type": "layers", "diff_ids": [envelope.digest]},
            "config": {},
        }
    )


def attestation_config(envelope: Descriptor) -> Descriptor:
    """The descriptor of `attestation_config_bytes`."""
    raw = attestation_config_bytes(envelope)
    kind = "application/vnd.oci.image.config.v1+json"
    return Descriptor(media_type=kind, digest=digest_of(raw), size=len(raw))


def statement_layer(raw: bytes) -> Descriptor:
    """The only layer of an unsigned attachment."""
    return Descriptor(media_type=STATEMENT_TYPE, digest=digest_of(raw), size=len(raw))


def evidence_layers(files: Iterable[Artifact]) -> tuple[Descriptor, ...]:
    """One layer for each file of evidence, named by its title, in order of names."""
    return tuple(
        Descriptor(media_type=EVIDENCE_LAYER, digest=one.digest, size=one.size, annotations={TITLE: one.name})
        for one in sorted(files, key=lambda one: one.name)
    )


def sbom_layer(file: Artifact) -> Descriptor:
    """The only layer of an SBOM's artifact."""
    return Descriptor(
        media_type=SBOM_TYPE, digest=file.digest, size=file.size, annotations={TITLE: file.name}
    )


def merge_referrers(old: Iterable[Descriptor], new: Iterable[Descriptor]) -> tuple[Descriptor, ...]:
    """The entries of a fallback index with others added; those of foreign tools stay, order is by arrival."""
    return tuple({one.digest: one for one in (*old, *new)}.values())


def referrers_bytes(entries: Sequence[Descriptor]) -> bytes:
    """The index behind the fallback tag (distribution-spec, "Referrers Tag Schema")."""
    return _json({"schemaVersion": 2, "mediaType": INDEX, "manifests": [_data(one) for one in entries]})


def _bare(descriptor: Descriptor) -> Descriptor:
    return Descriptor(media_type=descriptor.media_type, digest=descriptor.digest, size=descriptor.size)


def _data(descriptor: Descriptor) -> Mapping[str, Any]:
    return descriptor.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


def _json(data: Any) -> bytes:
    import json

    return json.dumps(data, separators=(",", ":")).encode()
