"""The gate's verdict from facts alone: tables of facts and the codes that follow, and those that must not."""

from __future__ import annotations

from typing import Any

import pytest
from tic_manifest.formats.canonical import canonical_bytes
from tic_manifest.model.gate import (
    Alternative,
    BaseFacts,
    Closing,
    Content,
    Dependency,
    ForgePull,
    GateFacts,
    GatePolicy,
    HeadFacts,
    LocalFacts,
    MergeFacts,
    Pair,
    PullRequestFacts,
    RangeFacts,
    Rebased,
    Relation,
    RepositoryFacts,
    Residue,
    StackFacts,
    SubmoduleFact,
    Unknown,
)
from tic_manifest.model.receipt import GateBody
from tic_manifest.model.verdict import Outcome
from tic_manifest.rules.gate import judge

BASE, HEAD, TIP, OTHER, TREE = ("b" * 40, "a" * 40, "c" * 40, "d" * 40, "e" * 40)


def pull(**changes: Any) -> ForgePull:
    """An open pull request that merges."""
    plain: dict[str, Any] = {
        "number": 7, "state": "open", "draft": False, "merged": False, "merge_commit": None, "author": "a",
        "base_ref": "main", "base_repo_id": 1, "head_ref": "feat", "head_sha": HEAD, "head_repo_id": 1,
        "head_repo": "o/r", "mergeable": True, "mergeable_state": "clean",
    }  # fmt: skip
    return ForgePull(**{**plain, **changes})


def merge(**changes: Any) -> MergeFacts:
    """A clean merge."""
    return MergeFacts(**{"base": BASE, "head": HEAD, "merge_bases": (BASE,), "tree": TREE, **changes})


def head(**changes: Any) -> HeadFacts:
    """A head that is the pin, by every record."""
    plain: dict[str, Any] = {
        "pinned": "present",
        "forge": HEAD,
        "ref": HEAD,
        "branch": HEAD,
        "pin_in_head": True,
    }
    return HeadFacts(**{**plain, **changes})


def facts(**changes: Any) -> PullRequestFacts:
    """A pull request with nothing wrong."""
    plain: dict[str, Any] = {
        "name": "vllm", "url": "https://forge.invalid/o/r/pull/7", "owner": "o", "repo": "r", "number": 7,
        "target": "main", "trunks": ("main", "releases/*"), "pinned_base": BASE, "pinned_head": HEAD,
        "repository": RepositoryFacts(id=1, full_name="o/r", default_branch="main"), "pull": pull(),
        "head": head(), "base": BaseFacts(branch="main", tip=BASE, pinned_in_tip=True),
        "range": RangeFacts(own=(HEAD,), own_count=1), "stack": StackFacts(open_count=1),
        "pinned_merge": merge(), "live_merge": merge(), "forge_merge": merge(),
        "closing": Closing(state="open", draft=False, base_ref="main", head_sha=HEAD, ref=HEAD, tip=BASE),
    }  # fmt: skip
    return PullRequestFacts(**{**plain, **changes})


def codes(one: PullRequestFacts, policy: GatePolicy | None = None) -> tuple[Outcome, list[str]]:
    """Outcome and the codes that are said, without the notes of what was looked at and what would pass."""
    seen = judge(GateFacts(policy=policy or GatePolicy(), pulls=(one,)))
    return seen.outcome, [said.code for said in seen.findings if said.code not in NOTED]


def closing(**changes: Any) -> Closing:
    plain: dict[str, Any] = {
        "state": "open",
        "draft": False,
        "base_ref": "main",
        "head_sha": HEAD,
        "ref": HEAD,
    }
    return Closing(**{**plain, "tip": BASE, **changes})


NOTED = {"JUDGED", "COUNTERFACTUAL"}
UNKNOWN = Unknown(code="RATE_LIMITED", what="the forge's rate limit is used up")
PASS, FAIL, OPEN = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("changes", "outcome", "said"),
    [
        ({}, PASS, []),
        # state
        ({"pull": pull(draft=True), "closing": closing(draft=True)}, FAIL, ["DRAFT"]),
        ({"pull": pull(draft=None), "closing": closing(draft=None)}, OPEN, ["FORGE_UNKNOWN"]),
        ({"pull": pull(state="closed"), "closing": closing(state="closed")}, FAIL, ["PR_CLOSED"]),
        ({"pull": pull(state="closed", merged=True), "closing": closing(state="closed")}, FAIL, ["PR_MERGED"]),
        ({"pull": pull(head_repo=None, head_repo_id=None)}, PASS, ["HEAD_REPO_GONE"]),
        ({"pull": pull(placeholders=("TODO_PR_URL",))}, PASS, ["COMPANION_PLACEHOLDER"]),
        # repository
        ({"pinned_repo_id": 2}, FAIL, ["REPO_IDENTITY"]),
        ({"pull": pull(base_repo_id=9)}, FAIL, ["REPO_IDENTITY"]),
        ({"repository": RepositoryFacts(id=1, full_name="n/r", default_branch="")}, PASS, ["REPO_RENAMED"]),
        # target
        ({"pull": pull(base_ref="feat-p"), "closing": closing(base_ref="feat-p")}, FAIL, ["STACKED_BASE"]),
        ({"pull": pull(base_ref="releases/1"), "closing": closing(base_ref="releases/1")}, FAIL, ["TARGET_MISMATCH"]),
        ({"pull": pull(base_ref="releases/1/x"), "closing": closing(base_ref="releases/1/x")}, FAIL, ["STACKED_BASE"]),
        ({"pull": pull(stack_base="main")}, PASS, []),
        ({"pull": pull(stack_base="feat-p")}, FAIL, ["STACKED_FORGE"]),
        # head
        ({"head": head(pinned="unfetchable")}, FAIL, ["PIN_UNFETCHABLE"]),
        ({"head": head(branch=OTHER)}, OPEN, ["HEAD_RECORD_LAG"]),
        ({"head": head(listed=OTHER)}, OPEN, ["HEAD_RECORD_LAG"]),
        ({"head": head(forge=OTHER, ref=OTHER, branch=None), "closing": closing(ref=OTHER)}, FAIL, ["HEAD_MOVED/fast_forward"]),
        (
            {"head": head(forge=OTHER, ref=OTHER, branch=None, pin_in_head=False, equal=True), "closing": closing(ref=OTHER)},
            FAIL, ["HEAD_MOVED/rebased_equal"],
        ),
        (
            {"head": head(forge=OTHER, ref=OTHER, branch=None, pin_in_head=False, former=True), "closing": closing(ref=OTHER)},
            FAIL, ["HEAD_MOVED/rewritten"],
        ),
        (
            {"head": head(forge=OTHER, ref=OTHER, branch=None, pin_in_head=False, former=False), "closing": closing(ref=OTHER)},
            FAIL, ["PIN_NOT_IN_PR"],
        ),
        ({"head": head(merge_parents=(BASE, HEAD))}, PASS, []),
        ({"head": head(merge_parents=(BASE, OTHER))}, PASS, ["MERGE_REF_STALE"]),
        # base
        ({"base": BaseFacts(branch="main", tip=None), "closing": closing(tip=None)}, FAIL, ["BASE_GONE"]),
        (
            {"base": BaseFacts(branch="main", tip=TIP, pinned_in_tip=False), "closing": closing(tip=TIP)},
            FAIL, ["BASE_REWRITTEN"],
        ),
        (
            {"base": BaseFacts(branch="main", tip=TIP, pinned_in_tip=True, ahead=3), "closing": closing(tip=TIP)},
            FAIL, ["BASE_MOVED"],
        ),
        (
            {"base": BaseFacts(branch="main", tip=BASE, pinned_in_tip=True, trunk_in_range_count=2)},
            FAIL, ["BASE_PIN_BEHIND_HEAD"],
        ),
        (
            {"base": BaseFacts(branch="main", tip=BASE, pinned_in_tip=True, other_trunks=(("dev", 3),))},
            PASS, ["TRUNK_COMMITS"],
        ),
        ({"range": RangeFacts(own=(), own_count=0)}, FAIL, ["PR_EMPTY"]),
        # merge, the table of 1.3
        ({"pinned_merge": merge(conflicts=("a",))}, FAIL, ["MERGE_CONFLICT"]),
        ({"live_merge": merge(conflicts=("a",))}, FAIL, ["MERGE_CONFLICT/live_base"]),
        ({"pinned_merge": merge(conflicts=("a",), driven_conflicts=())}, FAIL, ["MERGE_CONFLICT/driver"]),
        ({"pinned_merge": merge(driven_conflicts=("a",))}, FAIL, ["MERGE_CONFLICT/driver"]),
        ({"pinned_merge": merge(driven_conflicts=())}, PASS, []),
        ({"pinned_merge": merge(merge_bases=(), tree=None)}, FAIL, ["NO_COMMON_HISTORY"]),
        ({"pull": pull(mergeable=False, mergeable_state="dirty")}, OPEN, ["FORGE_DISAGREES"]),
        ({"pull": pull(mergeable=True, mergeable_state="dirty")}, OPEN, ["FORGE_DISAGREES"]),
        ({"pull": pull(mergeable=None, mergeable_state="unknown")}, OPEN, ["FORGE_UNKNOWN"]),
        ({"pull": pull(mergeable_state="quantum")}, OPEN, ["FORGE_UNKNOWN"]),
        ({"pull": pull(mergeable_state="blocked")}, PASS, ["FORGE_STATE"]),
        (
            {
                "pull": pull(mergeable=False, mergeable_state="dirty"), "pinned_merge": merge(conflicts=("a",)),
                "forge_merge": merge(conflicts=("a",)),
            },
            FAIL, ["MERGE_CONFLICT"],
        ),
        # the rest
        ({"residues": (Residue(number=3, commits=(OTHER,), replay="equal"),)}, PASS, ["MERGED_PARENT_RESIDUE"]),
        (
            {"residues": (Residue(number=3, commits=(OTHER,), replay="differs", paths=("a",)),)},
            FAIL, ["MERGED_PARENT_RESIDUE", "RESIDUE_DIVERGES"],
        ),
        (
            {"dependencies": (Dependency(text="#3", owner="o", repo="r", number=3, state="open", merged=False),)},
            FAIL, ["STACKED_DECLARED"],
        ),
        (
            {"dependencies": (Dependency(text="#3", owner="o", repo="r", number=3, merged=True, reachable=False),)},
            FAIL, ["STACKED_DECLARED"],
        ),
        (
            {"dependencies": (Dependency(text="#3", owner="o", repo="r", number=3, merged=True, reachable=True),)},
            PASS, ["DEPENDENCY_IN_SET"],
        ),
        ({"lfs_malformed": ("big.bin",)}, PASS, ["LFS_MALFORMED"]),
        ({"local": LocalFacts(head=HEAD)}, PASS, []),
        ({"local": LocalFacts(head=HEAD, dirty=(("staged", ("a",), 1),))}, FAIL, ["LOCAL_DIRTY/staged"]),
        ({"local": LocalFacts(head=OTHER, unpushed=(OTHER,), unpushed_count=1)}, FAIL, ["LOCAL_UNPUSHED"]),
        ({"local": LocalFacts(head=OTHER)}, FAIL, ["LOCAL_DIRTY"]),
        ({"closing": closing(head_sha=OTHER)}, OPEN, ["SNAPSHOT_MOVED"]),
        ({"closing": closing(tip=OTHER)}, OPEN, ["SNAPSHOT_MOVED"]),
        # unknown never passes and never accuses
        *[
            ({name: UNKNOWN}, OPEN, ["RATE_LIMITED"])
            for name in (
                "repository", "pull", "head", "base", "range", "stack", "pinned_merge", "live_merge",
                "forge_merge", "residues", "dependencies", "submodules", "local", "closing",
            )
        ],
    ],
)  # fmt: skip
def test_codes(changes: dict[str, Any], outcome: Outcome, said: list[str]) -> None:
    assert codes(facts(**changes)) == (outcome, said)


def relation(shared: int, ours: int, theirs: int, **more: Any) -> StackFacts:
    one = Relation(
        number=more.pop("number", 3),
        shared=(OTHER,),
        shared_count=shared,
        ours_only=ours,
        theirs_only=theirs,
        **more,
    )
    return StackFacts(open_count=2, relations=(one,))


@pytest.mark.parametrize(
    ("stack", "said"),
    [
        (relation(1, 0, 0), "DUPLICATE_PR"),
        (relation(1, 0, 2), "IS_PARENT_OF"),
        (relation(1, 2, 0), "STACKED_SHA"),
        (relation(1, 1, 1, number=3), "STACKED_SHA/overlap"),
        (relation(1, 1, 1, number=9), "OVERLAP_OWNED"),
        (relation(1, 1, 1, number=9, author="theirs"), "STACKED_SHA/overlap"),
        (relation(1, 1, 1, number=3, author="ours"), "OVERLAP_OWNED"),
        (relation(1, 1, 1, number=3, author="theirs", linked="ours"), "OVERLAP_OWNED"),
    ],
)
def test_sets(stack: StackFacts, said: str) -> None:
    outcome, found = codes(facts(stack=stack))
    assert found == [said]
    assert outcome is (FAIL if said.startswith("STACKED") else PASS)


PAIR = Pair(ours=HEAD, theirs=OTHER)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (Content(number=3, strong=(PAIR,), ours_left=1), ["STACKED_CONTENT"]),
        (Content(number=3, strong=(PAIR,), theirs_left=1), ["IS_PARENT_OF"]),
        (Content(number=3, strong=(PAIR,)), ["DUPLICATE_PR"]),
        (Content(number=9, strong=(PAIR,), ours_left=1, theirs_left=1), ["OVERLAP_OWNED"]),
        (Content(number=9, strong=(PAIR,), ours_left=1, theirs_left=1, linked="theirs"), ["STACKED_CONTENT"]),
        (Content(number=3, coincident=(PAIR,), ours_left=1), ["COINCIDENT_PATCH"]),
        (Content(number=3, squashed=HEAD), ["STACKED_CONTENT/squashed"]),
    ],
)
def test_patches(content: Content, said: list[str]) -> None:
    assert codes(facts(stack=StackFacts(open_count=2, contents=(content,))))[1] == said


def submodule(**changes: Any) -> SubmoduleFact:
    plain: dict[str, Any] = {"path": "s", "commit": OTHER, "url": "u", "base_url": "u", "base_commit": OTHER}
    return SubmoduleFact(**{**plain, "remote": "unchanged", **changes})


@pytest.mark.parametrize(
    ("one", "outcome", "said"),
    [
        (submodule(), PASS, []),
        (submodule(remote="reachable"), PASS, []),
        (submodule(remote="unmerged"), FAIL, ["SUBMODULE_UNMERGED"]),
        (submodule(remote="missing"), FAIL, ["SUBMODULE_MISSING"]),
        (submodule(base_url="v"), FAIL, ["SUBMODULE_URL_CHANGED"]),
        (submodule(remote=UNKNOWN), OPEN, ["RATE_LIMITED"]),
        (submodule(same_as="vllm"), FAIL, ["SET_INCOHERENT"]),
    ],
)
def test_submodules(one: SubmoduleFact, outcome: Outcome, said: list[str]) -> None:
    assert codes(facts(submodules=(one,))) == (outcome, said)


def test_what_a_policy_sets_out_of_scope_is_not_judged() -> None:
    policy = GatePolicy(out_of_scope=("draft",))
    seen = judge(GateFacts(policy=policy, pulls=(facts(pull=pull(draft=True), closing=closing(draft=True)),)))
    assert seen.outcome is PASS
    assert [(c.state.value, c.status.value) for c in seen.checks if c.id == "draft"] == [
        ("out_of_scope", "not_run")
    ]


@pytest.mark.parametrize(
    ("limit", "action", "ahead", "outcome"),
    [
        (0, "fail", 1, FAIL),
        (10, "note", 3, PASS),
        (2, "note", 3, FAIL),
        (0, "note", 3, PASS),
        (5, "fail", 3, PASS),
    ],
)
def test_drift(limit: int, action: Any, ahead: int, outcome: Outcome) -> None:
    policy = GatePolicy(drift_commits=limit, drift_action=action)
    base = BaseFacts(branch="main", tip=TIP, pinned_in_tip=True, ahead=ahead)
    assert codes(facts(base=base, closing=closing(tip=TIP)), policy) == (outcome, ["BASE_MOVED"])


def test_advisory() -> None:
    policy = GatePolicy(forge_mergeable="advisory")
    assert codes(facts(pull=pull(mergeable=None)), policy) == (PASS, ["FORGE_UNKNOWN"])


def test_all_reasons_of_all_pulls_in_a_stable_order() -> None:
    three = (
        facts(name="a", pull=pull(draft=True), closing=closing(draft=True)),
        facts(name="b", pinned_merge=merge(conflicts=("x",)), range=RangeFacts(own=(), own_count=0)),
        facts(name="c", stack=UNKNOWN),
    )
    seen = judge(GateFacts(policy=GatePolicy(), pulls=three))
    said = [(one.subject, one.code) for one in seen.findings if not one.note]
    assert said == [("a", "DRAFT"), ("b", "PR_EMPTY"), ("b", "MERGE_CONFLICT"), ("c", "RATE_LIMITED")]
    assert seen.outcome is FAIL


def would_pass(one: PullRequestFacts) -> list[object]:
    seen = judge(GateFacts(policy=GatePolicy(), pulls=(one,)))
    return [said.actual for said in seen.findings if said.code == "COUNTERFACTUAL"]


def test_the_smallest_change() -> None:
    ready = "gh pr ready https://forge.invalid/o/r/pull/7"
    two = facts(
        pull=pull(draft=True, base_ref="releases/1"), closing=closing(draft=True, base_ref="releases/1")
    )
    assert would_pass(facts()) == []
    assert would_pass(facts(pull=pull(draft=True), closing=closing(draft=True))) == [ready]
    assert would_pass(two) == [f"{ready}; then gh pr edit https://forge.invalid/o/r/pull/7 --base main"]


def test_a_repin_is_judged_by_the_same_rules() -> None:
    moved = head(forge=OTHER, ref=OTHER, branch=OTHER)
    live = Alternative(
        base=BASE, head=OTHER, base_facts=BaseFacts(branch="main", tip=BASE, pinned_in_tip=True), head_facts=moved,
        range=RangeFacts(own=(OTHER,), own_count=1), stack=StackFacts(open_count=1), merge=merge(head=OTHER),
    )  # fmt: skip
    one = facts(head=moved, closing=closing(ref=OTHER), alternative=live)
    assert would_pass(one) == [f"pin base {BASE} and head {OTHER}"]
    bad = live.model_copy(update={"merge": merge(conflicts=("a",))})
    assert would_pass(one.model_copy(update={"alternative": bad})) == []


def test_a_rebase_is_judged_by_the_same_rules() -> None:
    words = f"rebase 1 commits onto {TIP} without 1 that are not its own: tried, clean, tree {TREE}"
    pushed = Alternative(
        base=TIP, head=OTHER, base_facts=BaseFacts(branch="main", tip=TIP, pinned_in_tip=True),
        head_facts=head(forge=OTHER, ref=OTHER, branch=OTHER), range=RangeFacts(own=(OTHER,), own_count=1),
        stack=StackFacts(open_count=1), merge=merge(base=TIP, head=OTHER),
    )  # fmt: skip
    tried = Rebased(onto=TIP, dropped=(OTHER,), dropped_count=1, kept_count=1, tree=TREE, after=pushed)
    one = facts(stack=relation(1, 2, 0), rebased=tried)
    assert would_pass(one) == [words]
    left = Residue(number=3, commits=(OTHER,), replay="differs", paths=("a",))
    bad = tried.model_copy(update={"after": pushed.model_copy(update={"residues": (left,)})})
    assert would_pass(one.model_copy(update={"rebased": bad})) == []
    two = one.model_copy(update={"rebased": bad, "residues": (left,)})
    assert would_pass(two) == [f"{words}; still: RESIDUE_DIVERGES"]
    dirty = tried.model_copy(update={"after": None, "conflicts": ("a",)})
    assert would_pass(one.model_copy(update={"rebased": dirty})) == [
        f"rebase 1 commits onto {TIP} without 1 that are not its own: tried, conflicts in a; still: STACKED_SHA"
    ]
    draft = one.model_copy(update={"pull": pull(draft=True), "closing": closing(draft=True)})
    assert would_pass(draft) == [f"{words}; then gh pr ready https://forge.invalid/o/r/pull/7"]


def test_the_verdict_follows_from_the_receipt_alone() -> None:
    body = GateBody(facts=GateFacts(policy=GatePolicy(), pulls=(facts(pull=pull(draft=True)),)))
    again = GateBody.model_validate_json(canonical_bytes(body))
    assert judge(again.facts) == judge(body.facts)
