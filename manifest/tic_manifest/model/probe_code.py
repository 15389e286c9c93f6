"""Parts of an observation: live code against shipped code (docs/probe-agent.md)."""

from __future__ import annotations

from typing import Literal

from tic_manifest.model.probe_parts import Count, Observed, Owner


class Patched(Observed):
    """A name of a module or class that holds code from elsewhere, though the source says otherwise.

    `said`: what the source says of it: defined there, imported, or nothing (a class above has it).
    """

    module: str
    attribute: str
    file: str
    line: Count
    name: str
    inherited: bool
    said: Literal["def", "import", "absent"]
    owners: tuple[Owner, ...] = ()
    expected: tuple[Owner, ...] = ()


class Running(Observed):
    """Live functions of a process against the sources; `reason`: why some were not compared."""

    functions: Count
    compared: Count
    foreign: Count
    cut_short: bool
    reason: str | None
    patched: tuple[Patched, ...]


class Override(Observed):
    """A kernel that Python registered for an operator of compiled code; `inactive`: the one it replaces."""

    operator: str
    key: str
    file: str
    line: Count
    inactive: str | None
    owners: tuple[Owner, ...] = ()


class Operators(Observed):
    """torch's dispatcher; `torch_meta` counts torch's own kernels that only compute shapes."""

    torch_loaded: bool
    read: bool
    operators: Count
    torch_meta: Count
    overrides: tuple[Override, ...]
