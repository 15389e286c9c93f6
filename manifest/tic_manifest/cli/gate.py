"""`tic-manifest gate`: judge the pull requests of a recipe, a lock or a delivered image."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tic_manifest.cli import wiring
from tic_manifest.cli.gate_world import Source, opened
from tic_manifest.cli.output import judging, output_option, write_whole
from tic_manifest.errors import PersonError
from tic_manifest.formats.lock import is_lock, read_lock
from tic_manifest.formats.recipe import read_recipe
from tic_manifest.model.gate import GateFacts, Unknown
from tic_manifest.model.receipt import GateBody
from tic_manifest.model.recipe import Recipe
from tic_manifest.model.verdict import Report
from tic_manifest.rules.gate import judge
from tic_manifest.stages.gate import gather, pinned, policy_of
from tic_manifest.stages.gate_repin import Certificate, certificates, repinned, with_certificates

if TYPE_CHECKING:
    from tic_manifest.adapters.work import WorkFolder
    from tic_manifest.stages.session import Session

_IMAGE = re.compile(r"@sha256:[0-9a-f]{64}$")
_TAGGED = re.compile(r"^[A-Za-z0-9.\[\]:-]+/[a-z0-9._/-]+(:[A-Za-z0-9_][A-Za-z0-9._-]*|@.*)$")


@dataclass(frozen=True, kw_only=True)
class Gated:
    """What was seen, what follows from it, and when."""

    facts: GateFacts
    report: Report
    started_at: str
    finished_at: str


@click.command("gate")
@click.argument("target", metavar="RECIPE|LOCK|IMAGE@DIGEST")
@click.option("--only", metavar="NAME", help="judge this one; the report says that it is partial")
@click.option(
    "--record", type=click.Path(path_type=Path, file_okay=False), help="keep objects and answers, no verdict"
)
@click.option(
    "--replay",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="judge a recording again, without network",
)
@click.option("--worktree", "worktrees", multiple=True, metavar="NAME=PATH", help="also judge a checkout")
@click.option("--repin-equal", is_flag=True, help="write moved heads with equal content into the recipe")
@wiring.work_option
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    target: str,
    only: str | None,
    record: Path | None,
    replay: Path | None,
    worktrees: tuple[str, ...],
    repin_equal: bool,
    work_dir: Path,
    outputs: tuple[tuple[str, str], ...],
) -> int:
    """Judge pull requests: stacked, dirty, moved or unknown, each with proof.

    A recording holds every answer and object and no verdict; replaying it gives the same report.
    """

    def judge_target() -> Report:
        if record and replay:
            raise PersonError("USAGE", "--record and --replay exclude each other")
        if _names_image(target):
            return _audited(ctx, target, record, replay, work_dir, (only, worktrees, repin_equal))
        path = Path(target)
        recipe = read_target(path)
        store = wiring.work_folder(work_dir).root / "store"
        source = Source(
            api=recipe.forge.api, store=store, record=record, replay=replay,
            worktrees=_worktrees(worktrees, recipe),
        )  # fmt: skip
        names = (only,) if only else ()
        if repin_equal and is_lock(wiring.read_person_file(path, wiring.MAX_LOCK)):
            raise PersonError("USAGE", "--repin-equal updates a recipe, and this is a lock", where=str(path))
        if repin_equal:
            return _repin(ctx, path, recipe, names, source, work_dir)
        return _judged(ctx, recipe, names, source, work_dir).report

    return judging(ctx, "gate", outputs, judge_target)


def _audited(
    ctx: click.Context,
    target: str,
    record: Path | None,
    replay: Path | None,
    work_dir: Path,
    others: tuple[object, ...],
) -> Report:
    from tic_manifest.cli.gate_image import audit

    if any(others):
        raise PersonError(
            "USAGE", "an image is judged whole", where=target,
            expected="none of --only, --worktree, --repin-equal",
        )  # fmt: skip
    return audit(ctx, target, record, replay, work_dir)


def _names_image(target: str) -> bool:
    """Whether this is an image reference, with a tag too: only then can the digest behind it be named."""
    if _IMAGE.search(target) or target.startswith("oci:"):
        return True
    return not Path(target).exists() and bool(_TAGGED.match(target))


def gate_of(ctx: click.Context, recipe: Path, work: WorkFolder) -> Gated:
    """The gate of a recipe, for `image`; the caller holds the work folder."""
    wanted = read_target(recipe)
    return _look(ctx, wanted, (), Source(api=wanted.forge.api, store=work.root / "store"))


def keep_gate(session: Session, gated: Gated) -> None:
    """Write the gate's receipt, unless one with the same facts is there.

    A look at a forge that was away does not replace one that saw it: each names its time.
    """
    from tic_manifest.stages.gate_receipt import gate_receipt

    kept = session.receipt("gate")
    if kept is not None and isinstance(kept.body, GateBody):
        away = all(isinstance(one.pull, Unknown) for one in gated.facts.pulls)
        if kept.body.facts == gated.facts or away:
            return
    session.keep(
        gate_receipt(
            session.lock.digest, session.run_id, gated.facts, (gated.started_at, gated.finished_at),
            wiring.version(), wiring.host(),
        )
    )  # fmt: skip


def read_target(path: Path) -> Recipe:
    """The recipe of a file, or the one that a lock carries."""
    raw = wiring.read_person_file(path, wiring.MAX_LOCK)
    if is_lock(raw):
        return read_lock(raw, str(path)).recipe
    return read_recipe(raw, str(path))


def _judged(
    ctx: click.Context, recipe: Recipe, only: tuple[str, ...], source: Source, work_dir: Path
) -> Gated:
    if source.replay is not None:
        return _look(ctx, recipe, only, source)
    with wiring.work_folder(work_dir).writing():
        return _look(ctx, recipe, only, source)


def _look(ctx: click.Context, recipe: Recipe, only: tuple[str, ...], source: Source) -> Gated:
    clock = wiring.clock()
    started = clock.now()
    pins, all_pins = pinned(recipe, only), pinned(recipe)
    with opened(ctx, source) as world:
        facts = gather(pins, all_pins, policy_of(recipe.policy), world)
    return Gated(facts=facts, report=judge(facts), started_at=started, finished_at=clock.now())


def _repin(
    ctx: click.Context, path: Path, recipe: Recipe, only: tuple[str, ...], source: Source, work_dir: Path
) -> Report:
    """Judge, write equal heads into the recipe, judge what it says now."""
    first = _judged(ctx, recipe, only, source, work_dir)
    moved: tuple[Certificate, ...] = certificates(first.facts)
    if not moved:
        return first.report
    text = repinned(wiring.read_person_file(path), str(path), moved)
    write_whole(path, text)
    again = _judged(ctx, read_target(path), only, source, work_dir)
    return with_certificates(again.report, moved)


def _worktrees(pairs: tuple[str, ...], recipe: Recipe) -> dict[str, Path]:
    found = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not equals or name not in recipe.pull_requests:
            raise PersonError(
                "USAGE",
                f"--worktree {pair}",
                expected=f"NAME=PATH, NAME one of {', '.join(recipe.pull_requests)}",
            )
        found[name] = Path(path)
    return found
