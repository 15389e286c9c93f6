"""The container engine: buildx builds (python-on-whales), the engine's own interface runs (docker SDK).

An image is named by the digest of its platform manifest, which the containerd image store keeps; the classic
store renames images when it loads them, so it is refused.
"""

from __future__ import annotations

import json
import os
import platform
import tarfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import IO, Any, cast

import docker
import requests
from docker.errors import DockerException, NotFound

from tic_manifest.adapters.engine_build import Buildx
from tic_manifest.adapters.engine_run import end_left_over, run_container
from tic_manifest.adapters.layout_read import read_built
from tic_manifest.errors import UnavailableError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.model.base import Digest
from tic_manifest.model.oci import INDEX
from tic_manifest.model.receipt import Host
from tic_manifest.ports import Container, Ended, ImageBuild, Progress

_CONTAINERD = "io.containerd.snapshotter.v1"
_REMEDY = "run scripts/engine up, or start your engine and name it in DOCKER_HOST"
_STORE_REMEDY = (
    'set {"features": {"containerd-snapshotter": true}} in its daemon.json, or run scripts/engine up'
)
_LOAD_SECONDS = 3600
_NAME = "tic-manifest"


class ContainerEngine:
    """`ports.Engine` at `host` (as DOCKER_HOST; None for the default socket)."""

    def __init__(self, host: str | None, progress: Progress) -> None:
        self._host, self._progress = host, progress
        self._buildx = Buildx(host, progress)

    @cached_property
    def _client(self) -> Any:
        try:
            client = docker.DockerClient(base_url=self._host, timeout=_LOAD_SECONDS)
            info = client.info()
        except (DockerException, OSError) as error:
            raise UnavailableError(
                "ENGINE_MISSING",
                "no container engine answers",
                where=self._host or "the default socket",
                actual=str(error)[:300],
                remedy=_REMEDY,
            ) from error
        if _CONTAINERD not in str(info.get("DriverStatus")):
            raise UnavailableError(
                "ENGINE_MISSING",
                "the engine has no containerd image store, so it does not keep digests",
                where=self._host or "the default socket",
                expected="containerd image store",
                actual=str(info.get("Driver")),
                remedy=_STORE_REMEDY,
            )
        return client

    def describe(self) -> str:
        """Engine and builder with their versions. Raises UnavailableError ENGINE_MISSING."""
        version = self._client.version()
        return f"docker {version['Version']}, {self._buildx.version()}"

    def host(self) -> Host:
        """The machine that containers run on. CPU model and flags are read here: same kernel."""
        info = self._client.info()
        model, flags = _cpu(Path("/proc/cpuinfo"))
        return Host(
            machine=str(info.get("Architecture") or platform.machine()),
            cpu_model=model,
            cpu_flags=flags,
            kernel=str(info.get("KernelVersion", "")),
            engine=self.describe(),
        )

    def data_root(self) -> Path | None:
        """Where the engine keeps images, if that is a folder of this machine."""
        path = Path(str(self._client.info().get("DockerRootDir") or "/nowhere"))
        return path if path.is_dir() else None

    def build(self, request: ImageBuild) -> None:
        """Build without network; raises UnavailableError ENGINE_FAILED, DISK_FULL with the last log lines."""
        _ = self._client
        self._buildx.build(request)

    def load(self, layout: Path, digest: Digest) -> str:
        """Load one image of a layout; the engine then knows it by the digest of its platform manifest."""
        if self._has(digest):
            return digest
        self._progress.say("loading the image into the engine")
        with _Archive(layout, digest) as archive:
            try:
                for answer in self._client.api.load_image(cast("bytes", archive)):
                    if "error" in answer:
                        raise DockerException(answer["error"])
            except (DockerException, OSError) as error:
                raise _failed("the engine did not load the image", error) from error
        if not self._has(digest):
            raise UnavailableError(
                "ENGINE_FAILED", "the engine loaded an image under another digest", expected=digest
            )
        return digest

    def run(self, container: Container) -> Ended:
        """Run to the end with no network. The container is gone afterwards, whatever happens."""
        try:
            return run_container(self._client, container)
        except (DockerException, requests.RequestException) as error:
            raise _failed(f"the engine did not run {container.name}", error) from error

    def end_left_over(self, run_id: str) -> None:
        """End containers that a killed run of this delivery left."""
        try:
            end_left_over(self._client, run_id)
        except (DockerException, requests.RequestException) as error:
            raise _failed("the engine did not answer", error) from error

    def _has(self, digest: Digest) -> bool:
        try:
            return str(self._client.images.get(digest).id) == digest
        except NotFound:
            return False
        except (DockerException, requests.RequestException) as error:
            raise _failed("the engine did not answer", error) from error


class _Archive:
    """A layout of one image as a tar stream, made while it is read: no second copy on disk."""

    def __init__(self, layout: Path, digest: Digest) -> None:
        self._layout, self._digest = layout, digest
        self._reader, self._writer = os.pipe()

    def __enter__(self) -> IO[bytes]:
        from threading import Thread

        self._thread = Thread(target=self._fill, daemon=True)
        self._thread.start()
        self._stream = os.fdopen(self._reader, "rb")
        return self._stream

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._thread.join()

    def _fill(self) -> None:
        with os.fdopen(self._writer, "wb") as out:
            try:
                with tarfile.open(fileobj=out, mode="w|") as tar:
                    for name, body in self._small():
                        _add(tar, name, body)
                    for digest in self._blobs():
                        name = f"blobs/sha256/{digest.removeprefix('sha256:')}"
                        tar.add(self._layout / name, name, recursive=False)
            except BrokenPipeError:
                return  # the engine stopped reading; its own words say why

    def _small(self) -> Iterator[tuple[str, bytes]]:
        raw = (self._layout / "blobs/sha256" / self._digest.removeprefix("sha256:")).read_bytes()
        entry = {
            "mediaType": json.loads(raw)["mediaType"],
            "digest": digest_of(raw),
            "size": len(raw),
            "annotations": {
                "io.containerd.image.name": f"docker.io/library/{_NAME}:{self._digest.replace(':', '-')}"
            },
        }
        yield "oci-layout", b'{"imageLayoutVersion":"1.0.0"}'
        yield (
            "index.json",
            json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}).encode(),
        )

    def _blobs(self) -> list[Digest]:
        built = read_built(self._layout, self._digest)
        return list(dict.fromkeys((built.platform_digest, built.config_digest, *built.layers)))


def _add(tar: tarfile.TarFile, name: str, body: bytes) -> None:
    import io

    member = tarfile.TarInfo(name)
    member.size = len(body)
    tar.addfile(member, io.BytesIO(body))


def _cpu(path: Path) -> tuple[str, tuple[str, ...]]:
    """Model and flags of the first CPU; empty where the kernel says neither."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor(), ()
    fields: dict[str, str] = {}
    for key, _, value in (line.partition(":") for line in lines):
        fields.setdefault(key.strip(), value.strip())
    model = fields.get("model name") or fields.get("Model") or platform.processor()
    return model, tuple(sorted((fields.get("flags") or fields.get("Features") or "").split()))


def _failed(what: str, error: Exception) -> UnavailableError:
    full = "no space left on device" in str(error)
    return UnavailableError("DISK_FULL" if full else "ENGINE_FAILED", what, actual=str(error)[:1000])
