# SPDX-License-Identifier: Apache-2.0
"""Let a CPU trainer compute its forward pass with the rollout engine's own operators.

Off by default. After :func:`enable` the parallel linear layers multiply with vLLM's oneDNN operator, and
:func:`layer_spec` gives a decoder layer whose attention and rotary embedding are vLLM's CPU kernels. Every
operator is wrapped as an autograd function with a native backward, so no-grad and grad-enabled forwards take
one path and the trainer's log-probabilities can equal the rollout's byte for byte.
"""

from megatron.core.cpu_parity.operators import enable, enabled, linear

__all__ = ["enable", "enabled", "layer_spec", "linear"]


def layer_spec(config, rotary_base: float, max_positions: int):
    """Local decoder layer spec whose core attention is :class:`ParityAttention`.

    The model must be built with ``position_embedding_type='none'``: the attention rotates by itself.
    """
    from functools import partial

    from megatron.core.cpu_parity.attention import ParityAttention
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec

    spec = get_gpt_layer_local_spec(normalization=config.normalization)
    attention = spec.submodules.self_attention.submodules
    attention.core_attention = partial(ParityAttention, rotary_base=rotary_base, max_positions=max_positions)
    return spec
