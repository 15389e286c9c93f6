"""The rollout side of the mini delivery."""

from tic_mini_alpha._score import draw, load, logprob

__all__ = ["draw", "load", "logprob", "scores"]


def scores(policy, tokens, first):
    """Log-probabilities of tokens[first:], as text."""
    return [format(logprob(policy, tokens[i - 1], tokens[i]), ".6f") for i in range(first, len(tokens))]
