"""`validate`: final validation, in the clean image by digest and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

from tic_manifest.errors import RefusedError, UnavailableError
from tic_manifest.model.receipt import BuildBody, Receipt, ValidateBody
from tic_manifest.stages.workers import Bench, Subject, as_child, emulated, in_order, kept, run_worker

RECORD = "record.json"


def refuse_unclean(build: Receipt, subject: Subject) -> None:
    """Only a clean build is validated; every reason is given (rules/image-verify.md AC-21).

    Raises RefusedError NOT_CLEAN.
    """
    body = build.body
    if not isinstance(body, BuildBody):
        raise RefusedError("SCHEMA", "the build's receipt is of another stage", where="receipts")
    trees = {pull.name: pull.head_tree for pull in subject.lock.lock.pull_requests}
    reasons = [
        *(
            []
            if build.platform_digest == subject.platform_digest
            else ["the image is not the one that was built"]
        ),
        *([] if build.lock_digest == subject.lock.digest else ["the image was built from another lock"]),
        *([] if body.hermetic else ["the build was not hermetic"]),
        *(f"wheel {w.name} was built from tree {w.tree}" for w in body.wheels if trees.get(w.name) != w.tree),
        *(f"no wheel was built for {name}" for name in trees if name not in {w.name for w in body.wheels}),
    ]
    if reasons:
        raise RefusedError(
            "NOT_CLEAN", "final validation runs on the clean build only", where=subject.platform_digest,
            actual="; ".join(reasons), remedy="run tic-manifest build, then validate its image",
        )  # fmt: skip


def validate(
    subject: Subject, bench: Bench, build: Receipt, probe: Receipt | None, earlier: Receipt | None
) -> Receipt:
    """The receipt of final validation; an earlier one is returned as it is when it still stands."""
    refuse_unclean(build, subject)
    names = in_order(subject, "validate")
    host = bench.engine.host()
    away = emulated(subject, host)
    if not away:
        _check_inputs(subject, bench, probe, names)
    standing = earlier is not None and (probe is None or earlier.started_at >= probe.finished_at)
    if earlier is not None and standing and kept(earlier, subject, bench.runs, names, away=away):
        bench.progress.say("validate: nothing to do")
        return earlier
    started = bench.clock.now()
    bench.engine.end_left_over(subject.run_id)
    runs = [] if away else [
        run_worker(name, subject, bench, as_child, needs_file=RECORD) for name in names
    ]  # fmt: skip
    return Receipt(
        schema_="tic/receipt/v1",
        run_id=subject.run_id,
        lock_digest=subject.lock.digest,
        platform_digest=subject.platform_digest,
        started_at=started,
        finished_at=bench.clock.now(),
        tool_version=bench.tool_version,
        host=host,
        body=ValidateBody(runs=tuple(runs), emulated=away),
    )


def _check_inputs(subject: Subject, bench: Bench, probe: Receipt | None, names: Sequence[str]) -> None:
    """What validation takes from earlier runs is what their receipt vouches for, byte for byte.

    Raises UnavailableError STAGE_MISSING.
    """
    workers = subject.lock.recipe.workers
    vouched = {run.name: run.outputs for run in getattr(probe.body, "runs", ())} if probe else {}
    wanted = {need for name in names for need in workers[name].needs if workers[need].stage != "validate"}
    for need in sorted(wanted):
        if need not in vouched or vouched[need] != bench.runs.outputs(need):
            raise UnavailableError(
                "STAGE_MISSING", f"the output of {need} is not the one that the probe's receipt names",
                where=need, remedy="run tic-manifest probe first",
            )  # fmt: skip
