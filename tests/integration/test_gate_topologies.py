"""Stacked or not, on 500 seeded random histories, against brute-force set arithmetic (rules/pr-gate.md 1.2)."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tic_manifest.adapters.git_gate import GateMirror
from tic_manifest.formats.forge_pull import Listed
from tic_manifest.model.gate import ForgePull, GateFacts, GatePolicy, PullRequestFacts, Unknown
from tic_manifest.rules.gate_stack import commits
from tic_manifest.stages.gate_git import Refs
from tic_manifest.stages.gate_reads import Pinned
from tic_manifest.stages.gate_stack import Around, stack_facts

sys.path.insert(0, str(Path(__file__).parents[1] / "kit"))
from git_repos import git, runner

SEEDS = 500
PULLS = 5


@dataclass
class Drawn:
    """A random history: parents by commit, the trunk's tip, the pinned base, a head per pull request."""

    parents: dict[int, list[int]]
    trunk: int
    base: int
    heads: dict[int, int]


def draw(seed: int, first: int) -> Drawn:
    """Commits are numbers from `first` on; every commit's parents are smaller."""
    rnd = random.Random(seed)
    parents: dict[int, list[int]] = {first: []}
    trunk = [first]
    for _ in range(rnd.randint(2, 8)):
        trunk.append(_add(parents, [trunk[-1]]))
    heads: dict[int, int] = {}
    for number in range(1, PULLS + 1):
        start = rnd.choice([*trunk, *heads.values()])
        for _ in range(rnd.randint(1, 4)):
            other = rnd.choice([*trunk, *heads.values()])
            merged = rnd.random() < 0.25 and other != start
            start = _add(parents, [start, other] if merged else [start])
        heads[number] = start
    return Drawn(parents, trunk[-1], rnd.choice(trunk), heads)


def _add(parents: dict[int, list[int]], of: list[int]) -> int:
    number = max(parents) + 1
    parents[number] = of
    return number


def reach(drawn: Drawn, tip: int) -> set[int]:
    """Every commit that a tip holds."""
    found, stack = set(), [tip]
    while stack:
        one = stack.pop()
        if one not in found:
            found.add(one)
            stack += drawn.parents[one]
    return found


def expected(drawn: Drawn, ours: int) -> list[str]:
    """The codes of rule 3, by sets."""
    trunk = reach(drawn, drawn.trunk)
    own = reach(drawn, drawn.heads[ours]) - reach(drawn, drawn.base) - trunk
    said = []
    for number in sorted(set(drawn.heads) - {ours}):
        theirs = reach(drawn, drawn.heads[number]) - trunk
        if not own & theirs:
            continue
        if own == theirs:
            said.append("DUPLICATE_PR")
        elif own < theirs:
            said.append("IS_PARENT_OF")
        elif theirs < own:
            said.append("STACKED_SHA")
        else:
            said.append("STACKED_SHA/overlap" if number < ours else "OVERLAP_OWNED")
    return said


class Unasked:
    """No forge: overlaps here are decided without one."""

    def commit_login(self, owner: str, repo: str, commit: str) -> str:
        """Nobody."""
        return ""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[GateMirror, list[Drawn], Mapping[int, str]]:
    """All histories in one repository, by one fast-import."""
    path = tmp_path_factory.mktemp("topologies") / "r.git"
    path.mkdir()
    git(path, "init", "-q", "--bare", "--template=", ".")
    drawn, rows, first = [], [], 1
    for seed in range(SEEDS):
        one = draw(seed, first)
        drawn.append(one)
        rows += [_row(number, of) for number, of in one.parents.items()]
        first = max(one.parents) + 1
    argv = ["git", f"--git-dir={path}", "fast-import", "--quiet", f"--export-marks={path}/marks"]
    subprocess.run(argv, input="".join(rows).encode(), check=True)
    marks = (line.split() for line in (path / "marks").read_text().splitlines())
    return GateMirror(runner(), path, None), drawn, {int(mark[1:]): oid for mark, oid in marks}  # type: ignore[arg-type]


def _row(number: int, parents: Sequence[int]) -> str:
    head = f"from :{parents[0]}\n" if parents else ""
    more = "".join(f"merge :{one}\n" for one in parents[1:])
    path = f"M 100644 inline f{number}\ndata {len(str(number))}\n{number}\n"
    reset = "" if parents else "reset refs/heads/x\n"
    who = f"A <a@example.com> {1_700_000_000 + number} +0000"
    return f"{reset}commit refs/heads/x\nmark :{number}\ncommitter {who}\ndata 1\nc\n{head}{more}{path}"


def around(drawn: Drawn, ours: int, oids: Mapping[int, str]) -> Around:
    """What the gate holds of a history."""
    named = {f"refs/pull/{number}/head": oids[mark] for number, mark in drawn.heads.items()}
    named["refs/heads/main"] = oids[drawn.trunk]
    pin = Pinned(
        name="ours", url="https://forge.invalid/o/r/pull/1", web="https://forge.invalid", owner="o", repo="r",
        number=ours, git="https://forge.invalid/o/r.git", target="main", trunks=("main",), base=oids[drawn.base],
        head=oids[drawn.heads[ours]],
    )  # fmt: skip
    rows = {number: _listed(number, oids[mark]) for number, mark in drawn.heads.items() if number != ours}
    return Around(pin=pin, pull=_pull(ours, pin.head), depends=(), others=rows, refs=Refs(named))


def _listed(number: int, oid: str) -> Listed:
    return Listed(
        number=number, open=True, head_sha=oid, head_ref=f"b{number}", head_repo_id=2, base_ref="main",
        base_repo_id=1, author=f"a{number}", depends=(),
    )  # fmt: skip


def _pull(number: int, oid: str) -> ForgePull:
    return ForgePull(
        number=number, state="open", draft=False, merged=False, merge_commit=None, author=f"a{number}",
        base_ref="main", base_repo_id=1, head_ref=f"b{number}", head_sha=oid, head_repo_id=2, head_repo="f/r",
        mergeable=True, mergeable_state="clean",
    )  # fmt: skip


def judged(around_it: Around, git_: GateMirror) -> list[str]:
    """The codes that the product gives for rule 3."""
    nothing = Unknown(code="", what="not looked at")
    pin = around_it.pin
    facts = PullRequestFacts(
        name=pin.name, url=pin.url, owner=pin.owner, repo=pin.repo, number=pin.number, target=pin.target,
        trunks=pin.trunks, pinned_base=pin.base, pinned_head=pin.head, repository=nothing, pull=nothing,
        head=nothing, base=nothing, range=nothing, pinned_merge=nothing, live_merge=nothing,
        forge_merge=nothing, stack=stack_facts(git_, Unasked(), around_it),  # type: ignore[arg-type]
    )  # fmt: skip
    policy = GatePolicy()
    assert GateFacts(policy=policy, pulls=(facts,))
    return [one.code for one in commits(facts, policy)]


def test_every_history(world: tuple[GateMirror, list[Drawn], Mapping[int, str]]) -> None:
    git_, drawn, oids = world
    seen: set[str] = set()
    for seed, one in enumerate(drawn):
        ours = random.Random(seed).randint(1, PULLS)
        wanted = expected(one, ours)
        assert judged(around(one, ours, oids), git_) == wanted, f"seed {seed}"
        seen |= set(wanted)
    assert {"STACKED_SHA", "STACKED_SHA/overlap", "OVERLAP_OWNED", "IS_PARENT_OF"} <= seen
