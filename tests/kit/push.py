"""Push a layout to a registry on loopback over its HTTP interface, as any client would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any

import requests


def push(root: Path, base: str) -> None:
    """Push everything that index.json names, blobs first; `base` is `http://HOST:PORT/v2/REPOSITORY`."""
    entries = json.loads((root / "index.json").read_bytes())["manifests"]
    for entry in entries:
        name = (entry.get("annotations") or {}).get("org.opencontainers.image.ref.name")
        push_document(root, base, entry, name)


def push_document(root: Path, base: str, entry: dict[str, Any], name: str | None = None) -> None:
    """Push one document after what it names."""
    raw = _read(root, entry["digest"])
    data = json.loads(raw)
    for child in data.get("manifests", []):
        push_document(root, base, child)
    for blob in [*data.get("layers", []), *([data["config"]] if "config" in data else [])]:
        with _path(root, blob["digest"]).open("rb") as stream:
            push_blob(base, stream, blob["digest"])
    for reference in (entry["digest"], *([name] if name else [])):
        kind = {"Content-Type": entry["mediaType"]}
        requests.put(f"{base}/manifests/{reference}", data=raw, headers=kind, timeout=30).raise_for_status()


def push_blob(base: str, data: bytes | IO[bytes], digest: str) -> None:
    """Push one blob; a file is sent as it is read."""
    started = requests.post(f"{base}/blobs/uploads/", timeout=30)
    started.raise_for_status()
    where = requests.compat.urljoin(base, started.headers["Location"])
    mark = "&" if "?" in where else "?"
    kind = {"Content-Type": "application/octet-stream"}
    requests.put(f"{where}{mark}digest={digest}", data=data, headers=kind, timeout=600).raise_for_status()


def _read(root: Path, digest: str) -> bytes:
    return _path(root, digest).read_bytes()


def _path(root: Path, digest: str) -> Path:
    return root / "blobs" / "sha256" / digest.removeprefix("sha256:")
