"""The one definition of the compared quantity: the raw log-probability of the selected token.

`verl.utils.torch_functional.logprobs_from_logits` subtracts a logsumexp, which rounds differently from the
log-softmax that the rollout engine reports. This is the engine's order of operations, with a gradient.
"""

import torch


def selected_raw_logprobs(logits: torch.Tensor, selected: torch.Tensor) -> torch.Tensor:
    """logits: [..., vocabulary] as the model gives them (no temperature); selected: int64 [...].

    Returns float32 [...]: log-softmax over the whole vocabulary in float32, then the selected entry.
    """
    if logits.shape[:-1] != selected.shape:
        raise ValueError(f"logits {tuple(logits.shape)} do not belong to tokens {tuple(selected.shape)}")
    return logits.log_softmax(dim=-1, dtype=torch.float32).gather(-1, selected.unsqueeze(-1)).squeeze(-1)
