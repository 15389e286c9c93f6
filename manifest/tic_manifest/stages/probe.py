"""`probe`: the recipe's workers in the image, each under the agent, observed while they hold the model."""

from __future__ import annotations

from collections.abc import Sequence

from tic_manifest.model.receipt import ProbeBody, Receipt, WorkerRun
from tic_manifest.model.recipe import Worker
from tic_manifest.stages.workers import Bench, Subject, as_child, emulated, in_order, kept, run_worker

AGENT = "/opt/tic/probe_agent.py"
OBSERVATION = "probe.json"


def probe(subject: Subject, bench: Bench, earlier: Receipt | None) -> Receipt:
    """The receipt of the probe; an earlier one is returned as it is when it still stands."""
    names = in_order(subject, "input", "probe")
    host = bench.engine.host()
    away = emulated(subject, host)
    if earlier is not None and kept(earlier, subject, bench.runs, names, away=away):
        bench.progress.say("probe: nothing to do")
        return earlier
    started = bench.clock.now()
    bench.engine.end_left_over(subject.run_id)
    runs = () if away else tuple(_run(name, subject, bench) for name in names)
    return Receipt(
        schema_="tic/receipt/v1",
        run_id=subject.run_id,
        lock_digest=subject.lock.digest,
        platform_digest=subject.platform_digest,
        started_at=started,
        finished_at=bench.clock.now(),
        tool_version=bench.tool_version,
        host=host,
        body=ProbeBody(runs=runs, emulated=away),
    )


def _run(name: str, subject: Subject, bench: Bench) -> WorkerRun:
    if subject.lock.recipe.workers[name].stage == "input":
        return run_worker(name, subject, bench, as_child)
    return run_worker(name, subject, bench, under_agent, needs_file=OBSERVATION)


def under_agent(worker: Worker) -> Sequence[str]:
    """The worker's command as a child of the agent."""
    policy = ("--policy", worker.policy) if worker.policy else ()
    limit = ("--timeout", str(max(1, worker.timeout_seconds - 30)))
    head = ("/usr/bin/python3", "-I", AGENT, "run", "--role", worker.role, "--out", "/out")
    return (*head, *policy, *limit, "--", *worker.command)
