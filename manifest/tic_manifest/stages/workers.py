"""Worker runs: one program of the recipe in the image, by digest, without network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tic_manifest.errors import PersonError, UnavailableError
from tic_manifest.formats.lock import LoadedLock
from tic_manifest.model.base import Digest
from tic_manifest.model.receipt import Host, Receipt, WorkerRun
from tic_manifest.model.recipe import Worker
from tic_manifest.ports import Clock, Container, Ended, Engine, Progress, Runs

SIGNAL_BASE = 128
LAUNCH = (
    "import subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
    "sys.exit(code if code >= 0 else 128 - code)"
)
"""Runs a worker as a child: signals do not end a container's first process as they end others."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is measured: an image that runs as `image`, built from `lock` in the delivery `run_id`."""

    lock: LoadedLock
    platform_digest: Digest
    run_id: str
    image: str
    logs: Path


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What measuring needs from the outside."""

    engine: Engine
    runs: Runs
    clock: Clock
    progress: Progress
    tool_version: str


Wrap = Callable[[Worker], Sequence[str]]


def run_worker(name: str, subject: Subject, bench: Bench, wrap: Wrap, *, needs_file: str = "") -> WorkerRun:
    """Run one worker. Raises UnavailableError WORKER_EXIT when it ends without having left `needs_file`.

    A worker that leaves its output and then ends badly is recorded as it is: neither judges the other.
    Without a `needs_file` there is nothing to tell a whole output by, so it must end well and leave one.
    """
    worker = subject.lock.recipe.workers[name]
    bench.progress.say(f"worker {name} ({worker.role}), time limit {worker.timeout_seconds} s")
    started = bench.clock.now()
    ended = bench.engine.run(_container(name, worker, subject, bench, wrap))
    run = _recorded(name, worker, ended, bench, started)
    names = {one.name for one in run.outputs}
    if not (needs_file in names if needs_file else names and run.exit_code == 0):
        raise _died(run, needs_file or "exit code 0 and at least one file")
    return run


def as_child(worker: Worker) -> Sequence[str]:
    """The worker's command below a launcher, so that it ends as it would anywhere else."""
    return ("/usr/bin/python3", "-I", "-c", LAUNCH, *worker.command)


def in_order(subject: Subject, *stages: str) -> list[str]:
    """Names of the workers of these stages, each after what it needs."""
    workers = subject.lock.recipe.workers
    done: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise PersonError(
                "RECIPE", "workers need each other in a circle", where=" -> ".join((*above, name))
            )
        for need in workers[name].needs:
            visit(need, (*above, name))
        if name not in done and workers[name].stage in stages:
            done.append(name)

    for name in workers:
        if workers[name].stage in stages:
            visit(name, ())
    return done


def emulated(subject: Subject, host: Host) -> bool:
    """Whether the image's platform is another than the host's: then nothing is measured."""
    names = {"x86_64": "amd64", "aarch64": "arm64"}
    return subject.lock.recipe.platform.split("/")[1] != names.get(host.machine, host.machine)


def kept(receipt: Receipt | None, subject: Subject, runs: Runs, names: Sequence[str], *, away: bool) -> bool:
    """Whether an earlier receipt of this stage still stands: same subject, same runs, outputs unchanged."""
    if (
        receipt is None
        or receipt.run_id != subject.run_id
        or receipt.platform_digest != subject.platform_digest
    ):
        return False
    recorded = getattr(receipt.body, "runs", ())
    if away or getattr(receipt.body, "emulated", False):
        return away and not recorded
    same = [run.name for run in recorded] == list(names)
    return same and all(run.outputs == runs.outputs(run.name) for run in recorded)


def _container(name: str, worker: Worker, subject: Subject, bench: Bench, wrap: Wrap) -> Container:
    return Container(
        image=subject.image,
        argv=wrap(worker),
        env=worker.env,
        inputs={f"/in/{need}": bench.runs.path(need) for need in worker.needs},
        output=bench.runs.fresh(name),
        shm_mib=worker.shm_mib,
        timeout_seconds=worker.timeout_seconds,
        log=subject.logs / f"{name}.log",
        name=name,
        run_id=subject.run_id,
    )


def _recorded(name: str, worker: Worker, ended: Ended, bench: Bench, started: str) -> WorkerRun:
    code = ended.exit_code
    return WorkerRun(
        name=name,
        role=worker.role,
        command=worker.command,
        needs=worker.needs,
        exit_code=code,
        signal=code - SIGNAL_BASE if code is not None and code > SIGNAL_BASE else None,
        timed_out=ended.timed_out,
        started_at=started,
        finished_at=bench.clock.now(),
        log_tail=ended.log_tail,
        outputs=bench.runs.outputs(name),
    )


def _died(run: WorkerRun, needs_file: str) -> UnavailableError:
    how = f"exit code {run.exit_code}" if run.signal is None else f"signal {run.signal}"
    how = "the time limit" if run.timed_out else how
    tail = "\n".join(("", *run.log_tail[-12:]))
    return UnavailableError(
        "WORKER_EXIT", f"worker {run.name} ended without its output", where=f"role {run.role}",
        expected=f"{needs_file} in its output folder", actual=f"ended by {how}; its last lines:{tail}",
        remedy="mend the worker and run the same command again; finished stages are kept",
    )  # fmt: skip
