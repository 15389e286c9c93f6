"""The command line of the runner."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from types import FrameType
from typing import NoReturn

from scenarios import process, runner
from scenarios.folder import Scenario, find
from scenarios.runner import Options, Result


def main(argv: list[str]) -> int:
    """Run what is asked for; the exit code of the runner."""
    asked = _parser().parse_args(argv)
    missing = [str(root) for root in asked.dirs if not root.is_dir()]
    if missing:
        print(f"run-scenarios: not a folder: {', '.join(missing)}", file=sys.stderr)
        return 2
    os.environ.setdefault("TIC_TIME_SCALE", "0.01")
    chosen = [one for one in find(asked.dirs) if asked.only in one.name]
    if problem := _bench(chosen):
        print(f"run-scenarios: {problem}", file=sys.stderr)
        return 3
    options = Options(replay=asked.replay, mergeable_null=asked.mergeable_null, keep=asked.keep)
    results = _run_all(chosen, options, asked.jobs, first_red=asked.first_red)
    failed = [one for one in results if one.problems]
    _summary(results, failed)
    return 0 if results and not failed else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run-scenarios", description="run scenario folders against local servers"
    )
    parser.add_argument("dirs", nargs="+", type=Path, metavar="DIR", help="run every scenario below it")
    parser.add_argument(
        "--replay", action="store_true", help="run each gate again from its recording, with no server"
    )
    parser.add_argument(
        "--mergeable-null", action="store_true", help="answer mergeable with null twice before it is final"
    )
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="scenarios at once")
    parser.add_argument("--only", default="", metavar="TEXT", help="only scenarios whose path has TEXT")
    parser.add_argument("--keep", action="store_true", help="keep the folders of scenarios that fail")
    parser.add_argument("--first-red", action="store_true", help="stop at the first scenario that fails")
    return parser


def _bench(chosen: list[Scenario]) -> str:
    """Bring up what scenarios need and tell them by TIC_PROBE_BENCH; what is wrong with it, or nothing."""
    if not any(one.needs_bench for one in chosen):
        return ""
    from probebench.main import BenchError, up

    try:
        os.environ["TIC_PROBE_BENCH"] = str(up())
    except (BenchError, OSError) as error:
        return f"the probe's bench: {error}"
    return ""


def _run_all(chosen: list[Scenario], options: Options, jobs: int, *, first_red: bool) -> list[Result]:
    results: list[Result] = []
    signal.signal(signal.SIGTERM, _terminate)
    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        waiting = [pool.submit(runner.run, one, options) for one in chosen]
        try:
            for done in as_completed(waiting):
                results.append(done.result())
                _tell(results[-1])
                if first_red and results[-1].problems:
                    break
        except (KeyboardInterrupt, SystemExit):
            process.stop()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return results


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _tell(result: Result) -> None:
    print(f"{'FAIL' if result.problems else 'pass'}  {result.name}  {result.seconds:.1f} s", flush=True)
    for line in result.problems:
        print(f"        {line}", flush=True)
    if result.kept:
        print(f"        kept: {result.kept}", flush=True)


def _summary(results: list[Result], failed: list[Result]) -> None:
    if failed:
        print(f"failed: {' '.join(sorted(one.name for one in failed))}")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed", flush=True)
