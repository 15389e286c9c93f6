# SPDX-License-Identifier: Apache-2.0
"""Export the raw log-probability of every selected token as bytes.

With ``VLLM_LOGPROB_EXPORT_DIR`` set, the process that runs the model appends three files there:

* ``<pid>.scores.bin``  float32, little endian, one value per row: log-softmax of the raw logits (before
  temperature, penalties or any other transform) at the selected token;
* ``<pid>.rows.jsonl``  one record per value: step, request, position (index of the selected token in the
  sequence), token, kind (``sampled`` or ``prompt``);
* ``<pid>.steps.jsonl`` one record per engine step: the packed batch as (request, tokens) in batch order.

Without the variable every call returns at once. Text output rounds; bytes do not.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch


class LogprobExport:
    """Appends rows and steps of one process; each write is flushed so that a crash at exit loses nothing."""

    def __init__(self, folder: str) -> None:
        base = Path(folder) / str(os.getpid())
        self.steps = 0
        self._scores = open(f"{base}.scores.bin", "ab")
        self._rows = open(f"{base}.rows.jsonl", "a", encoding="ascii")
        self._batches = open(f"{base}.steps.jsonl", "a", encoding="ascii")

    def step(self, requests: list[str], tokens: list[int]) -> None:
        """Record the batch of one forward pass: requests in packed order, scheduled tokens of each."""
        record = {"step": self.steps, "batch": [list(pair) for pair in zip(requests, tokens, strict=True)]}
        self._batches.write(json.dumps(record) + "\n")
        self._batches.flush()
        self.steps += 1

    def rows(self, kind: str, places: list[tuple[str, int, int]], scores: torch.Tensor) -> None:
        """Append rows; places: (request, position, token) of each; scores: float32 of shape [len(places)]."""
        if scores.dtype != torch.float32 or scores.shape != (len(places),):
            raise ValueError(f"scores are {scores.dtype} {tuple(scores.shape)}, not float32 ({len(places)},)")
        self._scores.write(scores.detach().cpu().numpy().astype("<f4", copy=False).tobytes())
        self._scores.flush()
        for request, position, token in places:
            row = {
                "step": self.steps - 1,
                "request": request,
                "position": position,
                "token": token,
                "kind": kind,
            }
            self._rows.write(json.dumps(row) + "\n")
        self._rows.flush()


_export: LogprobExport | None = None


def _exporter() -> LogprobExport | None:
    global _export
    folder = os.environ.get("VLLM_LOGPROB_EXPORT_DIR")
    if folder and _export is None:
        _export = LogprobExport(folder)
    return _export


def step(requests: list[str], tokens: list[int]) -> None:
    """Note the batch that the model runner is about to execute."""
    export = _exporter()
    if export is not None:
        export.step(requests, tokens)


def prompt(request: str, first: int, tokens: torch.Tensor, scores: torch.Tensor) -> None:
    """Note prompt scores; tokens: [n] selected ids at positions first..; scores: [n, vocabulary] float32."""
    export = _exporter()
    if export is None:
        return
    ids = tokens.to(torch.int64)
    selected = scores.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    places = [(request, first + index, token) for index, token in enumerate(ids.tolist())]
    export.rows("prompt", places, selected)


def sampled(runner: Any, scheduled: dict[str, int], output: Any) -> None:
    """Note the sampled tokens of one step; rows of unfinished prompts are left out.

    Raises RuntimeError where the engine was not asked for raw log-probabilities: a processed value is
    another quantity and must not be exported under this name.
    """
    export = _exporter()
    if export is None:
        return
    if output.logprobs_tensors is None or runner.model_config.logprobs_mode != "raw_logprobs":
        raise RuntimeError("VLLM_LOGPROB_EXPORT_DIR needs logprobs=0 or more and logprobs_mode=raw_logprobs")
    batch = runner.input_batch
    places, keep = [], []
    tokens = output.sampled_token_ids[:, 0].tolist()
    for index, request in enumerate(batch.req_ids):
        length = int(batch.num_computed_tokens_cpu[index]) + scheduled[request]
        if length >= int(batch.num_prompt_tokens[index]):
            places.append((request, length, tokens[index]))
            keep.append(index)
    chosen = output.logprobs_tensors.logprobs[:, 0]
    export.rows("sampled", places, chosen[torch.from_numpy(np.array(keep, dtype=np.int64))])
