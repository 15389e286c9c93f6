"""The rollout side: a real vLLM engine samples from the policy, or scores given tokens by prefill.

The raw selected-token log-probabilities are the bytes that the engine's own export writes in the process that
holds the model (VLLM_LOGPROB_EXPORT_DIR). Writes scores.bin, tokens.json and record.json (see tic_record).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tic_hooks
import tic_record

Request = dict[str, Any]
SEED = 20260901


def parse(argv: list[str]) -> argparse.Namespace:
    """Command line of the worker."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", type=Path, required=True, help="folder made by policy.py")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--mode", choices=("sample", "score"), default="sample")
    parser.add_argument("--tokens", type=Path, help="tokens.json to score (mode score)")
    parser.add_argument("--packing", choices=("batch", "reversed", "single", "split"), default="batch")
    parser.add_argument("--engine", choices=("in-process", "multi-process"), default="in-process")
    parser.add_argument("--role-ready", type=Path, help="file to write when the engine is up")
    args = parser.parse_args(argv)
    if (args.mode == "score") != (args.tokens is not None):
        parser.error("--tokens goes with --mode score, and that mode needs it")
    return args


def environment(args: argparse.Namespace) -> None:
    """Settings that vLLM reads when it is imported; what is already set stays."""
    export = args.out / "export"
    export.mkdir(parents=True)
    os.environ["VLLM_LOGPROB_EXPORT_DIR"] = str(export)
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "1" if args.engine == "multi-process" else "0"
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", ",".join(map(str, tic_record.cores())))
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")


def requests_of(args: argparse.Namespace) -> list[Request]:
    """Requests with prompt and (mode score) completion; names are their places in the policy's prompts."""
    if args.tokens is not None:
        return tic_record.read_tokens(args.tokens)
    document = json.loads((args.policy / "prompts.json").read_text(encoding="utf-8"))
    return [
        {"request": str(index), "prompt": prompt, "completion": [], "new_tokens": document["new_tokens"]}
        for index, prompt in enumerate(document["prompts"])
    ]


def plan_of(count: int, packing: str) -> list[list[int]]:
    """Requests of each `generate` call, in the order of submission."""
    order = list(range(count))
    if packing == "reversed":
        return [order[::-1]]
    if packing == "single":
        return [[index] for index in order]
    if packing == "split":
        return [order[: count // 2 - 1], order[count // 2 - 1 :]]
    return [order]


def engine(args: argparse.Namespace) -> Any:
    """The engine, with everything that could vary from run to run switched off."""
    from vllm import LLM

    return LLM(
        model=str(args.policy / "checkpoint"), skip_tokenizer_init=True, enforce_eager=True, dtype="float32",
        seed=SEED % 2**31, kv_cache_memory_bytes=64 << 20, max_model_len=256, max_num_seqs=8,
        enable_prefix_caching=False, worker_extension_cls="tic_worker_extension.WorkerExtension",
    )  # fmt: skip


def ask(llm: Any, requests: list[Request], plan: list[list[int]], mode: str) -> list[tuple[int, Any]]:
    """Run the plan; returns (index of the request, engine's answer) in order of submission."""
    from vllm import SamplingParams

    answers = []
    for group in plan:
        prompts, params = [], []
        for index in group:
            request = requests[index]
            prompts.append({"prompt_token_ids": request["prompt"] + request["completion"]})
            extra = {"prompt_logprobs": 0} if mode == "score" else {}
            new = 1 if mode == "score" else request["new_tokens"]
            params.append(
                SamplingParams(
                    temperature=1.0,
                    seed=SEED + index,
                    max_tokens=new,
                    logprobs=0,
                    ignore_eos=True,
                    detokenize=False,
                    **extra,
                )
            )
        answers += list(zip(group, llm.generate(prompts, params, use_tqdm=False), strict=True))
    return answers


def read_export(folder: Path) -> tuple[int, list[dict[str, Any]], np.ndarray, list[dict[str, Any]]]:
    """The engine's export: pid of the model holder, rows, values, batches. ValueError unless one process."""
    files = sorted(folder.glob("*.scores.bin"))
    if len(files) != 1:
        raise ValueError(f"{len(files)} processes exported log-probabilities, not one")
    pid = files[0].name.split(".")[0]
    rows = [json.loads(line) for line in (folder / f"{pid}.rows.jsonl").read_text().splitlines()]
    steps = [json.loads(line) for line in (folder / f"{pid}.steps.jsonl").read_text().splitlines()]
    values = np.frombuffer(files[0].read_bytes(), dtype="<f4")
    if len(rows) != len(values):
        raise ValueError(f"{len(rows)} rows and {len(values)} values in the export")
    return int(pid), rows, values, steps


def completions(requests: list[Request], answers: list[tuple[int, Any]], mode: str) -> list[Request]:
    """Requests with the completion that was sampled (or, mode score, was given)."""
    done = [dict(request) for request in requests]
    for index, answer in answers:
        done[index].pop("new_tokens", None)
        if mode == "sample":
            done[index]["completion"] = list(answer.outputs[0].token_ids)
    return done


def place(
    requests: list[Request], names: dict[str, int], rows: list[dict[str, Any]], values: np.ndarray, kind: str
) -> np.ndarray:
    """Values of `kind` by request and completion position: float32 [requests, new tokens].

    Raises ValueError where a position is missing, doubled or holds another token than the request's.
    """
    scores = np.full((len(requests), len(requests[0]["completion"])), np.nan, dtype=np.float32)
    for row, value in zip(rows, values, strict=True):
        index = names[row["request"]]
        at = row["position"] - len(requests[index]["prompt"])
        if row["kind"] != kind or at < 0:
            continue
        if requests[index]["completion"][at] != row["token"] or not np.isnan(scores[index, at]):
            raise ValueError(f"export row does not fit the request: {row}")
        scores[index, at] = value
    if np.isnan(scores).any():
        raise ValueError(f"{int(np.isnan(scores).sum())} positions have no exported log-probability")
    return scores


def api_differences(
    answers: list[tuple[int, Any]], requests: list[Request], scores: np.ndarray, mode: str
) -> int:
    """In how many values the engine's answer (Python floats) differs from the exported bytes."""
    differences = 0
    for index, answer in answers:
        if mode == "score":
            given = answer.prompt_logprobs[len(requests[index]["prompt"]) :]
        else:
            given = answer.outputs[0].logprobs
        for at, token in enumerate(requests[index]["completion"]):
            differences += np.float32(given[at][token].logprob) != scores[index, at]
    return int(differences)


def names_of(
    rows: list[dict[str, Any]], steps: list[dict[str, Any]], plan: list[list[int]]
) -> dict[str, int]:
    """Engine's request ids (`<running number>-<random suffix>`) to our requests, by order of submission."""
    submitted = [index for group in plan for index in group]
    seen = {row["request"] for row in rows} | {name for s in steps for name, _ in s["batch"]}
    names = {name: submitted[int(name.partition("-")[0])] for name in seen}
    if sorted(names.values()) != sorted(submitted):
        raise ValueError(f"the engine's requests {sorted(seen)} are not the submitted ones")
    return names


def record_of(
    args: argparse.Namespace, requests: list[Request], plan: list[list[int]], answers: list[tuple[int, Any]]
) -> dict[str, Any]:
    """Write tokens.json and scores.bin from the engine's export; returns the record about them."""
    requests = completions(requests, answers, args.mode)
    tokens = args.out / "tokens.json"
    tic_record.write_tokens(tokens, requests)
    pid, rows, values, steps = read_export(args.out / "export")
    names = names_of(rows, steps, plan)
    scores = place(requests, names, rows, values, "prompt" if args.mode == "score" else "sampled")
    record = tic_record.base("rollout", args.policy / "checkpoint", tokens, requests)
    payload = [row.astype("<f4").tobytes() for row in scores]
    record["scores"] = tic_record.write_scores(args.out / "scores.bin", payload)
    record["packing"] = args.packing
    record["batches"] = [
        [{"request": requests[names[name]]["request"], "tokens": count} for name, count in one["batch"]]
        for one in steps
    ]
    record.update(
        mode=args.mode,
        path="prefill" if args.mode == "score" else "decode",
        engine=args.engine,
        holder_pid=pid,
        sampling={"temperature": 1.0, "top_k": 0, "top_p": 1.0, "seed": SEED},
        api_differences=api_differences(answers, requests, scores, args.mode),
    )
    return record


def engine_facts(config: Any, backends: dict[str, Any]) -> dict[str, Any]:
    """What the engine resolved, read from its configuration and its worker, not from our flags."""
    parallel, cache, model = config.parallel_config, config.cache_config, config.model_config
    return {
        "enforce_eager": bool(model.enforce_eager),
        "concurrency": config.scheduler_config.max_num_seqs,
        "quantization": str(model.quantization),
        "topology": {
            "TP": parallel.tensor_parallel_size,
            "PP": parallel.pipeline_parallel_size,
            "DP": parallel.data_parallel_size,
            "CP": parallel.decode_context_parallel_size,
        },
        "cache": {"prefix_caching": bool(cache.enable_prefix_caching), "block_size": cache.block_size},
        "dtypes": {
            "deployment": backends["weights"],
            "activation": str(model.dtype),
            "kv": backends["kv_cache"],
        },
    }


def main(argv: list[str]) -> int:
    """Run the rollout; exit code 0 only after record.json is complete."""
    args = parse(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    environment(args)
    requests = requests_of(args)
    plan = plan_of(len(requests), args.packing)
    llm = engine(args)
    backends = llm.collective_rpc("tic_backends")[0]
    if args.role_ready is not None:
        tic_record.write_json(args.role_ready, {"role": "rollout", "pid": backends["pid"]})
    answers = ask(llm, requests, plan, args.mode)
    llm.collective_rpc("tic_snapshot", args=("warm",))
    tic_hooks.hold("ready", backends["pid"])
    record = record_of(args, requests, plan, answers)
    record["backends"] = {name: str(value) for name, value in backends.items() if name != "pid"}
    record.update(engine_facts(llm.llm_engine.vllm_config, backends))
    llm.collective_rpc("tic_snapshot", args=("end",))
    tic_record.write_json(args.out / "record.json", record)
    tic_hooks.hold("done", backends["pid"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
