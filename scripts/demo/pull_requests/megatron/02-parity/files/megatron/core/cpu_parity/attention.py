# SPDX-License-Identifier: Apache-2.0
"""Causal attention of the trainer by the rollout's paged CPU kernel, with a native backward."""

import math

import torch

from megatron.core.cpu_parity import operators
from megatron.core.transformer.dot_product_attention import DotProductAttention

BLOCK = 128  # tokens of one cache block; the rollout's default on CPU


def _paged_forward(q, k, v, batch, scale):
    """q: [B*S, H, D], k and v: [B*S, G, D], sequences one after another; returns [B*S, H, D]."""
    from vllm import envs

    ops = operators._ops
    tokens, heads, size = q.shape
    length, groups, blocks = tokens // batch, k.shape[1], -(-(tokens // batch) // BLOCK)
    cache = torch.zeros(batch * blocks, groups, 2 * BLOCK, size, dtype=q.dtype)
    key_cache, value_cache = cache.chunk(2, dim=2)
    table = torch.arange(batch * blocks, dtype=torch.int32).view(batch, blocks)
    within = torch.arange(length)
    slots = (torch.arange(batch)[:, None] * blocks * BLOCK + within[None, :]).reshape(-1)
    starts = torch.arange(batch + 1, dtype=torch.int32) * length
    lengths = torch.full((batch,), length, dtype=torch.int32)
    ops.cpu_attn_reshape_and_cache(k, v, key_cache, value_cache, slots, "vec")
    metadata = ops.cpu_attn_get_scheduler_metadata(
        num_reqs=batch, num_heads=heads, num_kv_heads=groups, head_dim=size, seq_lens=lengths, dtype=q.dtype,
        query_start_loc=starts, causal=True, sliding_window_size=-1, isa="vec",
        enable_kv_split=envs.VLLM_CPU_ATTN_SPLIT_KV,
    )  # fmt: skip
    output = torch.empty_like(q)
    ops.cpu_attention_with_kv_cache(
        query=q, key_cache=key_cache, value_cache=value_cache, output=output, query_start_loc=starts,
        seq_lens=lengths, scale=scale, causal=True, alibi_slopes=None, sliding_window=-1, block_table=table,
        softcap=0, scheduler_metadata=metadata, s_aux=None,
    )  # fmt: skip
    return output


def _native(q, k, v, batch, scale):
    """The same function in torch, for its gradient."""
    tokens, heads, size = q.shape
    length, groups = tokens // batch, k.shape[1]
    q4, k4, v4 = (t.view(batch, length, -1, size).transpose(1, 2) for t in (q, k, v))
    k4, v4 = (t.repeat_interleave(heads // groups, dim=1) for t in (k4, v4))
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
    weights = (q4 @ k4.transpose(-1, -2) * scale).masked_fill(hidden, -math.inf).softmax(-1)
    return (weights @ v4).transpose(1, 2).reshape(tokens, heads, size)


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, batch, scale):
        ctx.save_for_backward(q, k, v)
        ctx.batch, ctx.scale = batch, scale
        return _paged_forward(q.detach(), k.detach(), v.detach(), batch, scale)

    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            inputs = [t.detach().requires_grad_() for t in ctx.saved_tensors]
            output = _native(*inputs, ctx.batch, ctx.scale)
        return (*torch.autograd.grad(output, inputs, grad), None, None)


class ParityAttention(DotProductAttention):
    """Core attention that rotates queries and keys and attends with the rollout's kernels (causal only)."""

    def __init__(self, *args, rotary_base: float, max_positions: int, **kwargs):
        super().__init__(*args, **kwargs)
        size = self.config.kv_channels
        self.register_buffer(
            "rotary_table", operators.rotary_table(size, rotary_base, max_positions), persistent=False
        )

    def forward(self, query, key, value, attention_mask, attn_mask_type=None, **kwargs):
        """query: [S, B, H, D], key and value: [S, B, G, D]; returns [S, B, H * D]."""
        length, batch, heads, size = query.shape
        flat = [t.transpose(0, 1).reshape(batch * length, -1, size) for t in (query, key, value)]
        positions = torch.arange(length).repeat(batch)
        q, k = (operators.rotate(t, positions, self.rotary_table) for t in flat[:2])
        output = _Attend.apply(q, k, flat[2].contiguous(), batch, size**-0.5)
        return output.view(batch, length, heads * size).transpose(0, 1)
