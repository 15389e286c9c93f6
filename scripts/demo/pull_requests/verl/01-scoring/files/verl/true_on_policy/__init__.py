"""Scores that a trainer and a rollout engine can compare byte for byte."""

from verl.true_on_policy.scoring import selected_raw_logprobs

__all__ = ["selected_raw_logprobs"]
