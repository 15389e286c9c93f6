"""Which container engine answers, and whether it is enough for us."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from enginelib.say import run

BUILDKIT = (0, 13)
ENGINE = (26, 0)  # the first Docker Engine with BuildKit 0.13 inside


@dataclass(frozen=True)
class Answer:
    """An engine that answered: where, its versions as it says them, and what it lacks for us."""

    host: str
    engine: str
    buildx: str
    buildkit: str
    lacks: tuple[str, ...]


def version(text: str) -> tuple[int, int] | None:
    """Return the first major.minor in a text."""
    match = re.search(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def ask(host: str | None) -> Answer | None:
    """Ask the engine at `host` (None: whatever the docker client would use); None when no engine answers."""
    env = dict(os.environ) if host is None else {**os.environ, "DOCKER_HOST": host}
    if shutil.which("docker") is None:
        return None
    if host is None and "DOCKER_HOST" not in env:
        context = ["docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"]
        host = run(context, env).stdout.strip()
    server = run(["docker", "version", "--format", "{{json .Server}}"], env, 20)
    if server.returncode != 0 or server.stdout.strip() in ("", "null", "<nil>"):
        return None
    engine = str(json.loads(server.stdout).get("Version", "unknown"))
    return describe(host or env.get("DOCKER_HOST", ""), engine, env)


def describe(host: str, engine: str, env: Mapping[str, str]) -> Answer:
    """Complete an answer with buildx, BuildKit and what is lacking."""
    plugin = run(["docker", "buildx", "version"], env)
    if plugin.returncode != 0:
        lack = "docker buildx 0.13 or newer (the buildx plugin is not installed)"
        return Answer(host, engine, "", "", (lack,))
    buildx = plugin.stdout.split()[1] if len(plugin.stdout.split()) > 1 else plugin.stdout.strip()
    builder = run(["docker", "buildx", "inspect"], env, 30).stdout
    match = re.search(r"^\s*Build[Kk]it(?: daemon)? version:\s*(\S+)", builder, re.MULTILINE)
    # Debian's engine says v0.0.0+unknown; then the engine's own version tells which BuildKit is inside
    buildkit = match[1] if match and version(match[1]) != (0, 0) else ""
    lacks = []
    if (version(buildx) or (0, 0)) < BUILDKIT:
        lacks.append(f"docker buildx 0.13 or newer (it is {buildx})")
    if (version(buildkit) or (0, 0)) < BUILDKIT and (buildkit or (version(engine) or (0, 0)) < ENGINE):
        lacks.append(f"BuildKit 0.13 or newer, as in Docker Engine 26 (it is {buildkit or 'older'})")
    if not exports_oci(builder, env):
        lacks.append(
            'the export of OCI layouts ("features": {"containerd-snapshotter": true} in daemon.json, '
            "or docker buildx create --use --driver docker-container)"
        )
    return Answer(host, engine, buildx, buildkit, tuple(lacks))


def exports_oci(builder: str, env: Mapping[str, str]) -> bool:
    """Tell whether the builder can write `type=oci`: it is its own, or the image store is containerd's."""
    driver = re.search(r"^Driver:\s*(\S+)", builder, re.MULTILINE)
    if driver and driver[1] != "docker":
        return True
    status = run(["docker", "info", "--format", "{{json .DriverStatus}}"], env).stdout
    return "io.containerd.snapshotter" in status
