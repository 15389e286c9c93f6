"""Is it the right repository, open, ready, and aimed at an agreed trunk? (pr-gate.md F1-F4, F26, F39, F40)"""

from __future__ import annotations

from tic_manifest.model.gate import ForgePull, GatePolicy, PullRequestFacts, RepositoryFacts, StackFacts
from tic_manifest.model.verdict import Finding, Status, finding, note
from tic_manifest.rules.gate_trunk import SYNTHETIC, is_trunk, mirrored


def identity(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """REPO_IDENTITY, REPO_RENAMED: a name is only a name, the numeric id is the repository."""
    known = facts.repository
    if not isinstance(known, RepositoryFacts):
        return []
    pull_id = facts.pull.base_repo_id if isinstance(facts.pull, ForgePull) else None
    for expected in (facts.pinned_repo_id, pull_id):
        if expected is not None and expected != known.id:
            return [_other_repository(facts, known, expected)]
    if known.full_name.lower() == f"{facts.owner}/{facts.repo}".lower():
        return []
    return [
        note(
            "REPO_RENAMED",
            facts.name,
            expected=f"{facts.owner}/{facts.repo}",
            actual=f"{known.full_name} (same id {known.id})",
            remedy=f"write {known.full_name} into pull_requests.{facts.name}.url",
        )
    ]


def _other_repository(facts: PullRequestFacts, known: RepositoryFacts, expected: int) -> Finding:
    return finding(
        "REPO_IDENTITY",
        Status.FAIL,
        facts.name,
        expected=f"repository id {expected}",
        actual=f"{facts.owner}/{facts.repo} is {known.full_name}, repository id {known.id}",
        evidence={"ids": [expected, known.id]},
        remedy=f"check who owns {facts.owner}/{facts.repo}, then mend pull_requests.{facts.name}.url",
    )


def state(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """PR_MERGED, PR_CLOSED, HEAD_REPO_GONE."""
    pull = facts.pull
    if not isinstance(pull, ForgePull):
        return []
    found = []
    if pull.merged:
        found.append(_merged(facts, pull))
    elif pull.state != "open":
        remedy = f"gh pr reopen {facts.url}"
        found.append(
            finding("PR_CLOSED", Status.FAIL, facts.name, expected="open", actual=pull.state, remedy=remedy)
        )
    if pull.head_repo is None:
        found.append(note("HEAD_REPO_GONE", facts.name, actual=f"#{pull.number} is read from refs/pull"))
    found += [note("COMPANION_PLACEHOLDER", facts.name, actual=word) for word in pull.placeholders]
    return found


def _merged(facts: PullRequestFacts, pull: ForgePull) -> Finding:
    into = pull.merge_commit or "the merge"
    agreed = is_trunk(pull.base_ref, facts.trunks)
    return finding(
        "PR_MERGED",
        Status.FAIL,
        facts.name,
        expected="open",
        actual=f"merged into {pull.base_ref}" + ("" if agreed else ", which is no agreed trunk"),
        evidence={"oids": [pull.merge_commit] if pull.merge_commit else []},
        remedy=f"drop the pin and bump pull_requests.{facts.name}.base to {into} or later",
    )


def draft(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """DRAFT; a forge that does not say is unknown."""
    pull = facts.pull
    if not isinstance(pull, ForgePull) or pull.draft is False:
        return []
    if pull.draft is None:
        return [
            finding("FORGE_UNKNOWN", Status.INCONCLUSIVE, facts.name, expected="draft: false", actual="null")
        ]
    remedy = f"gh pr ready {facts.url}"
    return [
        finding("DRAFT", Status.FAIL, facts.name, expected="ready for review", actual="draft", remedy=remedy)
    ]


def target(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """STACKED_BASE where the live base is no trunk, TARGET_MISMATCH where it is another trunk: never both."""
    pull = facts.pull
    if not isinstance(pull, ForgePull):
        return []
    if not is_trunk(pull.base_ref, facts.trunks):
        return [_stacked(facts, pull)]
    if pull.base_ref == facts.target:
        return []
    return [
        finding(
            "TARGET_MISMATCH",
            Status.FAIL,
            facts.name,
            expected=facts.target,
            actual=pull.base_ref,
            remedy=f"gh pr edit {facts.url} --base {facts.target}",
        )
    ]


def _stacked(facts: PullRequestFacts, pull: ForgePull) -> Finding:
    mirror = mirrored(pull.base_ref)
    known = facts.stack.parents if isinstance(facts.stack, StackFacts) else ()
    parents = sorted({*known, *([mirror] if mirror and mirror != facts.number else [])})
    names = ", ".join(f"#{number}" for number in parents)
    kind = " (a branch that a stacking tool makes)" if SYNTHETIC.match(pull.base_ref) else ""
    return finding(
        "STACKED_BASE",
        Status.FAIL,
        facts.name,
        expected=f"one of the agreed trunks: {', '.join(facts.trunks)}",
        actual=f"base is {pull.base_ref}{kind}" + (f", the branch of {names}" if names else ""),
        evidence={"other_prs": list(parents), "base_ref": pull.base_ref},
        remedy=f"gh pr edit {facts.url} --base {facts.target}",
    )


def forge_stack(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """STACKED_FORGE: only a stack whose own base differs from ours says anything."""
    pull = facts.pull
    if not isinstance(pull, ForgePull) or pull.stack_base in {None, pull.base_ref}:
        return []
    return [
        finding(
            "STACKED_FORGE",
            Status.FAIL,
            facts.name,
            expected=f"base is the stack's base {pull.stack_base}",
            actual=f"base is {pull.base_ref}",
            remedy="merge the pull requests below it in the stack first",
        )
    ]
