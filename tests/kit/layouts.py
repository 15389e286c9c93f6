"""Small, real OCI layouts with real digests, and ways to spoil them. Used by tests and by scenarios."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import zstandard

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
Edit = Callable[[bytes], bytes]


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def compact(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


def tar(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def packed(raw: bytes, encoding: str) -> bytes:
    return {
        "gzip": lambda: gzip.compress(raw, mtime=0),
        "zstd": lambda: zstandard.compress(raw),
        "tar": lambda: raw,
    }[encoding]()


class Layout:
    """A layout that is being made. Every method returns descriptors as plain JSON data."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.entries: list[dict[str, Any]] = []
        (root / "blobs" / "sha256").mkdir(parents=True)
        (root / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')

    def path(self, digest: str) -> Path:
        return self.root / "blobs" / "sha256" / digest.removeprefix("sha256:")

    def blob(self, data: bytes, media_type: str, **more: Any) -> dict[str, Any]:
        digest = digest_of(data)
        self.path(digest).write_bytes(data)
        return {"mediaType": media_type, "digest": digest, "size": len(data), **more}

    def layer(self, files: Mapping[str, bytes], encoding: str = "gzip") -> tuple[dict[str, Any], str]:
        """Descriptor and diff id."""
        raw = tar(files)
        media_type = LAYER if encoding == "tar" else f"{LAYER}+{encoding}"
        return self.blob(packed(raw, encoding), media_type), digest_of(raw)

    def config(
        self,
        diff_ids: list[str],
        *,
        env: tuple[str, ...] = ("PATH=/usr/bin",),
        labels: Mapping[str, str] | None = None,
        architecture: str = "amd64",
        start: Mapping[str, Any] | None = None,
        variant: str | None = None,
    ) -> dict[str, Any]:
        run = {"Env": list(env), "Labels": dict(labels or {}), **(start or {})}
        data = {
            "architecture": architecture,
            "os": "linux",
            "config": run,
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        } | ({"variant": variant} if variant else {})
        return self.blob(compact(data), CONFIG)

    def manifest(
        self, config: Mapping[str, Any], layers: list[dict[str, Any]], edit: Edit = bytes, **more: Any
    ) -> dict[str, Any]:
        """A platform manifest; `edit` changes its bytes before they are hashed."""
        data = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers, **more}
        return self.blob(edit(compact(data)), MANIFEST)

    def image(
        self,
        encoding: str = "gzip",
        *,
        architecture: str = "amd64",
        edit: Edit = bytes,
        files: Sequence[Mapping[str, bytes]] = (),
        **config: Any,
    ) -> dict[str, Any]:
        """A platform manifest of two layers, or of layers with the files given, and its platform."""
        plain = [{f"usr/lib/{name}-{architecture}": name.encode() * 5000} for name in ("one", "two")]
        made = [self.layer(one, encoding) for one in files or plain]
        said = self.config([diff_id for _, diff_id in made], architecture=architecture, **config)
        descriptor = self.manifest(said, [layer for layer, _ in made], edit)
        return {**descriptor, "platform": {"os": "linux", "architecture": architecture}}

    def attestation(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """An attestation child as BuildKit writes it."""
        layer = self.blob(
            b'{"predicateType":"https://slsa.dev/provenance/v1"}', "application/vnd.in-toto+json"
        )
        config = self.blob(
            compact(
                {
                    "architecture": "unknown",
                    "os": "unknown",
                    "config": {},
                    "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
                }
            ),
            CONFIG,
        )
        return {
            **self.manifest(config, [layer]),
            "platform": {"os": "unknown", "architecture": "unknown"},
            "annotations": {
                "vnd.docker.reference.type": "attestation-manifest",
                "vnd.docker.reference.digest": about["digest"],
            },
        }

    def index(self, children: list[dict[str, Any]], edit: Edit = bytes, **more: Any) -> dict[str, Any]:
        data = {"schemaVersion": 2, "mediaType": INDEX, "manifests": children, **more}
        return self.blob(edit(compact(data)), INDEX)

    def save(self, entry: Mapping[str, Any], name: str | None = None) -> str:
        """Add an entry to index.json; its digest."""
        said = {key: entry[key] for key in ("mediaType", "digest", "size")}
        self.entries.append(
            said | ({"annotations": {"org.opencontainers.image.ref.name": name}} if name else {})
        )
        (self.root / "index.json").write_bytes(compact({"schemaVersion": 2, "manifests": self.entries}))
        return str(entry["digest"])

    def flip(self, digest: str, at: int = -20) -> None:
        """Change one byte of a blob at rest."""
        data = bytearray(self.path(digest).read_bytes())
        data[at] ^= 1
        self.path(digest).write_bytes(bytes(data))


def layers_of(layout: Layout, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The layer descriptors of a platform manifest."""
    layers: list[dict[str, Any]] = json.loads(layout.path(manifest["digest"]).read_bytes())["layers"]
    return layers
