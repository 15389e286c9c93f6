"""`tic-manifest probe`: what the real processes loaded."""

from __future__ import annotations

import os
from pathlib import Path

import click

from tic_manifest.cli import wiring
from tic_manifest.cli.measuring import built, lock_bytes, lock_option, subject
from tic_manifest.cli.output import judging, output_option
from tic_manifest.errors import PersonError
from tic_manifest.model.receipt import Receipt
from tic_manifest.model.verdict import Report, report
from tic_manifest.stages.session import Session, open_session


@click.command("probe")
@click.argument("image", required=False)
@click.option("--pid", type=click.IntRange(min=1), help="judge this running process and nothing else")
@click.option("--container", metavar="ID", help="judge the first process of this running container")
@click.option(
    "--agent",
    "agent_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="the agent's file, for --pid and --container (default: that of the checkout, or of the tool)",
)
@click.option(
    "--recipe",
    "recipe_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="for --pid and --container: the recipe whose policy says which files of the host are allowed",
)
@click.option(
    "--rederive", is_flag=True, help="with --pid: make the process's compiled kernels again and compare them"
)
@lock_option
@wiring.work_option
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    image: str | None,
    pid: int | None,
    container: str | None,
    agent_file: Path | None,
    recipe_file: Path | None,
    rederive: bool,
    lock_file: Path | None,
    work_dir: Path,
    outputs: tuple[tuple[str, str], ...],
) -> int:
    """Run the recipe's workers in IMAGE@DIGEST under the agent and judge what was observed.

    With --pid or --container one process that runs already is judged.
    """
    if sum(one is not None for one in (image, pid, container)) > 1:
        raise PersonError("USAGE", "IMAGE, --pid and --container exclude each other", where="probe")
    if pid is not None or container is not None:
        return judging(
            ctx, "probe", outputs, lambda: running(pid, container, agent_file, recipe_file, rederive)
        )
    work = wiring.work_folder(work_dir)

    def judge() -> Report:
        with work.writing():
            session = open_session(work, lock_bytes(lock_file))
            run_probe(ctx, session, built(session, image))
            return judged(session)

    return judging(ctx, "probe", outputs, judge)


def running(
    pid: int | None,
    container: str | None,
    agent_file: Path | None,
    recipe_file: Path | None = None,
    rederive: bool = False,
) -> Report:
    """One process that runs already, looked at by the agent and judged. Raises UnavailableError."""
    from tic_manifest.adapters.agent import denied, find_agent, observe
    from tic_manifest.formats.recipe import read_recipe
    from tic_manifest.formats.strict_json import read_model
    from tic_manifest.model.probe import ProbeReport
    from tic_manifest.rules.probe_process import judge_process, unreadable

    policy = None
    if recipe_file:
        policy = read_recipe(wiring.read_person_file(recipe_file), str(recipe_file)).policy
    agent = find_agent(agent_file)
    if pid is None:
        from tic_manifest.adapters.container_pid import host_pid

        pid = host_pid(os.environ.get("DOCKER_HOST") or None, container or "")
    seen = read_model(observe(agent, pid, rederive=rederive), ProbeReport, f"pid {pid}")
    if reason := unreadable(seen):
        raise denied(pid, reason)
    checks, findings = judge_process(seen, policy)
    subject = f"container {container}, pid {pid}" if container else f"pid {pid}"
    return report("probe", checks, findings, subjects=[subject])


def run_probe(ctx: click.Context, session: Session, build: Receipt) -> Receipt:
    """Run the stage and keep its receipt."""
    from tic_manifest.stages.probe import probe

    bench = wiring.bench(ctx, session)
    receipt = probe(subject(session, bench, build), bench, session.receipt("probe"))
    session.keep(receipt)
    return receipt


def judged(session: Session) -> Report:
    """The observations, judged again from the files that the agent left."""
    from tic_manifest.rules.delivery_probe import judge_probe
    from tic_manifest.rules.dossier import read_dossier
    from tic_manifest.stages.assemble import collect

    files = collect(session.lock, session.receipts(), wiring.runs(session), session.work, None)
    checks, findings = judge_probe(read_dossier(files))
    return report("probe", checks, findings, subjects=[f"lock {session.lock.digest}"])
