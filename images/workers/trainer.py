"""The trainer side: a megatron.core GPTModel scores fixed tokens, then makes one real update.

No-grad scoring, grad-enabled forward, backward and one AdamW step, in one process, on the policy's weights.
Writes scores_nograd.bin, scores_grad.bin and record.json (see tic_record). A pass pads its sequences to the
longest of them; the recorded batches count real tokens.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import tic_hooks
import tic_record

Request = dict[str, Any]


def parse(argv: list[str]) -> argparse.Namespace:
    """Command line of the worker."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", type=Path, required=True, help="folder made by policy.py")
    parser.add_argument("--tokens", type=Path, required=True, help="tokens.json of a rollout")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--operators", choices=("parity", "native"), default="parity")
    parser.add_argument("--packing", choices=("batch", "reversed", "single", "split"), default="batch")
    parser.add_argument("--nudge", metavar="TENSOR:INDEX", help="diagnostic: move one weight by one ulp")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    return parser.parse_args(argv)


def groups(count: int, packing: str) -> list[list[int]]:
    """Indices of the requests of each forward pass, in batch order."""
    order = list(range(count))
    if packing == "reversed":
        return [order[::-1]]
    if packing == "single":
        return [[index] for index in order]
    if packing == "split":
        return [order[: count // 2 - 1], order[count // 2 - 1 :]]
    return [order]


def forward(model: Any, requests: list[Request], group: list[int]) -> Any:
    """Selected raw log-probabilities of one padded batch: float32 tensor [len(group), new tokens].

    Sequences are padded on the right; attention is causal, so padding is never attended to.
    """
    import torch
    from verl.true_on_policy import selected_raw_logprobs

    rows = [requests[i]["prompt"] + requests[i]["completion"] for i in group]
    longest = max(map(len, rows)) - 1
    tokens = torch.zeros(len(rows), longest + 1, dtype=torch.int64)
    for at, row in enumerate(rows):
        tokens[at, : len(row)] = torch.tensor(row)
    positions = torch.arange(longest).expand(len(rows), -1)
    hidden = torch.ones(1, 1, longest, longest, dtype=torch.bool).triu(1)
    logits = model(tokens[:, :-1].contiguous(), positions, hidden)
    scores = selected_raw_logprobs(logits, tokens[:, 1:])
    starts = [len(requests[i]["prompt"]) - 1 for i in group]
    new = len(requests[group[0]]["completion"])
    return torch.stack([scores[at, start : start + new] for at, start in enumerate(starts)])


def score(model: Any, requests: list[Request], plan: list[list[int]]) -> tuple[list[Any], list[Any]]:
    """Forward passes of a plan: scores of each pass, and its batch (request, tokens, padded length)."""
    passes = [forward(model, requests, group) for group in plan]
    batches = []
    for group in plan:
        lengths = [len(requests[i]["prompt"]) + len(requests[i]["completion"]) - 1 for i in group]
        batches.append(
            [{"request": requests[i]["request"], "tokens": n} for i, n in zip(group, lengths, strict=True)]
        )
    return passes, batches


def in_order(passes: list[Any], plan: list[list[int]]) -> list[bytes]:
    """Rows of all passes in the order of the requests, each as float32 bytes, little endian."""
    import torch

    stacked = torch.cat([p.detach() for p in passes])
    order = [index for group in plan for index in group]
    back = torch.empty_like(stacked)
    back[torch.tensor(order)] = stacked
    return [row.astype("<f4").tobytes() for row in back.numpy()]


def step(model: Any, learning_rate: float) -> dict[str, Any]:
    """A torch AdamW step on Megatron's parameters; per tensor gradient norm, changed values, update norm."""
    import torch

    parameters = dict(model.named_parameters())
    before = {name: p.detach().clone() for name, p in parameters.items()}
    torch.optim.AdamW(parameters.values(), lr=learning_rate, weight_decay=0.0).step()
    tensors = {}
    for name, p in parameters.items():
        delta = (p.detach().double() - before[name].double()).norm().item()
        tensors[name] = {
            "grad_norm": None if p.grad is None else p.grad.double().norm().item(),
            "grad_finite": p.grad is not None and bool(p.grad.isfinite().all()),
            "changed": int((p.detach() != before[name]).sum()),
            "count": p.numel(),
            "update_norm": delta,
        }
    changed = sum(1 for t in tensors.values() if t["changed"])
    return {"optimizer": "torch.optim.AdamW", "learning_rate": learning_rate, "tensors": tensors,
            "tensors_changed": changed, "tensors_total": len(tensors)}  # fmt: skip


def measure(model: Any, args: argparse.Namespace, requests: list[Request]) -> dict[str, Any]:
    """Both forwards, backward and the update; writes the two score files."""
    import torch

    plan = groups(len(requests), args.packing)
    with torch.no_grad():
        quiet, batches = score(model, requests, plan)
    graded, _ = score(model, requests, plan)
    tic_hooks.snapshot("warm")
    tic_hooks.hold("ready", os.getpid())
    loss = -torch.cat(graded).mean()
    loss.backward()
    return {
        "scores": tic_record.write_scores(args.out / "scores_nograd.bin", in_order(quiet, plan)),
        "scores_grad": tic_record.write_scores(args.out / "scores_grad.bin", in_order(graded, plan)),
        "no_grad": tensor_facts(quiet),
        "grad": tensor_facts(graded),
        "packing": args.packing,
        "batches": batches,
        "loss": loss.item(),
        "update": step(model, args.learning_rate),
    }


def tensor_facts(passes: list[Any]) -> dict[str, Any]:
    """What the tensors themselves say about the passes: never inferred from the mode that was asked for."""
    return {
        "calls": len(passes),
        "requires_grad": all(p.requires_grad for p in passes),
        "any_requires_grad": any(p.requires_grad for p in passes),
        "grad_fn": sorted({type(p.grad_fn).__name__ for p in passes if p.grad_fn is not None}),
    }


def model_facts(model: Any) -> dict[str, Any]:
    """Parallel sizes and dtypes from Megatron's state, its configuration and the model's tensors."""
    from megatron.core import parallel_state as state

    parameters = list(model.parameters())
    return {
        "topology": {
            "TP": state.get_tensor_model_parallel_world_size(),
            "PP": state.get_pipeline_model_parallel_world_size(),
            "DP": state.get_data_parallel_world_size(),
            "CP": state.get_context_parallel_world_size(),
            "EP": state.get_expert_model_parallel_world_size(),
        },
        "dtypes": {
            "master": ",".join(sorted({str(p.dtype) for p in parameters})),
            "gradient": ",".join(sorted({str(p.grad.dtype) for p in parameters if p.grad is not None})),
            "activation": str(model.config.params_dtype),
        },
        "quantization": "None",
    }


def backends(model: Any, operators: str) -> dict[str, str]:
    """The operators in use, read from the built model."""
    import torch
    from megatron.core import cpu_parity

    attention = {type(layer.self_attention.core_attention).__name__ for layer in model.decoder.layers}
    return {
        "operators": operators,
        "attention": ",".join(sorted(attention)),
        "gemm": "onednn_mm" if cpu_parity.enabled() else "torch.matmul",
        "threads": str(torch.get_num_threads()),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }


def main(argv: list[str]) -> int:
    """Run the trainer; exit code 0 only after record.json is complete."""
    args = parse(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    requests = tic_record.read_tokens(args.tokens)
    tic_hooks.snapshot("start")
    import megatron_policy
    import torch

    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    megatron_policy.start()
    model = megatron_policy.build(args.policy / "checkpoint", args.operators)
    record = tic_record.base("trainer", args.policy / "checkpoint", args.tokens, requests)
    if args.nudge:
        name, _, index = args.nudge.rpartition(":")
        record["diagnostic_interventions"].append(megatron_policy.nudge(model, name, int(index)))
    record.update(
        measure(model, args, requests), backends=backends(model, args.operators), **model_facts(model)
    )
    tic_hooks.snapshot("end")
    tic_record.write_json(args.out / "record.json", record)
    tic_hooks.hold("done", os.getpid())
    torch.distributed.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
