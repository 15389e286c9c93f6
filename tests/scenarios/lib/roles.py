"""A whole delivery whose trainer and rollout were observed; scenarios say what each of them ran on."""

from __future__ import annotations

import copy
import json
from typing import Any

from delivered import Delivered
from deliveries import RECIPE, lock, receipt, run
from observations import MATCH, A, clean_report
from tic_manifest.model.receipt import ProbeBody

ROLES = ("rollout", "trainer")
WORKERS = b"workers:\n" + b"".join(
    b"  probe_%s: {stage: probe, role: %s, command: [%s]}\n" % ((role.encode(),) * 3) for role in ROLES
)
VENV = "/opt/{role}/lib/python3.11/site-packages"


class Observed(Delivered):
    """`torch` is version and hash by role, each role in a venv of its own; `policy` is the recipe's."""

    def __init__(self, torch: dict[str, tuple[str, str]], policy: str = "{}") -> None:
        recipe = RECIPE.replace(b"workers:\n", WORKERS) + f"policy: {policy}\n".encode()
        super().__init__(lock=lock(recipe))
        self.reports = {role: report(role, *torch[role]) for role in ROLES}

    def evidence(self, which: int = 0, **receipts: Any) -> dict[str, bytes]:
        files = super().evidence(which, **receipts)
        runs = []
        for role, observation in self.reports.items():
            outputs = {"probe.json": json.dumps(observation).encode()}
            runs.append(run(f"probe_{role}", outputs, role=role, command=(role,)))
            files |= {f"runs/probe_{role}/{name}": data for name, data in outputs.items()}
        platform = {"platform_digest": self.judged(which).platform_digest}
        files["receipts/probe.json"] = receipt(self.lock, ProbeBody(runs=tuple(runs)), **platform)
        return files

    def policy(self, *names: str, **more: Any) -> None:
        super().policy("alpha", *names)


def report(role: str, version: str, sha256: str = A) -> dict[str, Any]:
    """A clean observation of a role that loaded this torch from its own venv."""
    data = copy.deepcopy(clean_report())
    owner = {**MATCH, "name": "torch", "version": version, "recorded_sha256": sha256}
    path = VENV.format(role=role) + "/torch/__init__.py"
    module = {"name": "torch", "file": path, "on_disk": True, "sha256": sha256, "owners": [owner]}
    data["inside"][0]["modules"].append(module)
    data["role"] = role
    return data
