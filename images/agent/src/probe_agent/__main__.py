"""Command line: `run … -- COMMAND`, `snapshot --pid PID --out FILE`, or only `--pid PID > probe.json`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import List, Optional

from .base import Json, attempt, failure, write_json
from .rederive import rederive
from .rederive_child import child_main
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
    run.add_argument("--rederive", metavar="PYTHON", help="make entries of the JIT ledger again by it")
    run.add_argument("worker", nargs="+", metavar="COMMAND", help="after --")
    snapshot = commands.add_parser("snapshot", help="describe a process that runs already")
    snapshot.add_argument("--pid", type=int, required=True)
    snapshot.add_argument("--out", metavar="FILE", help="default: standard output")
    snapshot.add_argument("--policy", metavar="PATH")
    snapshot.add_argument("--rederive", metavar="PYTHON", help="as of `run`; `own`: that of the process")
    snapshot.add_argument("--alone", action="store_true", help="that process, and none below it")
    child = commands.add_parser("rederive-child", help="the process that `--rederive` starts")
    child.add_argument("family", choices=("triton", "inductor"))
    child.add_argument("--site", default="", metavar="DIR")
    return top


def main(argv: List[str]) -> int:
    """0: the observation is written, whatever the worker did; 2: command line; 1: could not observe."""
    if argv and argv[0].startswith("--pid"):
        argv = ["snapshot", *argv]
    # argparse would take a worker's own options for ours: everything after the first `--` is the worker's
    cut = argv.index("--") if "--" in argv else len(argv)
    arguments = parser().parse_args(argv[:cut] + (["--", *argv[cut + 1 :]] if cut < len(argv) else []))
    try:
        if arguments.command == "rederive-child":
            return child_main(arguments.family, arguments.site)
        return run(arguments) if arguments.command == "run" else snapshot(arguments)
    except Exception as error:
        sys.stderr.write("probe_agent: %s\n" % failure(error))
        return 1


def run(arguments: argparse.Namespace) -> int:
    """`run`: supervise and write OUT/probe.json."""
    os.makedirs(arguments.out, exist_ok=True)
    limits = Limits(ready=arguments.ready_timeout or arguments.timeout, total=arguments.timeout)
    report = run_report(arguments.role, arguments.out, arguments.worker, arguments.policy, limits)
    made_again(report, arguments.rederive)
    write_json(os.path.join(arguments.out, "probe.json"), report)
    return 0


def made_again(report: Json, python: Optional[str]) -> None:
    """Re-derive the ledger where that was asked for; what goes wrong with it is a note."""
    if python is None:
        return
    root = max((row["root"] for row in report["files"]), default="")
    found = attempt(rederive, report, root, own_python(report) if python == "own" else python)
    if found is not None:
        report["notes"].append("re-derivation: %s" % found["error"])


def own_python(report: Json) -> str:
    """The interpreter of the first process that gave a view from inside; ours when none did."""
    named = [str((v.get("python") or {}).get("executable") or "") for v in report["inside"]]
    return next((name for name in named if name.startswith("/")), sys.executable)


def snapshot(arguments: argparse.Namespace) -> int:
    """`snapshot`: describe and write the file, or standard output."""
    report = snapshot_report(arguments.pid, arguments.policy, arguments.alone)
    made_again(report, arguments.rederive)
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
