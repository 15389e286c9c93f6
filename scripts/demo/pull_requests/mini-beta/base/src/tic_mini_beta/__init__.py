"""The trainer side of the mini delivery."""

from tic_mini_beta._train import dump, load, logprob, step

__all__ = ["dump", "forward", "load", "logprob", "step"]


def forward(policy, tokens, first):
    """Log-probabilities of tokens[first:]."""
    return [logprob(policy, tokens[i - 1], tokens[i]) for i in range(first, len(tokens))]
