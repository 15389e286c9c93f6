# SPDX-License-Identifier: Apache-2.0
"""A matrix product on CPU whose rows do not depend on how many rows there are.

For one row oneDNN takes another kernel, which sums in another order once the inner dimension exceeds 1024: a
sequence decoded alone then has other log-probabilities than the same sequence decoded in a batch. A single
row is therefore multiplied as two.
"""

import torch

from vllm import _custom_ops as ops


def onednn_mm(handler, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """As ``ops.onednn_mm``; x: [..., K] with any number of rows, returns [..., N]."""
    if x.numel() != x.shape[-1]:
        return ops.onednn_mm(handler, x, bias)
    row = x.reshape(1, -1)
    both = ops.onednn_mm(handler, torch.cat((row, row)), bias)
    return both[:1].reshape(*x.shape[:-1], -1)
