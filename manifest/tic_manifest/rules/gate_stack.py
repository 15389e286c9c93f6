"""Does it carry another open pull request's work? Exact sets and patches (pr-gate.md 1.2, rules 3, 4)."""

from __future__ import annotations

from tic_manifest.model.gate import Content, GatePolicy, PullRequestFacts, Relation, Residue, StackFacts
from tic_manifest.model.verdict import Finding, Status, finding, note


def commits(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """STACKED_SHA, STACKED_SHA/overlap and the notes of rule 3."""
    if not isinstance(facts.stack, StackFacts):
        return []
    return [_related(facts, one) for one in facts.stack.relations if one.shared_count]


def _related(facts: PullRequestFacts, one: Relation) -> Finding:
    other = f"#{one.number}"
    if not one.ours_only and not one.theirs_only:
        return note("DUPLICATE_PR", facts.name, actual=other, evidence=_oids(one))
    if not one.ours_only:
        return note("IS_PARENT_OF", facts.name, actual=other, evidence=_oids(one))
    if not one.theirs_only:
        return _stacked(facts, one, "STACKED_SHA", f"all {one.shared_count} commits of {other}")
    theirs, rule = owner(facts.number, one.number, one.linked, one.author)
    words = f"{one.shared_count} commits shared with {other}, which owns them by {rule}"
    if theirs:
        return _stacked(facts, one, "STACKED_SHA/overlap", words, rule)
    return note(
        "OVERLAP_OWNED",
        facts.name,
        actual=f"{one.shared_count} commits shared with {other}, ours by {rule}",
        evidence={**_oids(one), "decided_by": rule},
    )


def owner(ours: int, theirs: int, linked: str | None, author: str | None) -> tuple[bool, str]:
    """Whether the other pull request owns what both hold, and the rule that decides (1.2, rule 3)."""
    if linked:
        return linked == "theirs", "declaration"
    if author:
        return author == "theirs", "authorship"
    return theirs < ours, "lower number"


def _stacked(facts: PullRequestFacts, one: Relation, code: str, words: str, rule: str = "") -> Finding:
    command = f"git rev-list {facts.pinned_head} --not {facts.pinned_base} {facts.target}"
    return finding(
        code,
        Status.FAIL,
        facts.name,
        expected="no commit of another open pull request",
        actual=words,
        evidence={**_oids(one), "decided_by": rule or "set inclusion", "commands": [command]},
        remedy=f"merge #{one.number} first, or: git rebase --onto {facts.target} {one.shared[0]}",
    )


def _oids(one: Relation) -> dict[str, object]:
    return {"other_prs": [one.number], "oids": list(one.shared), "count": one.shared_count}


def patches(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """STACKED_CONTENT, STACKED_CONTENT/squashed, COINCIDENT_PATCH."""
    if not isinstance(facts.stack, StackFacts):
        return []
    return [said for one in facts.stack.contents for said in _copied(facts, one)]


def _copied(facts: PullRequestFacts, one: Content) -> list[Finding]:
    found = [_verdict(facts, one)] if one.strong else []
    if one.squashed:
        found.append(_content(facts, one, "STACKED_CONTENT/squashed", [one.squashed]))
    for pair in one.coincident:
        evidence = {"oids": [pair.ours, pair.theirs], "other_prs": [one.number]}
        found.append(note("COINCIDENT_PATCH", facts.name, actual=f"#{one.number}", evidence=evidence))
    return found


def _verdict(facts: PullRequestFacts, one: Content) -> Finding:
    oids = [oid for pair in one.strong for oid in (pair.ours, pair.theirs)]
    evidence: dict[str, object] = {"other_prs": [one.number], "oids": oids}
    if not one.ours_left:
        code = "IS_PARENT_OF" if one.theirs_left else "DUPLICATE_PR"
        return note(code, facts.name, actual=f"#{one.number} (by content)", evidence=evidence)
    theirs, rule = True, "set inclusion"
    if one.theirs_left:
        theirs, rule = owner(facts.number, one.number, one.linked, one.author)
    if theirs:
        return _content(facts, one, "STACKED_CONTENT", oids, rule)
    evidence["decided_by"] = rule
    return note("OVERLAP_OWNED", facts.name, actual=f"#{one.number}, ours by {rule}", evidence=evidence)


def _content(facts: PullRequestFacts, one: Content, code: str, oids: list[str], rule: str = "") -> Finding:
    return finding(
        code,
        Status.FAIL,
        facts.name,
        expected="no copy of another open pull request's commits",
        actual=f"content of #{one.number}",
        evidence={"other_prs": [one.number], "oids": oids, "decided_by": rule or "net patch"},
        remedy=f"drop the copied commits, or merge #{one.number} first",
    )


def residue(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """MERGED_PARENT_RESIDUE, RESIDUE_DIVERGES (rules/pr-gate.md F10, F27)."""
    if not isinstance(facts.residues, tuple):
        return []
    return [said for one in facts.residues for said in _residue(facts, one)]


def _residue(facts: PullRequestFacts, one: Residue) -> list[Finding]:
    parent = f"#{one.number}" if one.number else "a merged pull request"
    evidence: dict[str, object] = {"oids": list(one.commits), "replay": one.replay}
    if one.number:
        evidence["other_prs"] = [one.number]
    found = [note("MERGED_PARENT_RESIDUE", facts.name, actual=f"commits of {parent}", evidence=evidence)]
    if one.replay in {"differs", "conflict"}:
        found.append(
            finding(
                "RESIDUE_DIVERGES",
                Status.FAIL,
                facts.name,
                expected="the merge gives what the own commits give on top of the base",
                actual=f"{one.replay} in {', '.join(one.paths) or 'the whole tree'}",
                evidence={**evidence, "paths": list(one.paths)},
                remedy=f"git rebase --onto {facts.target} {one.commits[0]}",
            )
        )
    return found
