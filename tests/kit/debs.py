"""Tiny Debian packages and wheels, made by hand: real formats, nothing of a distribution."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path


def _tar(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, body in files.items():
            one = tarfile.TarInfo(f"./{name}")
            if name.endswith("/"):
                one.type, one.mode = tarfile.DIRTYPE, 0o755
            one.size = len(body)
            archive.addfile(one, io.BytesIO(body))
    return out.getvalue()


def _member(name: str, body: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(body):<10}`\n".encode()
    return head + body + b"\n" * (len(body) % 2)


def deb(path: Path, fields: Mapping[str, str], files: Mapping[str, bytes] | None = None) -> Path:
    """Write a package: deb(5), control.tar.gz, data.tar.xz."""
    control = "".join(f"{key}: {value}\n" for key, value in fields.items()).encode()
    parts = [
        _member("debian-binary", b"2.0\n"),
        _member("control.tar.gz", gzip.compress(_tar({"control": control}), mtime=0)),
        _member("data.tar.xz", lzma.compress(_tar(files or {}))),
    ]
    path.write_bytes(b"!<arch>\n" + b"".join(parts))
    return path


def wheel(
    folder: Path, name: str, version: str, *, requires: tuple[str, ...] = (), tag: str = "py3-none-any"
) -> Path:
    """Write a wheel that holds one module."""
    info = f"{name}-{version}.dist-info"
    meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    meta += "".join(f"Requires-Dist: {one}\n" for one in requires)
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr(f"{name}.py", f"VERSION = {version!r}\n")
        out.writestr(f"{info}/METADATA", meta)
        out.writestr(
            f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n"
        )
        out.writestr(f"{info}/RECORD", "")
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
