"""What trainer and rollout run on beside each other, in the report: only what differs, numerics first."""

from __future__ import annotations

import json

from tic_manifest.model.document import Entry, not_run, said
from tic_manifest.model.verdict import Finding, Status
from tic_manifest.rules.role_diff import CHECK
from tic_manifest.stages.report_context import WORDS, Context

LISTED = 200
CODE = "PROCESS_DIVERGENCE"


def roles(context: Context) -> Entry:
    """The check of the roles with every difference, both sides of each."""
    check = context.check(CHECK)
    if check is None:
        return not_run("the recipe does not probe two roles")
    if check.status is Status.NOT_RUN:
        return not_run(check.reason)
    found = [one for one in context.judged.findings if one.code == CODE]
    lines = [_line(one) for one in found[:LISTED]]
    return said(f"{WORDS[check.status]}: {check.reason}", *(lines or ["nothing differs"]))


def _line(one: Finding) -> str:
    sides = one.actual if isinstance(one.actual, dict) else {}
    told = "; ".join(f"{role}: {json.dumps(side, ensure_ascii=False)}" for role, side in sides.items())
    declared = one.evidence.get("declared_by")
    how = "declared" if declared else "note" if one.note else WORDS[one.status]
    return f"{how}, {one.evidence.get('kind')} {one.subject}: {told}"
