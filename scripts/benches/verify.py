#!/usr/bin/env python3
"""Cost of `verify` on a generated image in a local registry, beside `crane validate` and `skopeo copy`.

usage: scripts/benches/verify.py [--size MIB] [--rounds N] [--work DIR] [--no-limits]

The image has 4 GiB of files unless --size says otherwise: 30 layers, 150,000 files in the sizes of the CPU
image, whiteouts, hard links and true RECORDs, once as gzip (level 6) and once as zstd, delivered with signed
evidence. Programs run one after the other, in rounds; ratios are of medians of one run, the range beside.
`crane` reads no zstd layers: ratios to it are of the gzip image; `skopeo copy` checks no diff id and writes
to disk. A quarter of the size is measured too, to see if cost is linear. --no-limits judges memory, disk,
requests and verdicts alone: seconds of a small image say little. Needs about twice the size of disk below
--work (default: a folder in TMPDIR or /var/tmp, deleted at the end).

Exit: 0 within the limits, 1 beyond one of them, 3 a program is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "scenarios" / "lib"))

import _verify_image as generated
import requests
from _watch import Cost, cost_of
from delivered import Delivered, new_key, push
from scenarios.httpd import Request, Server
from scenarios.reply import Reply

HERE = Path(__file__).resolve().parent
MAX_IDENTITY_SECONDS, MAX_REQUESTS = 0.5, 12
MAX_OF_CRANE, MAX_OF_CONTENT, MAX_GROWTH = 0.6, 1.5, 1.25
MAX_MIB, MAX_SPOOL_MIB = 300, 64
TOOLS = {"crane": "crane validate", "skopeo": "skopeo copy (checks no diff id)"}
DEPTHS = ("identity", "content", "files")
ROWS = {
    "identity": {
        "image.documents",
        "image.presence",
        "delivery.attached",
        "delivery.manifest",
        "authenticity",
    },
    "content": {"image.bytes"},
    "files": {"image.bytes", "files.tree", "files.records"},
}
"""Rows of a report that must pass, so that nobody measures a reading that ended early."""


def main() -> int:
    """Generate, measure in rounds, print, judge."""
    asked = argparse.ArgumentParser(prog="verify.py")
    asked.add_argument("--size", type=int, default=4096, metavar="MIB")
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--work", type=Path)
    asked.add_argument("--no-limits", action="store_true")
    options = asked.parse_args()
    missing = [name for name in ("crane", "skopeo") if shutil.which(name) is None]
    if missing:
        print(f"not_run: {', '.join(missing)} missing; scripts/engine install crane skopeo docker-registry")
        return 3
    with _folder(options.work) as work, _registry(work) as registry:
        bench = Bench(work, registry)
        bench.make(options.size)
        bench.measure(options.rounds)
    print(describe(bench.list))
    print(table(bench.list))
    said = limits(bench.list, seconds=not options.no_limits)
    print("\n".join(f"{'ok  ' if good else 'FAIL'}  {words}" for words, good in said))
    return 0 if all(good for _, good in said) else 1


@contextlib.contextmanager
def _folder(work: Path | None) -> Iterator[Path]:
    if work is not None:
        work = work.resolve()
        work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix="tic-bench-", dir=work or os.environ.get("TMPDIR", "/var/tmp")
    ) as name:
        yield Path(name)


@contextlib.contextmanager
def _registry(work: Path) -> Iterator[str]:
    """Debian's docker-registry below the work folder; `HOST:PORT`."""
    script, root = HERE.parent / "registry", work / "registry"
    up = subprocess.run([script, "up", "--root", root], check=False, capture_output=True, text=True)
    if up.returncode:
        print(f"not_run: {up.stderr.strip()}")
        raise SystemExit(3)
    try:
        yield up.stdout.split()[-1].removeprefix("http://")
    finally:
        subprocess.run([script, "down", "--root", root], check=True, capture_output=True)


class _Large(Delivered):
    """A signed delivery whose image has the generated layers."""

    def __init__(self, folder: Path, layers: list[generated.Made], encoding: str) -> None:
        self._layers, self._encoding = layers, encoding
        super().__init__(str(folder))

    def make(self, *_: object, **__: object) -> dict[str, object]:
        kind = f"application/vnd.oci.image.layer.v1.tar+{self._encoding}"
        made = [one.blobs[self._encoding] for one in self._layers]
        rows = [{"mediaType": kind, "digest": digest, "size": size} for digest, size in made]
        config = self.layout.config(
            [one.diff_id for one in self._layers], labels={"org.tic-manifest.lock": self.lock.digest}
        )
        return {
            **self.layout.manifest(config, rows),
            "platform": {"os": "linux", "architecture": "amd64"},
        }


@dataclass(kw_only=True)
class Image:
    """A delivered image in the registry. `requests` are of depth identity without one for each blob."""

    name: str
    encoding: str
    mib: int
    place: Path
    repository: str
    index: str
    platform: str
    unpacked: int
    packed: int
    counts: dict[str, int]
    costs: dict[str, list[Cost]] = field(default_factory=dict)
    requests: int = 0
    blobs: int = 0

    def seconds(self, what: str) -> float:
        """Median of the wall time."""
        return median(one.wall for one in self.costs[what])

    def cpu(self, what: str) -> float:
        """Median of the processor time, which a busy machine changes less."""
        return median(one.cpu for one in self.costs[what])


class Bench:
    """The images, and what every program cost on them."""

    def __init__(self, work: Path, registry: str) -> None:
        self._work, self._registry = work, registry
        self.list: list[Image] = []

    def make(self, mib: int) -> None:
        """Generate and push: a quarter as gzip, the whole as gzip and as zstd."""
        for size, encodings in ((mib // 4, ("gzip",)), (mib, generated.ENCODINGS)):
            folder = self._work / f"made-{size}"
            layers = generated.make(folder, size << 20)
            for encoding in encodings:
                self.list.append(self._deliver(folder, layers, encoding, size))
            shutil.rmtree(folder)

    def _deliver(self, folder: Path, layers: list[generated.Made], encoding: str, mib: int) -> Image:
        place = self._work / f"image-{encoding}-{mib}"
        place.mkdir()
        private, public = new_key()
        (place / "key.pub").write_bytes(public)
        with contextlib.chdir(place):
            made = _Large(place / "layout", layers, encoding)
            for digest in {one.blobs[encoding][0] for one in layers}:
                os.link(
                    folder / "blobs" / "sha256" / digest.removeprefix("sha256:"), made.layout.path(digest)
                )
            made.close()
            made.deliver(key=private)
            made.policy("sources")
        repository = f"bench/{encoding}-{mib}"
        push(made.layout.root, f"http://{self._registry}/v2/{repository}")
        shutil.rmtree(made.layout.root)
        return Image(
            name=f"{encoding}, {mib} MiB", encoding=encoding, mib=mib, place=place, repository=repository,
            index=made.index["digest"], platform=made.image["digest"],
            unpacked=sum(one.length for one in layers), packed=sum(one.blobs[encoding][1] for one in layers),
            counts={kind: sum(one.counts[kind] for one in layers) for kind in layers[0].counts},
        )  # fmt: skip

    def measure(self, rounds: int) -> None:
        """Every program on every image, one after the other, as often as asked; then count requests."""
        for _ in range(rounds):
            for image in self.list:
                for what, argv in self._programs(image).items():
                    image.costs.setdefault(what, []).append(self._run(what, argv, image))
        for image in self.list:
            self._count(image)

    def _programs(self, image: Image) -> dict[str, list[str]]:
        """What is run, in this order. `crane` ends with an error on zstd layers and is left out there."""
        name = f"{self._registry}/{image.repository}"
        crane = ["crane", "validate", "--remote", f"{name}@{image.platform}"]
        copy = ["skopeo", "copy", "-q", "--src-tls-verify=false"]
        skopeo = [*copy, f"docker://{name}@{image.platform}", f"dir:{image.place}/copied"]
        ours = {depth: self._verify(image, name, depth) for depth in DEPTHS}
        return {**({"crane": crane} if image.encoding == "gzip" else {}), "skopeo": skopeo, **ours}

    def _verify(self, image: Image, name: str, depth: str) -> list[str]:
        asked = ["--depth", depth, "--output", "json", "--key", str(image.place / "key.pub")]
        policy = ["--policy", str(image.place / "policy.yaml")]
        return [sys.executable, "-m", "tic_manifest", "verify", *asked, *policy, f"{name}@{image.index}"]

    def _run(self, what: str, argv: list[str], image: Image) -> Cost:
        said = image.place / f"{what}.out"
        cost = cost_of(argv, said, {**os.environ, "TMPDIR": str(image.place)})
        shutil.rmtree(image.place / "copied", ignore_errors=True)
        if what in DEPTHS:
            _require_rows(said, what)
        elif cost.status:
            raise SystemExit(f"{what} failed: {said.with_name(said.name + '.err').read_text()[-2000:]}")
        return cost

    def _count(self, image: Image) -> None:
        """Requests of the depth identity, seen by a server that passes them on to the registry."""
        server = Server(self._pass_on)
        argv = self._verify(image, f"{server.address}/{image.repository}", "identity")
        self._run("identity", argv, image)
        server.close()
        blobs = {line.split()[1] for line in server.log if "/blobs/" in line}
        image.blobs, image.requests = len(blobs), len(server.log) - len(blobs)

    def _pass_on(self, request: Request) -> Reply:
        kept = {name: value for name, value in request.headers.items() if name in {"accept", "range"}}
        url = f"http://{self._registry}{request.target}"
        answer = requests.request(request.method, url, headers=kept, timeout=60)
        dropped = {"transfer-encoding", "connection", "date"}
        told = {name: value for name, value in answer.headers.items() if name.lower() not in dropped}
        return Reply(answer.status_code, answer.content, told)


def _require_rows(said: Path, depth: str) -> None:
    """Refuse to count a reading that did not come to its verdict."""
    report = json.loads(said.read_bytes() or b"{}")
    rows = {row["id"]: row["status"] for row in report.get("checks", [])}
    if bad := {name: rows.get(name) for name in ROWS[depth] if rows.get(name) != "pass"}:
        findings = json.dumps(report.get("findings"))[:2000]
        raise SystemExit(f"verify --depth {depth} did not judge the generated image: {bad}; {findings}")


def describe(images: list[Image]) -> str:
    """What was generated, and what is compared."""
    rows = [f"{os.cpu_count()} processors"]
    for image in images:
        counts = ", ".join(f"{number} {kind}" for kind, number in image.counts.items())
        size = f"{image.packed >> 20} MiB packed, {image.unpacked >> 20} MiB unpacked"
        rows.append(f"{image.name}: {generated.LAYERS} layers, {size}, {counts}")
    return "\n".join([*rows, "crane reads no zstd layers: its ratio is of the gzip image"])


def table(images: list[Image]) -> str:
    """What every program cost on every image."""
    head = ("image", "program", "seconds", "range", "CPU s", "MiB", "MiB written")
    rows = [head]
    for image in images:
        for what, costs in image.costs.items():
            walls = sorted(one.wall for one in costs)
            rows.append(
                (
                    image.name, f"verify --depth {what}" if what in DEPTHS else TOOLS[what],
                    f"{image.seconds(what):.2f}", f"{walls[0]:.2f}-{walls[-1]:.2f}",
                    f"{median(one.cpu for one in costs):.2f}", str(max(one.memory for one in costs)),
                    f"{max(one.written for one in costs):.0f}",
                )
            )  # fmt: skip
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
    )


def limits(images: list[Image], *, seconds: bool) -> list[tuple[str, bool]]:
    """Every limit in words with its figure, and whether it is kept."""
    ours = [cost for image in images for depth in DEPTHS for cost in image.costs[depth]]
    memory, written = max(one.memory for one in ours), max(one.written for one in ours)
    said = [
        (f"peak memory of verify: {memory} MiB of at most {MAX_MIB}", memory < MAX_MIB),
        (
            f"written to disk by verify: {written:.1f} MiB of at most {MAX_SPOOL_MIB}",
            written <= MAX_SPOOL_MIB,
        ),
    ]
    for image in images:
        words = f"{image.name}: identity in {image.requests} requests of at most {MAX_REQUESTS}"
        said.append((f"{words}, and one for each of {image.blobs} blobs", image.requests <= MAX_REQUESTS))
    return [*said, *(_seconds(images) if seconds else [])]


def _seconds(images: list[Image]) -> list[tuple[str, bool]]:
    said = []
    for image in images[1:]:
        took = image.seconds("identity")
        said.append(
            (f"{image.name}: identity {took:.2f} s of {MAX_IDENTITY_SECONDS}", took <= MAX_IDENTITY_SECONDS)
        )
        if "crane" in image.costs:
            said.append(_ratio(image, "content", "crane", MAX_OF_CRANE))
        said.append(_ratio(image, "files", "content", MAX_OF_CONTENT))
    quarter, whole = images[:2]
    for depth in ("content", "files"):
        grown = whole.seconds(depth) / whole.mib / (quarter.seconds(depth) / quarter.mib)
        words = (
            f"{depth}: seconds per MiB of {whole.mib} MiB are {grown:.2f} times those of {quarter.mib} MiB"
        )
        said.append((f"{words}, at most {MAX_GROWTH}", grown <= MAX_GROWTH))
    return said


def _ratio(image: Image, what: str, of: str, limit: float) -> tuple[str, bool]:
    """The ratio of medians, with the ratios of the single rounds."""
    ratio = image.seconds(what) / image.seconds(of)
    pairs = zip(image.costs[what], image.costs[of], strict=True)
    each = sorted(one.wall / other.wall for one, other in pairs)
    spread = f"{each[0]:.2f}-{each[-1]:.2f}; by processor time {image.cpu(what) / image.cpu(of):.2f}"
    return f"{image.name}: {what} is {ratio:.2f} of {of} ({spread}), at most {limit}", ratio <= limit


if __name__ == "__main__":
    sys.exit(main())
