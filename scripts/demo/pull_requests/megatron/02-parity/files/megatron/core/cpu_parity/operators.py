# SPDX-License-Identifier: Apache-2.0
"""vLLM's CPU operators as autograd functions: forward by the rollout's kernel, backward by torch."""

import torch

_ops = None
_matmul = None


def enable() -> None:
    """Load vLLM's native operators and use them from now on; raises ImportError where they are missing."""
    global _ops, _matmul
    import vllm._C  # noqa: F401  an import error must not be swallowed here
    from vllm import _custom_ops
    from vllm.model_executor.layers.cpu_single_row import onednn_mm

    _ops, _matmul = _custom_ops, onednn_mm


def enabled() -> bool:
    """Whether the parallel linear layers use the rollout's operator."""
    return _ops is not None


class _Linear(torch.autograd.Function):
    """y = x W^T (+ b). The weight is packed at each call: an optimizer step changes it in place."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        handler = _ops.create_onednn_mm(weight.detach().t(), 32)
        return _matmul(handler, x.detach().contiguous(), None if bias is None else bias.detach())

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        flat, rows = grad.reshape(-1, grad.shape[-1]), x.reshape(-1, x.shape[-1])
        grad_x = flat.matmul(weight).view_as(x) if ctx.needs_input_grad[0] else None
        grad_weight = flat.t().matmul(rows) if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight, flat.sum(0) if ctx.has_bias else None


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """x: [..., K], weight: [N, K], bias: [N] or None; returns [..., N]."""
    return _Linear.apply(x, weight, bias)


class _Rotate(torch.autograd.Function):
    """Rotate pairs of a head by position; the gradient is the rotation by the opposite angle."""

    @staticmethod
    def forward(ctx, x, positions, table):
        ctx.save_for_backward(positions, table)
        return _rotate(x, positions, table)

    @staticmethod
    def backward(ctx, grad):
        positions, table = ctx.saved_tensors
        cos, sin = table.chunk(2, dim=-1)
        return _rotate(grad, positions, torch.cat((cos, -sin), dim=-1)), None, None


def _rotate(x, positions, table):
    tokens, heads, size = x.shape
    rotated = x.detach().reshape(tokens, heads * size).clone()
    _ops.rotary_embedding(positions, rotated, None, size, table.contiguous(), True)
    return rotated.view(tokens, heads, size)


def rotate(x: torch.Tensor, positions: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """x: [T, heads, size], positions: int64 [T], table: [max positions, size] (cosines, then sines)."""
    return _Rotate.apply(x, positions, table)


def rotary_table(size: int, base: float, max_positions: int) -> torch.Tensor:
    """Cosines and sines as the rollout engine tabulates them: float32 [max_positions, size]."""
    inverse = 1.0 / (base ** (torch.arange(0, size, 2, dtype=torch.float) / size))
    angles = torch.einsum("i,j -> ij", torch.arange(max_positions, dtype=torch.float), inverse)
    return torch.cat((angles.cos(), angles.sin()), dim=-1)
