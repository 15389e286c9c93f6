"""Gather what the gate's rules need: forge and git in, facts out; no rule is decided here.

All three snapshots are read first, each pull request is looked into, and everything that can move is read
again at the end (rules/pr-gate.md F45). Every question has an answer or a reason why there is none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from tic_manifest.errors import PersonError
from tic_manifest.formats.forge_pull import forge_pull, repository
from tic_manifest.formats.recipe import git_url, pull_url
from tic_manifest.model.gate import (
    BaseFacts,
    Closing,
    GateFacts,
    GatePolicy,
    MergeFacts,
    PullRequestFacts,
    Unknown,
    gate_policy,
)
from tic_manifest.model.recipe import Policy, PullRequest, Recipe
from tic_manifest.stages import gate_deps, gate_git, gate_stack, gate_submodules
from tic_manifest.stages.gate_git import Refs
from tic_manifest.stages.gate_look import First, Look, World, head_branch
from tic_manifest.stages.gate_reads import Listings, Pinned, PullRead, blocked, known, read_pull
from tic_manifest.stages.gate_try import with_tries

LAG = (2, 4, 8, 16)
"""Seconds before each further read while the records of a head differ: 30 s in all (F21)."""


def pinned(recipe: Recipe, only: Sequence[str] = ()) -> tuple[Pinned, ...]:
    """The pull requests of a recipe. Raises PersonError USAGE for a name in `only` that is not there."""
    for name in only:
        if name not in recipe.pull_requests:
            known_names = ", ".join(recipe.pull_requests)
            raise PersonError("USAGE", f"--only {name}: no such pull request", expected=known_names)
    rows = recipe.pull_requests.items()
    return tuple(_pinned(name, pull) for name, pull in rows if not only or name in only)


def _pinned(name: str, pull: PullRequest) -> Pinned:
    parts = pull_url(pull.url)
    if parts is None:
        raise PersonError("RECIPE", f"pull_requests.{name}.url is not a pull request", actual=pull.url)
    return Pinned(
        name=name,
        url=pull.url,
        web=parts.web,
        owner=parts.owner,
        repo=parts.repo,
        number=parts.number,
        git=git_url(pull),
        target=pull.target.branch,
        trunks=pull.trunks or (pull.target.branch,),
        base=pull.base,
        head=pull.head,
        repo_id=pull.repo_id,
    )


def policy_of(policy: Policy) -> GatePolicy:
    """The gate's part of a recipe's policy."""
    return gate_policy(policy)


def gather(
    pins: Sequence[Pinned],
    all_pins: Sequence[Pinned],
    policy: GatePolicy,
    world: World,
    *,
    delivered: bool = False,
) -> GateFacts:
    """The facts of one closed snapshot. `all_pins` is the whole set, `pins` what is judged of it.

    `delivered` also asks what became of pull requests that are in an image already.
    """
    firsts = {pin.name: _first(pin, world) for pin in all_pins if pin in pins}
    inset = _in_set(all_pins, firsts)
    looks = _looks(firsts.values(), world)
    facts = [_facts(look, inset, delivered) for look in looks]
    closings = {one.name: known(_closing_of(firsts[one.name], one, world)) for one in facts}
    digests = {name: _digest(first, world) for name, first in firsts.items()}
    return GateFacts(
        policy=policy,
        pulls=tuple(
            one.model_copy(update={"closing": closings[one.name], "answers": digests[one.name]})
            for one in facts
        ),
        partial=len(pins) != len(all_pins),
    )


def _digest(first: First, world: World) -> str:
    both = world.forge.answers() + first.git.answers()
    return "sha256:" + hashlib.sha256(both.encode()).hexdigest()


def _first(pin: Pinned, world: World) -> First:
    world.say(f"{pin.name}: reading {pin.url}")
    forge, git = world.forge, world.mirror(pin.name, pin.git)
    where = known(lambda: repository(forge.repository(pin.owner, pin.repo)))
    read = known(lambda: read_pull(forge, pin))
    refs = known(lambda: gate_git.read_refs(git, pin))
    pins = known(lambda: gate_git.fetch_pins(git, pin))
    first = First(pin=pin, git=git, repository=where, read=read, refs=refs, pins=pins)
    return _settled(first, world)


def _settled(first: First, world: World) -> First:
    """Read again while the forge's record and git's ref of the head differ (F21)."""
    for seconds in LAG:
        pull, refs = first.pull, first.refs
        if pull is None or isinstance(refs, Unknown) or pull.state != "open":
            break
        if refs.head(first.pin.number) in {None, pull.head_sha} and head_branch(first, world) in {
            None,
            pull.head_sha,
        }:
            break
        world.forge.pause(seconds)
        first = _read_again(first, world)
    return first


def _read_again(first: First, world: World) -> First:
    read = known(lambda: read_pull(world.forge, first.pin, again=True))
    refs = known(lambda: gate_git.read_refs(first.git, first.pin))
    return replace(first, read=read, refs=refs)


def _in_set(all_pins: Sequence[Pinned], firsts: Mapping[str, First]) -> gate_deps.InSet:
    return gate_deps.InSet(
        pins={pin.name: pin for pin in all_pins},
        depends={n: one.read.depends for n, one in firsts.items() if isinstance(one.read, PullRead)},
        gits={name: one.git for name, one in firsts.items()},
        refs={name: one.refs for name, one in firsts.items() if isinstance(one.refs, Refs)},
    )


def _looks(firsts: Iterable[First], world: World) -> list[Look]:
    listings = Listings(world.forge)
    return [Look(first, world, listings) for first in firsts]


def _facts(look: Look, inset: gate_deps.InSet, delivered: bool) -> PullRequestFacts:
    """Everything of one pull request but the closing reads."""
    first, world = look.first, look.world
    pin, git = first.pin, first.git
    rows = look.listing()
    base = look.ask(lambda refs: gate_git.base_facts(git, pin, refs, first.pull))
    pinned_merge = look.ask(lambda refs: gate_git.merge_facts(git, pin.base, pin.head))
    live_merge = look.ask(lambda refs: look.merged(refs.branch(pin.target), pin.head))
    forge_merge = look.ask(look.forge_merge)
    read = look.reread(forge_merge)
    tree = pinned_merge.tree if isinstance(pinned_merge, MergeFacts) and not pinned_merge.conflicts else None
    facts = PullRequestFacts(
        name=pin.name,
        url=pin.url,
        owner=pin.owner,
        repo=pin.repo,
        number=pin.number,
        target=pin.target,
        trunks=pin.trunks,
        pinned_base=pin.base,
        pinned_head=pin.head,
        pinned_repo_id=pin.repo_id,
        repository=first.repository,
        pull=read.pull if isinstance(read, PullRead) else read,
        polls=read.polls if isinstance(read, PullRead) else 0,
        head=look.head(rows),
        base=base,
        range=look.ask(lambda refs: gate_git.range_facts(git, pin, refs)),
        stack=look.around(
            rows, lambda around: gate_stack.stack_facts(git, world.forge, around), needs_rows=True
        ),
        pinned_merge=pinned_merge,
        live_merge=live_merge,
        forge_merge=forge_merge,
        residues=look.around(rows, lambda around: gate_stack.residues(git, world.forge, around, tree)),
        dependencies=known(lambda: gate_deps.dependencies(world.forge, pin, inset)),
        submodules=look.ask(lambda refs: gate_submodules.submodule_facts(git, pin, inset, world.mirror)),
        lfs_malformed=look.lfs(),
        local=look.local(),
        audit=look.audit() if delivered else None,
    )
    return facts if delivered else with_tries(facts, look, rows)


def _closing_of(first: First, facts: PullRequestFacts, world: World) -> Callable[[], Closing | Unknown]:
    branch = facts.base.branch if isinstance(facts.base, BaseFacts) else first.pin.target
    return lambda: _closing(first, branch, world)


def _closing(first: First, branch: str, world: World) -> Closing | Unknown:
    """Read again what can move. `branch` is the one that the base facts speak of."""
    pin = first.pin
    if first.pull is None or isinstance(first.refs, Unknown):
        return blocked("the first read has no answer")
    world.forge.enter("close")
    pull = forge_pull(world.forge.pull_request(pin.owner, pin.repo, pin.number))
    refs = gate_git.read_refs(first.git, pin)
    return Closing(
        state=pull.state,
        draft=pull.draft,
        base_ref=pull.base_ref,
        head_sha=pull.head_sha,
        ref=refs.head(pin.number),
        tip=refs.branch(branch),
    )
