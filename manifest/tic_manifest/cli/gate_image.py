"""`tic-manifest gate IMAGE@DIGEST`: what became of the pull requests of a delivered image."""

from __future__ import annotations

from pathlib import Path

import click

from tic_manifest.cli import wiring
from tic_manifest.cli.gate_world import Source, kept_lock, opened
from tic_manifest.errors import UnavailableError
from tic_manifest.formats.lock import LoadedLock, read_lock
from tic_manifest.formats.reference import mutable, parse_reference, require_digest
from tic_manifest.model.verdict import Report
from tic_manifest.rules.gate import judge_delivered
from tic_manifest.stages.gate import gather, pinned, policy_of
from tic_manifest.stages.gate_delivered import lock_of


def audit(
    ctx: click.Context, target: str, record: Path | None, replay: Path | None, work_dir: Path
) -> Report:
    """Judge the pull requests that the image's own delivery manifest names."""
    loaded = _lock(target, replay)
    recipe = loaded.recipe
    store = wiring.work_folder(work_dir).root / "store"
    source = Source(api=recipe.forge.api, store=store, record=record, replay=replay, lock=loaded.raw)
    pins = pinned(recipe)
    with opened(ctx, source) as world:
        facts = gather(pins, pins, policy_of(recipe.policy), world, delivered=True)
    judged = judge_delivered(facts)
    return judged.model_copy(update={"subjects": (target, *judged.subjects)})


def _lock(target: str, replay: Path | None) -> LoadedLock:
    if replay is not None:
        return read_lock(kept_lock(replay), "lock.json of the recording")
    from tic_manifest.cli.verify import behind, open_image

    reference = parse_reference(target)
    image = open_image(reference)
    if reference.digest is None and reference.tag is not None:
        raise mutable(reference, behind(image, reference.tag))
    digest = require_digest(reference).digest
    raw = lock_of(image, str(digest))
    if raw is None:
        raise UnavailableError(
            "DELIVERY_MISSING", "no delivery manifest with a lock is attached to this image", where=target,
            remedy="copy what is attached as well, or judge the recipe or the lock",
        )  # fmt: skip
    return read_lock(raw, "lock.json of the delivery manifest")
