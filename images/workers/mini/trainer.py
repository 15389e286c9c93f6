"""The mini delivery's trainer: scores fixed tokens without and with a tape, then makes one update.

Scores come from tic-mini-beta's compiled extension; whether they can be differentiated is read from them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import struct
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tic_hooks
import tic_record

RATE = 1e-3


def nudged(data: bytes, index: int) -> tuple[bytes, str]:
    """The policy with value `index` moved by one ulp away from zero: a diagnostic, to be recorded."""
    (word,) = struct.unpack_from("<I", data, 4 * index)
    moved = data[: 4 * index] + struct.pack("<I", word + 1) + data[4 * index + 4 :]
    return moved, f"one ulp: policy.bin:{index}"


def facts(passes: list[Any]) -> dict[str, Any]:
    """What the scores say of themselves."""
    return {
        "calls": len(passes),
        "requires_grad": all(one.requires_grad for one in passes),
        "any_requires_grad": any(one.requires_grad for one in passes),
        "grad_fn": sorted({one.grad_fn for one in passes if one.grad_fn is not None}),
    }


def update(policy: Any, passes: list[Any], before: bytes) -> dict[str, Any]:
    """Step along every tape; values that changed and the norm of the update."""
    import tic_mini_beta

    for one in passes:
        one.backward(RATE)
    after = tic_mini_beta.dump(policy)
    count = len(before) // 4
    pairs = list(zip(struct.unpack(f"<{count}f", before), struct.unpack(f"<{count}f", after), strict=True))
    norm = math.sqrt(math.fsum((b - a) ** 2 for a, b in pairs))
    changed = sum(a != b for a, b in pairs)
    return {"optimizer": "gradient ascent", "learning_rate": RATE,
            "tensors": {"policy.bin": {"changed": changed, "count": count, "update_norm": norm}}}  # fmt: skip


def main(argv: list[str]) -> int:
    """Run the trainer; exit code 0 only after record.json is complete."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", type=Path, required=True)
    parser.add_argument("--tokens", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--nudge", type=int, metavar="INDEX")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    tic_hooks.snapshot("start")
    import tic_mini_beta

    document = json.loads((args.policy / "prompts.json").read_text(encoding="utf-8"))
    requests = tic_record.read_tokens(args.tokens)
    record = tic_record.base("trainer", args.policy / "checkpoint", args.tokens, requests)
    data = (args.policy / "checkpoint" / "policy.bin").read_bytes()
    if args.nudge is not None:
        data, said = nudged(data, args.nudge)
        record["diagnostic_interventions"].append(said)
    policy = tic_mini_beta.load(data, document["vocab_size"], document["hidden"])
    rows = [(r["prompt"] + r["completion"], len(r["prompt"])) for r in requests]
    quiet = [tic_mini_beta.forward(policy, *row) for row in rows]
    taped = [tic_mini_beta.forward(policy, *row, tape=True) for row in rows]
    tic_hooks.snapshot("warm")
    tic_hooks.hold("ready", os.getpid())
    record["scores"] = tic_record.write_scores(args.out / "scores_nograd.bin", [one.data for one in quiet])
    record["scores_grad"] = tic_record.write_scores(args.out / "scores_grad.bin", [one.data for one in taped])
    record.update(no_grad=facts(quiet), grad=facts(taped), packing="single")
    record["batches"] = [[{"request": r["request"], "tokens": len(tokens)}]
                         for r, (tokens, _) in zip(requests, rows, strict=True)]  # fmt: skip
    record.update(update=update(policy, taped, data), backends={"scorer": "tic_mini_beta._train"})
    tic_hooks.snapshot("end")
    tic_record.write_json(args.out / "record.json", record)
    tic_hooks.hold("done", os.getpid())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
