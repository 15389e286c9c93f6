"""Builds with buildx: no network, times set by the lock, output as a layout or plain files."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import tempfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tic_manifest.errors import UnavailableError
from tic_manifest.ports import ImageBuild, Progress

_STEP = re.compile(r"^#\d+ (\[[a-z-]+ \d+/\d+\] [A-Z]+|exporting [a-z ]+|rewriting layers)")
_TAIL = 30
_MAX_LOG = 64 << 20
_OCI = {"type": "oci", "tar": "false", "oci-mediatypes": "true", "compression": "zstd"}


class Buildx:
    """`docker buildx build` through python-on-whales."""

    def __init__(self, host: str | None, progress: Progress) -> None:
        self._host, self._progress = host, progress

    def version(self) -> str:
        """The builder with its version. Raises UnavailableError ENGINE_MISSING."""
        from python_on_whales.exceptions import DockerException

        try:
            return " ".join(self._docker().buildx.version().split()[:2])
        except (DockerException, FileNotFoundError) as error:
            raise UnavailableError(
                "ENGINE_MISSING",
                "docker buildx is not here",
                actual=str(error)[:300],
                remedy="run scripts/engine up, or install the buildx plugin of your engine",
            ) from error

    def build(self, request: ImageBuild) -> None:
        """Run one build. `destination` appears whole or not at all. Raises UnavailableError."""
        from python_on_whales.exceptions import DockerException

        request.log.parent.mkdir(parents=True, exist_ok=True)
        request.destination.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".build-", dir=request.destination.parent) as folder:
            empty, made = Path(folder) / "context", Path(folder) / "made"
            empty.mkdir()
            context = request.contexts.get(".", str(empty))
            tail: deque[str] = deque(maxlen=_TAIL)
            try:
                with request.log.open("ab") as log, _no_orphans():
                    self._follow(self._start(request, context, made), log, tail)
            except DockerException as error:
                raise _failed(request, tail, error) from error
            if request.destination.exists():
                shutil.rmtree(request.destination)
            made.rename(request.destination)

    def _docker(self) -> Any:
        """The client; python-on-whales would fetch a program where there is none: asked first."""
        if shutil.which("docker") is None:
            raise UnavailableError(
                "ENGINE_MISSING",
                "the program docker is not here: builds are started with its buildx",
                remedy="run scripts/engine up, or install docker's command line and buildx",
            )
        from python_on_whales import DockerClient

        return DockerClient(host=self._host)

    def _start(self, request: ImageBuild, context: str, made: Path) -> Iterator[str]:
        oci = request.kind == "oci"
        layers = {
            "force-compression": _word(request.recompress),
            "rewrite-timestamp": _word(request.rewrite),
        }
        output = {**_OCI, **layers} if oci else {"type": "local"}
        lines: Iterator[str] = self._docker().buildx.build(
            context,
            file=str(request.dockerfile),
            target=request.target,
            build_contexts={name: where for name, where in request.contexts.items() if name != "."},
            labels=dict(request.labels),
            platforms=[request.platform],
            build_args={**request.arguments, "SOURCE_DATE_EPOCH": str(request.epoch)},
            network="none",
            cache=not request.no_cache,
            output={**output, "dest": str(made)},
            progress="plain",
            stream_logs=True,
            provenance={"mode": "max"} if oci and request.provenance else False,
        )
        return lines

    def _follow(self, lines: Iterator[str], log: IO[bytes], tail: deque[str]) -> None:
        written = 0
        for line in lines:
            raw = line.rstrip("\n").encode("utf-8", "replace") + b"\n"
            written += len(raw)
            if written <= _MAX_LOG:
                log.write(raw)
            if line.strip():
                tail.append(line.rstrip())
            step = _STEP.match(line)
            if step:
                self._progress.say(f"build: {step[1]}")


def _word(value: bool) -> str:
    return "true" if value else "false"


@contextlib.contextmanager
def _no_orphans() -> Iterator[None]:
    """End the builder's process when we are interrupted; python-on-whales would leave it running."""
    before = _children()
    try:
        yield
    except BaseException:
        for pid in _children() - before:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        raise


def _children() -> set[int]:
    try:
        words = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    except OSError:
        return set()
    return {int(word) for word in words}


def _failed(request: ImageBuild, tail: deque[str], error: Exception) -> UnavailableError:
    said = "\n    ".join(tail) or str(error)[-2000:]
    full = "no space left on device" in said
    return UnavailableError(
        "DISK_FULL" if full else "ENGINE_FAILED",
        f"the build of {request.target} failed",
        where=str(request.log),
        actual=f"the log's last lines:\n    {said}",
        remedy="free disk" if full else "mend what the last lines say; finished stages are kept",
    )
