"""Command line: `run … -- COMMAND`, `snapshot --pid PID --out FILE`, or only `--pid PID > probe.json`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import List, Optional

from .base import failure, write_json
from .report import run_report, snapshot_report
from .supervisor import Limits


def parser() -> argparse.ArgumentParser:
    """The two commands."""
    top = argparse.ArgumentParser(
        prog="probe_agent.py", description="What the processes of a worker really loaded."
    )
    commands = top.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="start a worker, follow its process tree, write OUT/probe.json")
    run.add_argument("--role", required=True)
    run.add_argument("--out", required=True, metavar="DIR")
    run.add_argument("--policy", metavar="PATH", help="checkpoint folder or file whose bytes mark the holder")
    run.add_argument("--ready-timeout", type=float, metavar="SECONDS", help="default: --timeout")
    run.add_argument("--timeout", type=float, default=1200.0, metavar="SECONDS")
    run.add_argument("worker", nargs="+", metavar="COMMAND", help="after --")
    snapshot = commands.add_parser("snapshot", help="describe a process that runs already")
    snapshot.add_argument("--pid", type=int, required=True)
    snapshot.add_argument("--out", metavar="FILE", help="default: standard output")
    snapshot.add_argument("--policy", metavar="PATH")
    snapshot.add_argument("--alone", action="store_true", help="that process, and none below it")
    return top


def main(argv: List[str]) -> int:
    """0: the observation is written, whatever the worker did; 2: command line; 1: could not observe."""
    if argv and argv[0].startswith("--pid"):
        argv = ["snapshot", *argv]
    # argparse would take a worker's own options for ours: everything after the first `--` is the worker's
    cut = argv.index("--") if "--" in argv else len(argv)
    arguments = parser().parse_args(argv[:cut] + (["--", *argv[cut + 1 :]] if cut < len(argv) else []))
    try:
        return run(arguments) if arguments.command == "run" else snapshot(arguments)
    except Exception as error:
        sys.stderr.write("probe_agent: %s\n" % failure(error))
        return 1


def run(arguments: argparse.Namespace) -> int:
    """`run`: supervise and write OUT/probe.json."""
    os.makedirs(arguments.out, exist_ok=True)
    limits = Limits(ready=arguments.ready_timeout or arguments.timeout, total=arguments.timeout)
    report = run_report(arguments.role, arguments.out, arguments.worker, arguments.policy, limits)
    write_json(os.path.join(arguments.out, "probe.json"), report)
    return 0


def snapshot(arguments: argparse.Namespace) -> int:
    """`snapshot`: describe and write the file, or standard output."""
    report = snapshot_report(arguments.pid, arguments.policy, arguments.alone)
    out: Optional[str] = arguments.out
    if out is None or out == "-":
        json.dump(
            report, sys.stdout, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False
        )
        sys.stdout.write("\n")
    else:
        write_json(out, report)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
