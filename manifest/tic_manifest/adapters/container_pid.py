"""The process of a running container, by the container engine's own interface (docker SDK)."""

from __future__ import annotations

import docker
from docker.errors import DockerException, NotFound

from tic_manifest.errors import UnavailableError


def host_pid(host: str | None, container: str) -> int:
    """The pid, on this machine, of a container's first process; `host` as DOCKER_HOST.

    Raises UnavailableError ENGINE_MISSING, or PROCESS_GONE where no such container runs.
    """
    try:
        client = docker.DockerClient(base_url=host, timeout=60)
        try:
            state = client.api.inspect_container(container)["State"]
        finally:
            client.close()
    except NotFound as error:
        raise _gone(container, "the engine knows no such container") from error
    except (DockerException, OSError) as error:
        raise UnavailableError(
            "ENGINE_MISSING",
            "no container engine answers",
            where=host or "the default socket",
            actual=str(error)[:300],
            remedy="start your engine and name it in DOCKER_HOST, or name the process by --pid",
        ) from error
    pid = state.get("Pid")
    if not state.get("Running") or not isinstance(pid, int) or pid <= 0:
        raise _gone(container, f"its state is {state.get('Status')}")
    return pid


def _gone(container: str, actual: str) -> UnavailableError:
    return UnavailableError(
        "PROCESS_GONE", "no such running container", where=container, actual=actual,
        remedy="name a container that runs on this machine",
    )  # fmt: skip
