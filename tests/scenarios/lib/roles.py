"""A whole delivery whose trainer and rollout were observed; scenarios say what each of them ran on."""

from __future__ import annotations

import copy
from typing import Any

from delivered import Delivered
from deliveries import RECIPE, lock
from observations import MATCH, A, clean_report

ROLES = ("rollout", "trainer")
WORKERS = b"workers:\n" + b"".join(
    b"  probe_%s: {stage: probe, role: %s, command: [%s]}\n" % ((role.encode(),) * 3) for role in ROLES
)
VENV = "/opt/{role}/lib/python3.11/site-packages"


def both_observed(torch: dict[str, tuple[str, str]], policy: str = "{}") -> Delivered:
    """`torch` is version and hash by role, each role in a venv of its own; `policy` is the recipe's."""
    recipe = RECIPE.replace(b"workers:\n", WORKERS) + f"policy: {policy}\n".encode()
    t = Delivered(lock=lock(recipe))
    t.probes = {role: report(role, *torch[role]) for role in ROLES}
    return t


def report(role: str, version: str, sha256: str = A) -> dict[str, Any]:
    """A clean observation of a role that loaded this torch from its own venv."""
    data = copy.deepcopy(clean_report())
    owner = {**MATCH, "name": "torch", "version": version, "recorded_sha256": sha256}
    path = VENV.format(role=role) + "/torch/__init__.py"
    module = {"name": "torch", "file": path, "on_disk": True, "sha256": sha256, "owners": [owner]}
    data["inside"][0]["modules"].append(module)
    data["role"] = role
    return data
