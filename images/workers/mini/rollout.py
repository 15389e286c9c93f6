"""The mini delivery's rollout: the process that holds the policy is a child of the one that was started.

As in a real engine, the driver only starts the worker and passes its end on. Scores come from the compiled
extension of tic-mini-alpha. `--packing` says how sequences are grouped into steps; the batches are recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tic_hooks
import tic_record

SEED = 7


def parse(argv: list[str]) -> argparse.Namespace:
    """Command line; `--worker` marks the child."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--packing", choices=("batch", "reversed", "single", "split"), default="batch")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def plan_of(count: int, packing: str) -> list[list[int]]:
    """Requests of each step, in batch order."""
    order = list(range(count))
    half = count // 2 - 1
    plans = {"reversed": [order[::-1]], "single": [[i] for i in order], "split": [order[:half], order[half:]]}
    return plans.get(packing, [order])


def generate(policy: Any, prompt: list[int], new: int, index: int) -> list[int]:
    """Draw `new` tokens; the random numbers belong to the request, not to its place in a batch."""
    import random

    import tic_mini_alpha

    numbers = random.Random(SEED + index)
    tokens = list(prompt)
    for _ in range(new):
        tokens.append(tic_mini_alpha.draw(policy, tokens[-1], numbers.random()))
    return tokens[len(prompt) :]


def work(args: argparse.Namespace) -> int:
    """The worker: load, sample, score, record."""
    tic_hooks.snapshot("start")
    import tic_mini_alpha
    import tic_mini_gamma

    document = json.loads((args.policy / "prompts.json").read_text(encoding="utf-8"))
    data = (args.policy / "checkpoint" / "policy.bin").read_bytes()
    policy = tic_mini_alpha.load(data, document["vocab_size"], document["hidden"])
    plan, rows, requests = plan_of(len(document["prompts"]), args.packing), {}, {}
    for index in (i for step in plan for i in step):
        prompt = document["prompts"][index]
        completion = generate(policy, prompt, document["new_tokens"], index)
        requests[index] = {"request": str(index), "prompt": prompt, "completion": completion}
        rows[index] = tic_mini_alpha.raw_scores(policy, prompt + completion, len(prompt))
    tic_hooks.snapshot("warm")
    tic_hooks.hold("ready", os.getpid())
    ordered = [requests[index] for index in sorted(requests)]
    tic_record.write_tokens(args.out / "tokens.json", ordered)
    record = tic_record.base("rollout", args.policy / "checkpoint", args.out / "tokens.json", ordered)
    record["valid"] = tic_mini_gamma.count(tic_mini_gamma.full_mask([len(r["completion"]) for r in ordered]))
    record["scores"] = tic_record.write_scores(args.out / "scores.bin", [rows[i] for i in sorted(rows)])
    record["packing"] = args.packing
    record["batches"] = [
        [{"request": str(i), "tokens": len(requests[i]["prompt"] + requests[i]["completion"])} for i in step]
        for step in plan
    ]
    record.update(path="decode", backends={"scorer": "tic_mini_alpha._score"})
    tic_hooks.snapshot("end")
    tic_record.write_json(args.out / "record.json", record)
    tic_hooks.hold("done", os.getpid())
    return 0


def main(argv: list[str]) -> int:
    """The driver: start the worker, pass its exit code on (a signal as 128 and its number)."""
    args = parse(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.worker:
        return work(args)
    command = [sys.executable, *sys.orig_argv[1:], "--worker"]
    code = subprocess.run(command, check=False).returncode
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
