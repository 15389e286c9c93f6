"""A policy applied to checks: states are set by name, nothing is waived (contract, section 1)."""

from __future__ import annotations

from collections.abc import Iterable

from tic_manifest.model.delivery import ImageRow, Statement
from tic_manifest.model.policy import Policy
from tic_manifest.model.verdict import Check, Finding, State, Status, finding

NEVER_OUT = frozenset(
    {
        "image.documents", "image.presence", "delivery.bound", "delivery.claims", "delivery.evidence",
        "delivery.manifest", "build.layers", "workers.asked",
    }
)  # fmt: skip
"""Checks that no policy can leave out: without them nothing else is about this image."""


def with_states(checks: Iterable[Check], policy: Policy) -> list[Check]:
    """Checks with the states of the policy; a required check that nothing measures is not run."""
    rows = list(checks)
    named = {name for row in rows for name in _names(row)}
    done = [row.model_copy(update={"state": _state(row, policy)}) for row in rows]
    return done + [
        Check(id=name, status=Status.NOT_RUN, reason="the policy requires it and nothing measures it")
        for name in policy.required
        if name not in named
    ]


def without_unasked(findings: Iterable[Finding], checks: Iterable[Check]) -> list[Finding]:
    """Findings without those that only say that a check was not run which the policy does not ask for."""
    out = {row.id for row in checks if row.state is State.OUT_OF_SCOPE}
    return [one for one in findings if not (one.code == "NOT_RUN" and one.subject in out)]


def check_base(statement: Statement, policy: Policy, subject: str) -> list[Finding]:
    """The base image is one that the policy accepts, by its platform digest."""
    bases = [row.base_platform_digest for row in statement.predicate.rows if isinstance(row, ImageRow)]
    if not policy.base_images:
        return []
    return [
        finding(
            "BASE_NOT_ALLOWED", Status.FAIL if base else Status.INCONCLUSIVE, subject,
            expected=list(policy.base_images), actual=base,
        )
        for base in bases or [None]
        if base not in policy.base_images
    ]  # fmt: skip


def _state(row: Check, policy: Policy) -> State:
    if _names(row) & set(policy.required):
        return State.REQUIRED
    out = _names(row) & set(policy.out_of_scope) and row.id not in NEVER_OUT
    return State.OUT_OF_SCOPE if out else row.state


def _names(row: Check) -> set[str]:
    return {row.id, row.id.rpartition(".")[2]}
