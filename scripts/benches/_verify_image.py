"""A large image that is the same wherever it is made: sizes of files as in the CPU image, both encodings.

The files are split over layers whose sizes fall like 1/n, and into distributions that carry a true RECORD, so
that every depth of `verify` passes what it can judge. Content is cut from a pool of made-up words that packs
about as well as the CPU image does. Sizes: cpu_image_sizes.json, which says how it was measured.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import zstandard

SIZES = json.loads((Path(__file__).parent / "cpu_image_sizes.json").read_bytes())
LAYERS = 30
FILES_OF_4_GIB = 150_000
LARGE = 1 << 16
"""Files from this size on are made smaller or larger until the image has the size that was asked for."""
FILES_OF_A_DISTRIBUTION = 220
SITE = "opt/venv/lib/python3.11/site-packages"
ENDINGS = (".py", ".py", ".h", ".py", ".json", ".pyi", ".hpp", ".txt")
ENCODINGS = ("gzip", "zstd")
POOL = 16 << 20


@dataclass(frozen=True, kw_only=True)
class Made:
    """One layer: its diff id, and of each encoding digest and length of the blob below `blobs/sha256`."""

    diff_id: str
    length: int
    blobs: dict[str, tuple[str, int]]
    counts: dict[str, int]


@dataclass(kw_only=True)
class LayerPlan:
    """What one layer is to hold; files of the layers below that it removes."""

    number: int
    sizes: list[int] = field(default_factory=list)
    removes: list[str] = field(default_factory=list)


def plan(size: int) -> list[LayerPlan]:
    """`LAYERS` layers that hold `size` bytes of files in all, give or take one percent."""
    rnd, layers = random.Random(1), [LayerPlan(number=number) for number in range(1, LAYERS + 1)]
    sizes = _sizes(size)
    rnd.shuffle(sizes)
    weights = [1 / (number + 1) for number in range(LAYERS)]
    for layer, one in zip(rnd.choices(layers, weights, k=len(sizes)), sizes, strict=True):
        layer.sizes.append(one)
    for below, layer in pairwise(layers):
        system = range(0, len(below.sizes), 5)
        layer.removes = [_system_path(below.number, at) for at in system[:: max(len(system) // 20, 1)]]
    return layers


def _sizes(size: int) -> list[int]:
    """Sizes of files in the proportions of the histogram; within one row of it they are spread evenly."""
    count = max(int(FILES_OF_4_GIB * size / (4 << 30)), LAYERS * 20)
    sizes: list[int] = []
    for row in SIZES["sizes"]:
        number = round(row["files"] * count / SIZES["files"]) or (row["bits"] < 26)
        mean = row["bytes"] / row["files"]
        low = (1 << row["bits"] >> 1) / mean if mean else 1
        sizes += [round(mean * (low + (1 - low) * 2 * (at + 0.5) / number)) for at in range(number)]
    small = sum(one for one in sizes if one < LARGE)
    scale = (size - small) / max(sum(sizes) - small, 1)
    return [one if one < LARGE else max(round(one * scale), 1) for one in sizes]


def make(folder: Path, size: int, processes: int = 2) -> list[Made]:
    """Write every layer's blobs below `folder`, the largest layers first; in the order of the layers."""
    (folder / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
    layers = plan(size)
    with Pool(processes, _fill_pool) as pool:
        order = sorted(layers, key=lambda one: -sum(one.sizes))
        done = dict(pool.imap_unordered(_make_layer, [(folder, one) for one in order]))
    return [done[layer.number] for layer in layers]


def words_of(seed: int, length: int) -> bytes:
    """Made-up words with the frequencies of words: `length` bytes that pack to about a third."""
    rnd = random.Random(seed)
    words = [
        rnd.randbytes(rnd.randint(2, 9)).hex().encode()[: rnd.randint(3, 12)] + b" " for _ in range(2500)
    ]
    weights = [1 / (at + 2) for at in range(len(words))]
    out = bytearray()
    while len(out) < length:
        out += b"".join(rnd.choices(words, weights, k=100_000))
        out += rnd.randbytes(len(out) // 400)
    return bytes(out[:length])


_POOL = b""


def _fill_pool() -> None:
    global _POOL  # noqa: PLW0603  (one for each process of the pool)
    _POOL = words_of(2, POOL)


def _content(seed: int, size: int) -> Iterator[bytes]:
    """The bytes of a file; no two files of 20 bytes and more are alike."""
    head = f"# {seed:016x}\n".encode()[:size]
    yield head
    left, at = size - len(head), seed * 7919 % POOL
    while left > 0:
        piece = _POOL[at : at + min(left, 1 << 20)]
        yield piece
        left, at = left - len(piece), (at + len(piece)) % POOL


class _Sink:
    """Takes the bytes of an archive: hashes them and packs them both ways into files."""

    def __init__(self, folder: Path, number: int) -> None:
        self.hash, self.length = hashlib.sha256(), 0
        gz: Any = zlib.compressobj(6, wbits=31)
        zst: Any = zstandard.ZstdCompressor(level=3).compressobj()
        self._packers = dict(zip(ENCODINGS, (gz, zst), strict=True))
        self._paths = {name: folder / f"layer-{number}-{name}" for name in ENCODINGS}
        self._files = {name: path.open("wb") for name, path in self._paths.items()}
        self._hashes = {name: hashlib.sha256() for name in ENCODINGS}

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        self.length += len(data)
        for name, packer in self._packers.items():
            self._put(name, packer.compress(data))
        return len(data)

    def close(self, folder: Path) -> dict[str, tuple[str, int]]:
        """Digest and length by encoding; the files lie under their digests afterwards."""
        done: dict[str, tuple[str, int]] = {}
        for name, packer in self._packers.items():
            self._put(name, packer.flush())
            self._files[name].close()
            digest = self._hashes[name].hexdigest()
            path = self._paths[name].rename(folder / "blobs" / "sha256" / digest)
            done[name] = f"sha256:{digest}", path.stat().st_size
        return done

    def _put(self, name: str, packed: bytes) -> None:
        self._hashes[name].update(packed)
        self._files[name].write(packed)


def _make_layer(asked: tuple[Path, LayerPlan]) -> tuple[int, Made]:
    folder, layer = asked
    sink: Any = _Sink(folder, layer.number)
    with tarfile.open(fileobj=sink, mode="w|", bufsize=1 << 20, format=tarfile.PAX_FORMAT) as archive:
        counts = _Writer(archive, layer).write()
    blobs = sink.close(folder)
    made = Made(diff_id=f"sha256:{sink.hash.hexdigest()}", length=sink.length, blobs=blobs, counts=counts)
    return layer.number, made


class _Writer:
    """Writes the entries of one layer: folders before what is in them, a RECORD after its distribution."""

    def __init__(self, archive: tarfile.TarFile, layer: LayerPlan) -> None:
        self._archive, self._layer = archive, layer
        self._folders: set[str] = set()
        self._rows: list[str] = []
        self.counts = {"files": 0, "folders": 0, "links": 0, "hard links": 0, "whiteouts": 0}

    def write(self) -> dict[str, int]:
        """How many entries of each kind."""
        number = self._layer.number
        for path in self._layer.removes:
            folder, _, name = path.rpartition("/")
            self._entry(f"{folder}/.wh.{name}", "whiteouts")
        for at, size in enumerate(self._layer.sizes):
            if at % 5 == 0:
                self._file(_system_path(number, at), number << 32 | at, size, owned=False)
            else:
                self._file(_package_path(number, at, size), number << 32 | at, size, owned=True)
            if at % FILES_OF_A_DISTRIBUTION == FILES_OF_A_DISTRIBUTION - 1:
                self._record(at // FILES_OF_A_DISTRIBUTION)
        self._record(len(self._layer.sizes) // FILES_OF_A_DISTRIBUTION)
        return self.counts

    def _file(self, path: str, seed: int, size: int, *, owned: bool) -> None:
        pieces = b"".join(_content(seed, size)) if size < LARGE else None
        hasher = hashlib.sha256()
        for piece in [pieces] if pieces is not None else _content(seed, size):
            hasher.update(piece)
        stream: Any = io.BytesIO(pieces) if pieces is not None else _Pieces(_content(seed, size))
        self._entry(path, "files", size=size, stream=stream)
        if owned:
            said = base64.urlsafe_b64encode(hasher.digest()).rstrip(b"=").decode()
            self._rows.append(f"{path.removeprefix(SITE + '/')},sha256={said},{size}")
        if seed % 50 == 0:
            self._entry(f"{path}.again", "hard links", kind=tarfile.LNKTYPE, target=path)
        if seed % 50 == 25:
            self._entry(f"{path}.link", "links", kind=tarfile.SYMTYPE, target=path.rpartition("/")[2])

    def _record(self, number: int) -> None:
        if self._rows:
            name = f"{_package(self._layer.number, number)}-1.0.dist-info/RECORD"
            raw = "".join(f"{row}\r\n" for row in [*self._rows, f"{name},,"]).encode()
            self._entry(f"{SITE}/{name}", "files", size=len(raw), stream=io.BytesIO(raw))
        self._rows = []

    def _entry(
        self, path: str, count: str, *, size: int = 0, stream: Any = None, kind: bytes = tarfile.REGTYPE,
        target: str = "",
    ) -> None:  # fmt: skip
        above, _, _ = path.rpartition("/")
        if above and above not in self._folders:
            self._folders.add(above)
            self._entry(above, "folders", kind=tarfile.DIRTYPE)
        self.counts[count] += 1
        header = tarfile.TarInfo(path)
        header.size, header.type, header.linkname, header.mtime = size, kind, target, 1_700_000_000
        header.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
        self._archive.addfile(header, stream)


class _Pieces:
    """An iterator of bytes as a file that is read in any sizes."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, b""

    def read(self, size: int) -> bytes:
        while len(self._rest) < size and (piece := next(self._pieces, b"")):
            self._rest += piece
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


def _package(layer: int, number: int) -> str:
    return f"package_{layer}_{number}"


def _package_path(layer: int, at: int, size: int) -> str:
    package = _package(layer, at // FILES_OF_A_DISTRIBUTION)
    deep = "/include/templates_of_kernels/detail_of_layouts" if at % 8 == 7 else ""
    ending = ".so" if size > 1 << 20 else ENDINGS[at % len(ENDINGS)]
    return f"{SITE}/{package}/part_{at % 22 // 4}{deep}/module_of_{at}{ending}"


def _system_path(layer: int, at: int) -> str:
    return f"usr/share/doc/of-layer-{layer}/section-{at // 100}/page-{at}.gz"
