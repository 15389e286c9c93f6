"""Inputs to start from: small, whole and real, made by the readers' own writers and the kit of the tests."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import deliveries
from layouts import packed as pack
from tic_manifest.formats.signing import sign_statement
from tic_manifest.model.policy import BUILT_IN

from fuzzers.documents import seed

D = "sha256:" + "a1" * 32


def json_documents() -> Iterator[bytes]:
    """Documents of every shape, some that must be refused."""
    yield b'{"a":[1,-2.5,true,null,"\\ud83d\\ude00 [[{"],"b":{"c":{}}}'
    yield b'{"a":1,"\\u0061":2}'
    yield b"[" * 64 + b"]" * 64
    yield b'["\\ud800",1e999,NaN,18446744073709551616]'
    yield deliveries.lock().raw


def references() -> Iterator[bytes]:
    """Each form of the contract, and tags."""
    for text in (
        f"registry.example:5000/team/app@{D}", f"[::1]:5000/a/b@{D}", f"oci:./a@b/c@{D}", "oci:C:\\x:latest",
        f"localhost/app:v1@{D}", "docker.io/library/debian", f"[fe80::1%25eth0]/x@{D}",
    ):  # fmt: skip
        yield text.encode()


def archives() -> Iterator[bytes]:
    """Archives in each format that tools write, with what is awkward in them, after the byte that cuts."""
    for number, form in enumerate((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT)):
        raw = _archive(form)
        yield bytes([0x80 | number]) + raw
        yield bytes([number]) + raw + raw


def packed() -> Iterator[bytes]:
    """The archives as the encodings of layers, and streams in several members."""
    raw = _archive(tarfile.PAX_FORMAT)
    for encoding in ("gzip", "zstd", "tar"):
        yield pack(raw, encoding)
    for encoding in ("gzip", "zstd"):
        yield pack(raw[:4096], encoding) + pack(raw[4096:], encoding)
    yield b"\x50\x2a\x4d\x18\x04\0\0\0skip" + pack(raw, "zstd")


def documents() -> Iterator[bytes]:
    """One whole document for each reader."""
    from delivered import new_key

    image, lock = deliveries.image(deliveries.lock()), deliveries.lock()
    yield seed("lock", lock.raw)
    yield seed("recipe", deliveries.RECIPE)
    yield seed("policy", BUILT_IN.encode())
    yield seed("receipt", deliveries.receipt(lock, deliveries.build_body()))
    yield seed("approval", deliveries.approval(lock))
    yield seed("record", deliveries.scores("rollout", -1.0)["record.json"])
    statement = _statement(image.platform_digest)
    signed = sign_statement(statement, new_key()[0], None, "key")
    for name, raw in (("statement", statement), ("predicate", statement), ("envelope", signed.envelope)):
        yield seed(name, raw)
    yield seed("bundle", signed.bundle)
    yield from _oci()


def _statement(platform: str) -> bytes:
    from statements import EVIDENCE, delivery

    return delivery(platform, None, dict(EVIDENCE))


def _oci() -> Iterator[bytes]:
    import tempfile

    from layouts import Layout

    with tempfile.TemporaryDirectory() as folder:
        layout = Layout(Path(folder) / "layout")
        image = layout.image()
        manifest = layout.path(image["digest"]).read_bytes()
        index = layout.path(layout.index([image])["digest"]).read_bytes()
        config = next(one for one in _blobs(layout.root) if b'"rootfs"' in one)
        for name, raw in (("index", index), ("manifest", manifest), ("config", config), ("kind", index)):
            yield seed(name, raw)


def _blobs(root: Path) -> Iterator[bytes]:
    return (one.read_bytes() for one in (root / "blobs" / "sha256").iterdir())


def _archive(form: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, data in (
            ("usr/bin/x", b"x" * 700), ("a/.wh.gone", b""), ("a/.wh..wh..opq", b""), ("./p//q", b"q"),
            ("opt/s/alpha-1.dist-info/RECORD", b"alpha/x.py,sha256=AAAA,1\nalpha-1.dist-info/RECORD,,\n"),
            ("../out", b"o"), ("long/" * 18 + "name", b"l"),
        ):  # fmt: skip
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for kind, name, target in (
            (tarfile.SYMTYPE, "lib", "usr/lib"), (tarfile.LNKTYPE, "hard", "usr/bin/x"),
            (tarfile.SYMTYPE, "loop", "loop"), (tarfile.LNKTYPE, "bad", "../../etc"),
            (tarfile.CHRTYPE, "dev", ""), (tarfile.DIRTYPE, "d", ""),
        ):  # fmt: skip
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)
    return out.getvalue().rstrip(b"\0").ljust(512 * 16, b"\0") + b"\0" * 1024
