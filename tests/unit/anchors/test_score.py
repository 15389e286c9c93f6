"""How other decision rules are scored: every kind of mistake counts, and the page covers every scenario."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from anchorlib.main import LISTED, PAGE
from anchorlib.policies import ANCHORS, Anchor, Verdict, bors, naive, spr, tide
from anchorlib.score import Score, Scored, score
from tic_manifest.model.gate import BaseFacts, ForgePull, MergeFacts, PullRequestFacts, StackFacts, Unknown

ROOT = Path(__file__).resolve().parents[3]
BASE, HEAD, OTHER = "b" * 40, "a" * 40, "c" * 40


@pytest.mark.parametrize(
    ("expected", "said", "wanted"),
    [
        ("pass", "pass", Score((), (), ())),
        ("fail", "pass", Score(("S",), (), ())),
        ("unknown", "pass", Score(("S",), (), ())),
        ("pass", "fail", Score((), ("S",), ())),
        ("pass", "unknown", Score((), ("S",), ())),
        ("unknown", "fail", Score((), (), ("S",))),
        ("fail", "unknown", Score((), (), ())),
    ],
)
def test_a_mistake_is_counted(expected: Verdict, said: Verdict, wanted: Score) -> None:
    assert score([Scored("S", expected, (said,))], 0) == wanted


def pull(**changes: object) -> ForgePull:
    """A pull request that every rule passes, with changes."""
    told: dict[str, object] = {
        "number": 7, "state": "open", "draft": False, "merged": False, "merge_commit": None, "author": "a",
        "base_ref": "main", "base_repo_id": 1, "head_ref": "feat", "head_sha": HEAD, "head_repo_id": 1,
        "head_repo": "o/r", "mergeable": True, "mergeable_state": "clean",
    }  # fmt: skip
    return ForgePull.model_validate(told | changes)


def facts(**changes: object) -> PullRequestFacts:
    """Facts of that pull request, with changes of its record."""
    merge = MergeFacts(base=BASE, head=HEAD, merge_bases=(BASE,), tree="d" * 40)
    nothing = Unknown(code="", what="not looked at")
    return PullRequestFacts(
        name="vllm", url="https://forge.invalid/o/r/pull/7", owner="o", repo="r", number=7, target="main",
        trunks=("main",), pinned_base=BASE, pinned_head=HEAD, repository=nothing, pull=pull(**changes),
        head=nothing, base=BaseFacts(branch="main", tip=BASE), range=nothing, stack=StackFacts(open_count=1),
        pinned_merge=merge, live_merge=merge, forge_merge=merge,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ("pass", "pass", "pass", "pass")),
        ({"draft": True}, ("pass", "pass", "pass", "pass")),
        ({"mergeable": None}, ("pass", "pass", "fail", "unknown")),
        ({"mergeable": False}, ("fail", "pass", "fail", "fail")),
        ({"head_sha": OTHER}, ("unknown", "unknown", "pass", "pass")),
        ({"head_repo": None}, ("pass", "unknown", "pass", "pass")),
        ({"base_ref": "feat-p"}, ("fail", "pass", "fail", "fail")),
        ({"state": "closed"}, ("fail", "fail", "fail", "pass")),
    ],
)
def test_rules_differ_where_their_sources_do(changes: dict[str, object], said: tuple[Verdict, ...]) -> None:
    assert tuple(rule(facts(**changes)) for rule in (tide, bors, spr, naive)) == said


@pytest.mark.parametrize("anchor", ANCHORS, ids=lambda one: one.name)
def test_a_source_is_cited_where_it_cannot_move(anchor: Anchor) -> None:
    assert anchor.sources
    for source in anchor.sources:
        assert "/blob/" not in source or re.search(r"/blob/[0-9a-f]{40}/", source)


def test_the_page_covers_every_scenario_and_ours_is_right() -> None:
    page = PAGE.read_text(encoding="utf-8")
    folders = (ROOT / "tests" / "scenarios" / "gate").glob("S*/expect.json")
    names = sorted(one.parent.name for one in folders if LISTED.match(one.parent.name))
    assert re.findall(r"^\| (S[0-9]{2}\S*) \|", page, re.M) == names
    assert "| tic-manifest | 0 | 0 | 0 |" in page
