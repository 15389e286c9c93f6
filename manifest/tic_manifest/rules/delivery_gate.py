"""The gate's receipt judged again."""

from __future__ import annotations

from tic_manifest.model.verdict import Check, Finding, Status
from tic_manifest.rules.dossier import Dossier


def judge_gate(dossier: Dossier) -> tuple[list[Check], list[Finding]]:
    """One row per pull request; `not_run` without a receipt."""
    names = [pull.name for pull in dossier.lock.lock.pull_requests]
    return [
        Check(id=f"gate.{name}", status=Status.NOT_RUN, subject=name, reason="gate was not run")
        for name in names
    ], []
