"""Files that a container runtime takes from the host: which of them a person allows in a worker."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from tic_manifest.model.base import PersonValue, Sha256Hex


class HostFile(PersonValue):
    """An allowed file: its name, `*` for any part of it, and where it must be just one file its sha256."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._*+-]{1,128}$")]
    sha256: Sha256Hex | None = None


class HostPolicy(PersonValue):
    """What of the host a worker may map, and whether it may compile; all else that no package ships fails."""

    host_injected: tuple[HostFile, ...] = ()
    compat_driver: Literal["fail", "note"] = "fail"
    jit_at_runtime: Literal["allow", "forbid"] = "allow"
