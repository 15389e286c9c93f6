"""A local checkout against the pinned tree, and what changed while the set was judged (F29-F32, F45)."""

from __future__ import annotations

from tic_manifest.model.gate import (
    BaseFacts,
    Closing,
    ForgePull,
    GatePolicy,
    HeadFacts,
    LocalFacts,
    PullRequestFacts,
)
from tic_manifest.model.verdict import Finding, Status, finding, note


def checkout(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """LOCAL_DIRTY by kind, LOCAL_UNPUSHED, SUBMODULE_* of the checkout."""
    seen = facts.local
    if not isinstance(seen, LocalFacts):
        return []
    found = [_unpushed(facts, seen)] if seen.unpushed_count else []
    if seen.head != facts.pinned_head and not seen.unpushed_count:
        found.append(_elsewhere(facts, seen))
    found += [_dirty(facts, kind, paths, count) for kind, paths, count in seen.dirty]
    return found + [_submodule(facts, code, path) for code, path in seen.submodules]


def lfs(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """LFS_MALFORMED: a note, because blobs are compared and not files."""
    paths = list(facts.lfs_malformed)
    return (
        [note("LFS_MALFORMED", facts.name, actual=", ".join(paths), evidence={"paths": paths})]
        if paths
        else []
    )


def _elsewhere(facts: PullRequestFacts, seen: LocalFacts) -> Finding:
    return finding(
        "LOCAL_DIRTY",
        Status.FAIL,
        facts.name,
        expected=f"HEAD is {facts.pinned_head}",
        actual=f"HEAD is {seen.head or 'unborn'}",
        remedy=f"git checkout --detach {facts.pinned_head}",
    )


def _unpushed(facts: PullRequestFacts, seen: LocalFacts) -> Finding:
    return finding(
        "LOCAL_UNPUSHED",
        Status.FAIL,
        facts.name,
        expected=f"HEAD is {facts.pinned_head}",
        actual=f"HEAD is {seen.head}, {seen.unpushed_count} commits that the forge does not have",
        evidence={"oids": list(seen.unpushed)},
        remedy=f"push, then pull_requests.{facts.name}.head: {seen.head}",
    )


def _dirty(facts: PullRequestFacts, kind: str, paths: tuple[str, ...], count: int) -> Finding:
    return finding(
        f"LOCAL_DIRTY/{kind}",
        Status.FAIL,
        facts.name,
        expected=f"the tree of {facts.pinned_head}",
        actual=f"{count}: {', '.join(paths)}",
        evidence={"paths": list(paths), "count": count},
        remedy=f"git status --porcelain --ignored --ignore-submodules=none  # {kind}",
    )


def _submodule(facts: PullRequestFacts, code: str, path: str) -> Finding:
    remedy = f"git -C {path} status --ignored"
    return finding(
        code, Status.FAIL, facts.name, expected="as the tree names it", actual=path,
        evidence={"paths": [path]}, remedy=remedy,
    )  # fmt: skip


def snapshot(facts: PullRequestFacts, policy: GatePolicy) -> list[Finding]:
    """SNAPSHOT_MOVED: the closing reads must equal the first ones."""
    moved = _changes(facts)
    if not moved:
        return []
    words = "; ".join(f"{name} was {before}, is {after}" for name, before, after in moved)
    return [
        finding(
            "SNAPSHOT_MOVED",
            Status.INCONCLUSIVE,
            facts.name,
            expected="nothing moves while the set is judged",
            actual=words,
            remedy="run the gate again",
        )
    ]


def _changes(facts: PullRequestFacts) -> list[tuple[str, object, object]]:
    pull, last = facts.pull, facts.closing
    if not isinstance(pull, ForgePull) or not isinstance(last, Closing):
        return []
    pairs: list[tuple[str, object, object]] = [
        ("state", pull.state, last.state),
        ("draft", pull.draft, last.draft),
        ("base", pull.base_ref, last.base_ref),
        ("head", pull.head_sha, last.head_sha),
    ]
    if isinstance(facts.head, HeadFacts):
        pairs.append((f"refs/pull/{facts.number}/head", facts.head.ref, last.ref))
    if isinstance(facts.base, BaseFacts):
        pairs.append((facts.base.branch, facts.base.tip, last.tip))
    return [pair for pair in pairs if pair[1] != pair[2]]
