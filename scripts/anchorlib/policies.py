"""Five anchors as small policies, each from its source; where there was a choice, the kinder one was taken.

A policy sees the same facts of one pull request as our rules do, and says `pass`, `fail` (it accuses) or
`unknown` (it waits, retries or stops with an error). Reviews, labels and required checks count as satisfied:
no scenario speaks of them. Written from the cited sources in our own words; nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tic_manifest.model.gate import (
    BaseFacts,
    Closing,
    ForgePull,
    HeadFacts,
    MergeFacts,
    PullRequestFacts,
    StackFacts,
    Unknown,
)
from tic_manifest.rules.gate_trunk import is_trunk

Verdict = Literal["pass", "fail", "unknown"]
Policy = Callable[[PullRequestFacts], Verdict]


@dataclass(frozen=True)
class Anchor:
    """One tool: its name, what its rule is in words, where that is written, the rule."""

    name: str
    words: str
    sources: tuple[str, ...]
    policy: Policy


def _live_head(facts: PullRequestFacts) -> str | None:
    return facts.pull.head_sha if isinstance(facts.pull, ForgePull) else None


def _moved_meanwhile(facts: PullRequestFacts) -> bool:
    last = facts.closing
    return isinstance(last, Closing) and last.head_sha != facts.pinned_head


def tide(facts: PullRequestFacts) -> Verdict:
    """Open, base among the included branches, not CONFLICTING, results for exactly this head and base."""
    pull, base = facts.pull, facts.base
    if not isinstance(pull, ForgePull) or (isinstance(facts.stack, Unknown) and facts.stack.code):
        return "unknown"  # its search failed: nothing is merged
    if pull.state != "open" or not is_trunk(pull.base_ref, facts.trunks):
        return "fail"  # no query lists it
    if pull.mergeable is False:
        return "fail"
    if pull.head_sha != facts.pinned_head or _moved_meanwhile(facts):
        return "unknown"  # results of another head do not count, and the merge call names the head
    live = base.tip if isinstance(base, BaseFacts) and pull.base_ref == base.branch else None
    return "pass" if live in {None, facts.pinned_base} else "unknown"  # results of another base: test again


def bors(facts: PullRequestFacts) -> Verdict:
    """Merge the approved commit onto the live base branch; `mergeable` null counts as mergeable."""
    pull, merge = facts.pull, facts.forge_merge
    if not isinstance(pull, ForgePull) or pull.head_repo is None:
        return "unknown"  # the answer cannot be read, a null head repository included
    if pull.state != "open":
        return "fail"
    if pull.head_sha != facts.pinned_head or _moved_meanwhile(facts):
        return "unknown"  # a push takes the approval back
    if not isinstance(merge, MergeFacts):
        return "unknown"
    return "fail" if merge.conflicts or not merge.merge_bases else "pass"


def spr(facts: PullRequestFacts) -> Verdict:
    """Conflict-free only where the forge says MERGEABLE; below it a chain of bases, by branch name."""
    pull = facts.pull
    if not isinstance(pull, ForgePull) or (isinstance(facts.stack, Unknown) and facts.stack.code):
        return "unknown"  # its one query failed
    if pull.state != "open":
        return "fail"  # only open ones are listed
    parents = facts.stack.parents if isinstance(facts.stack, StackFacts) else ()
    if pull.base_ref != facts.target and not (pull.base_ref.startswith("spr/") and parents):
        return "fail"
    return "pass" if pull.mergeable is True else "fail"  # unknown is shown as a conflict


def pin_list(facts: PullRequestFacts) -> Verdict:
    """The pinned commit is one of the pull request's and merges onto the pinned base; state only warns."""
    head, merge = facts.head, facts.pinned_merge
    if not isinstance(facts.pull, ForgePull):
        return "fail"  # "nonexistent, or a transient failure": refused either way
    if isinstance(head, HeadFacts) and (head.pinned == "unfetchable" or head.pin_in_head is False):
        return "fail"
    if not isinstance(merge, MergeFacts):
        return "fail"  # git failed: the same refusal as a conflict
    return "fail" if merge.conflicts or not merge.merge_bases else "pass"


def naive(facts: PullRequestFacts) -> Verdict:
    """The base is `main` and `mergeable` is true."""
    pull = facts.pull
    if not isinstance(pull, ForgePull) or pull.mergeable is None:
        return "unknown"
    return "pass" if pull.base_ref == "main" and pull.mergeable else "fail"


PROW = "https://github.com/kubernetes-sigs/prow/blob"
LLAMA = "https://github.com/unslothai/llama.cpp/blob"

ANCHORS = (
    Anchor(
        "Tide",
        "open, base an included branch, GitHub does not say CONFLICTING (unknown passes), test results for "
        "exactly this head and this base",
        (
            f"{PROW}/04b0f796cea5297358c0db2c1a89c349a5d2a2ad/pkg/tide/github.go (`isAllowedToMerge`, "
            "`prepareMergeDetails`)",
            f"{PROW}/020c90bdb9bdffd2aa8cc82a644fcf54c690c60e/pkg/tide/tide.go (`accumulate`)",
        ),
        tide,
    ),
    Anchor(
        "bors-ng",
        "open, approved commit is the head, it merges onto the live base branch (a real merge, and null "
        "counts as mergeable)",
        (
            "https://github.com/bors-ng/bors-ng/blob/00ed13d31ba6ad8bcb136fb0ceb7490da602df97/lib/worker/"
            "batcher.ex (`start_waiting_batch`, `is_patch_mergeable`)",
            "https://github.com/bors-ng/bors-ng/blob/105a3f35df95d1264b38df2c6f4ccbf0ffa9e2ef/lib/github/"
            "github/pr.ex (`from_json`)",
        ),
        bors,
    ),
    Anchor(
        "spr",
        "open, base is the target branch or the branch of one below it by name, GitHub says MERGEABLE "
        "(anything else is shown as a conflict)",
        (
            "https://github.com/ejoffe/spr/blob/0887d806351e7eef5162f8783dbce8084d5fd770/github/"
            "pullrequest.go (`Ready`, `Mergeable`)",
            "https://github.com/ejoffe/spr/blob/05c9868cb5096c277b8e61dd538e4de0cbe4c7f9/github/"
            "githubclient/client.go (`matchPullRequestStack`)",
        ),
        spr,
    ),
    Anchor(
        "pin list",
        "the pinned commit is one of the pull request's commits and merges onto the pinned base; closed, "
        "draft and a moved head only warn",
        (
            f"{LLAMA}/0057b507dae76d9aa96384c5334f838aa5f09ebb/.github/workflows/unsloth-prebuilt.yml "
            "(job `resolve`)",
            f"{LLAMA}/18670b96eb1cdfe7a72f92ed63286a418e5c9c31/.github/workflows/unsloth-pin-preflight.yml",
        ),
        pin_list,
    ),
    Anchor(
        "base is main, mergeable is true",
        "exactly that, from one answer of the interface",
        (
            "https://docs.github.com/en/rest/guides/using-the-rest-api-to-interact-with-your-git-database"
            "#checking-mergeability-of-pull-requests",
        ),
        naive,
    ),
)
