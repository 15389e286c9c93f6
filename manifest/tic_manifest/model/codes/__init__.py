"""The finding registry: one code, one meaning, one page under `explain`. Codes are a stable API.

Each area keeps its codes in a module of its own; a code may have `/variants`, whose meaning defaults to
the family's. Source: contract, section 7.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Code:
    """A family of findings: what it means, what to do, where the rule comes from."""

    name: str
    meaning: str
    remedy: str
    source: str
    variants: dict[str, str] = field(default_factory=dict)


def _registry() -> dict[str, Code]:
    from tic_manifest.model.codes import (
        chain,
        delivery,
        files,
        gate,
        general,
        parity,
        probe,
        probe_roles,
        reading,
    )

    modules = (general, chain, gate, reading, files, probe, probe_roles, parity, delivery)
    known: dict[str, Code] = {}
    for code in (one for module in modules for one in module.CODES):
        if code.name in known:
            raise ValueError(f"code {code.name} is defined twice")
        known[code.name] = code
    return known


_KNOWN: dict[str, Code] = {}


def registry() -> dict[str, Code]:
    """All codes by name, families only."""
    if not _KNOWN:
        _KNOWN.update(_registry())
    return _KNOWN


def lookup(code: str) -> Code:
    """The family of `FAMILY` or `FAMILY/variant`; KeyError when either is not registered."""
    name, slash, variant = code.partition("/")
    family = registry()[name]
    if slash and variant not in family.variants:
        raise KeyError(code)
    return family


def meaning(code: str) -> str:
    """One sentence: what the code says."""
    family = lookup(code)
    return family.variants.get(code.partition("/")[2]) or family.meaning
