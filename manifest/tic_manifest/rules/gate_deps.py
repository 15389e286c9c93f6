"""Declared dependencies and submodules: what must be merged elsewhere first (pr-gate.md F8, F9, F31)."""

from __future__ import annotations

from collections.abc import Sequence

from tic_manifest.model.gate import (
    Dependency,
    GatePolicy,
    PullRequestFacts,
    SubmoduleFact,
    Unknown,
)
from tic_manifest.model.verdict import Finding, Status, finding, note


def declared(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """STACKED_DECLARED for what is neither merged into a trunk nor in this set; notes for the rest."""
    if not isinstance(facts.dependencies, tuple):
        return []
    return [said for one in facts.dependencies for said in _dependency(facts, one)]


def _dependency(facts: PullRequestFacts, one: Dependency) -> list[Finding]:
    if one.unknown is not None:
        return [unknown(one.unknown, facts.name)]
    if one.name:
        found = [note("DEPENDENCY_IN_SET", facts.name, actual=f"{one.text} is {one.name} of this set")]
        if one.depends_on_us:
            found.append(note("DEPENDENCY_CYCLE_IN_SET", facts.name, actual=f"{facts.name} and {one.name}"))
        return found
    if one.merged and one.reachable:
        return [note("DEPENDENCY_IN_SET", facts.name, actual=f"{one.text} is merged into {one.base_ref}")]
    return [_unmet(facts, one)]


def _unmet(facts: PullRequestFacts, one: Dependency) -> Finding:
    how = f"it is {one.state}"
    if one.merged:
        how = f"it is merged, but not into an agreed trunk ({one.base_ref})"
    where = f"#{one.number}" if (one.owner, one.repo) == (facts.owner, facts.repo) else one.text
    return finding(
        "STACKED_DECLARED",
        Status.FAIL,
        facts.name,
        expected=f"{one.text} merged into an agreed trunk, or in this recipe",
        actual=how,
        evidence={"other_prs": [one.number], "repository": f"{one.owner}/{one.repo}"},
        remedy=f"merge {where} into an agreed trunk, or add it under pull_requests",
    )


def unknown(one: Unknown, subject: str) -> Finding:
    """The finding of a question that has no answer."""
    return finding(
        one.code,
        Status.INCONCLUSIVE,
        subject,
        what=one.what,
        actual=one.actual or None,
        remedy=one.remedy or "run the same command again",
    )


def submodules(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """SUBMODULE_URL_CHANGED, SUBMODULE_UNMERGED, SUBMODULE_MISSING."""
    if not isinstance(facts.submodules, tuple):
        return []
    return [said for one in facts.submodules for said in _submodule(facts, one)]


def _submodule(facts: PullRequestFacts, one: SubmoduleFact) -> list[Finding]:
    found = []
    if one.base_url is not None and one.base_url != one.url:
        found.append(_bad(facts, one, "SUBMODULE_URL_CHANGED", one.base_url, one.url or "no URL"))
    if isinstance(one.remote, Unknown):
        found += [unknown(one.remote, facts.name)] if one.remote.code else []
    elif one.remote == "unmerged":
        words = f"{one.commit} is on no agreed branch of {one.url}"
        found.append(_bad(facts, one, "SUBMODULE_UNMERGED", "a merged commit", words))
    elif one.remote == "missing":
        words = f"{one.commit} is not at {one.url or 'any URL of .gitmodules'}"
        found.append(_bad(facts, one, "SUBMODULE_MISSING", "a commit that its remote has", words))
    return found


def _bad(facts: PullRequestFacts, one: SubmoduleFact, code: str, expected: str, actual: str) -> Finding:
    return finding(
        code,
        Status.FAIL,
        facts.name,
        expected=expected,
        actual=actual,
        evidence={"paths": [one.path], "oids": [one.commit], "url": one.url},
        remedy=f"git submodule status {one.path}  # then mend it in the pull request",
    )


def coherent(facts: PullRequestFacts, pulls: Sequence[PullRequestFacts]) -> list[Finding]:
    """SET_INCOHERENT: a submodule pins another commit of a repository than this set does (S65)."""
    if not isinstance(facts.submodules, tuple):
        return []
    heads = {one.name: one.pinned_head for one in pulls}
    return [
        finding(
            "SET_INCOHERENT",
            Status.FAIL,
            facts.name,
            expected=f"{heads[one.same_as]}, the head of {one.same_as} in this set",
            actual=f"submodule {one.path} is {one.commit}",
            evidence={"paths": [one.path], "oids": [one.commit, heads[one.same_as]], "url": one.url},
            remedy=f"move the submodule {one.path} to {heads[one.same_as]}, or pin {one.commit}",
        )
        for one in facts.submodules
        if one.same_as and one.same_as in heads and heads[one.same_as] != one.commit
    ]
