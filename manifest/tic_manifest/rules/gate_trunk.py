"""Which branches are agreed trunks: globs in which `*` does not cross `/` (contract, section 5)."""

from __future__ import annotations

import re
from collections.abc import Iterable

MIRROR = re.compile(r"^pull-request/(?P<number>[1-9][0-9]{0,9})$")
"""copy-pr-bot's mirror of a vetted pull request head (rules/pr-gate.md F3)."""

SYNTHETIC = re.compile(r"^(?:gh/[^/]+/[0-9]+/(?:base|head|orig)|graphite-base/[0-9]+|spr/.+)$")
"""Bases that ghstack, Graphite and spr make."""


def is_trunk(branch: str, globs: Iterable[str]) -> bool:
    """Whether a branch is an agreed trunk."""
    return any(_pattern(glob).fullmatch(branch) for glob in globs)


def mirrored(branch: str) -> int | None:
    """The pull request that a mirror branch shows."""
    found = MIRROR.match(branch)
    return int(found["number"]) if found else None


def _pattern(glob: str) -> re.Pattern[str]:
    parts = {"*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(parts.get(char) or re.escape(char) for char in glob))
