"""Make the demo policy: a random Llama whose bytes are the same on every machine, and its prompts.

Weights come from 24-bit integers of PCG64, scaled by one float32 multiplication, so no transcendental
function (whose last bit depends on the CPU) takes part. Norm weights are far from one and the hidden size is
1024: all-ones norms hide an RMSNorm difference, and a tiny hidden size hides batch variance.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tic_record
from safetensors.numpy import save_file

VOCAB, HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, MLP = 512, 1024, 4, 16, 4, 64, 2048
MAX_POSITIONS, EPS, ROPE_THETA, SEED = 256, 1e-6, 10000.0, 20260901
PROMPT_LENGTHS, NEW_TOKENS = (9, 13, 17, 21, 26, 30, 35, 40), 32


def config() -> dict[str, Any]:
    """The Hugging Face configuration of the policy (float32, untied embeddings)."""
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float32",
        "dtype": "float32", "vocab_size": VOCAB, "hidden_size": HIDDEN, "intermediate_size": MLP,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM, "hidden_act": "silu", "rms_norm_eps": EPS, "rope_theta": ROPE_THETA,
        "rope_parameters": {"rope_type": "default", "rope_theta": ROPE_THETA},
        "max_position_embeddings": MAX_POSITIONS, "tie_word_embeddings": False,
        "attention_bias": False, "mlp_bias": False, "bos_token_id": 0, "eos_token_id": 1, "use_cache": True,
    }  # fmt: skip


def shapes() -> Iterator[tuple[str, tuple[int, ...], float]]:
    """Every tensor as (name, shape, half width of its uniform distribution; 0 marks a norm weight)."""
    wide, narrow = 3.0**0.5 * HIDDEN**-0.5, 3.0**0.5 * MLP**-0.5
    yield "model.embed_tokens.weight", (VOCAB, HIDDEN), 1.0
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", (HIDDEN,), 0.0
        yield at + "self_attn.q_proj.weight", (HEADS * HEAD_DIM, HIDDEN), 1.5 * wide
        yield at + "self_attn.k_proj.weight", (KV_HEADS * HEAD_DIM, HIDDEN), 1.5 * wide
        yield at + "self_attn.v_proj.weight", (KV_HEADS * HEAD_DIM, HIDDEN), wide
        yield at + "self_attn.o_proj.weight", (HIDDEN, HEADS * HEAD_DIM), wide
        yield at + "post_attention_layernorm.weight", (HIDDEN,), 0.0
        yield at + "mlp.gate_proj.weight", (MLP, HIDDEN), wide
        yield at + "mlp.up_proj.weight", (MLP, HIDDEN), wide
        yield at + "mlp.down_proj.weight", (HIDDEN, MLP), narrow
    yield "model.norm.weight", (HIDDEN,), 0.0
    yield "lm_head.weight", (VOCAB, HIDDEN), 2.0 * wide


def weights() -> dict[str, np.ndarray]:
    """Draw every tensor in a fixed order from one stream; float32."""
    stream = np.random.Generator(np.random.PCG64(SEED))
    tensors = {}
    for name, shape, half_width in shapes():
        unit = (stream.integers(0, 1 << 24, size=shape, dtype=np.int64) - (1 << 23)).astype(np.float32)
        unit *= np.float32(2.0**-23)
        if half_width:
            tensors[name] = unit * np.float32(half_width)
        else:
            tensors[name] = np.float32(1.0) + unit * np.float32(0.5)
    return tensors


def prompts() -> dict[str, Any]:
    """Eight prompts of different lengths; tokens 0 and 1 (begin, end) are left out."""
    stream = np.random.Generator(np.random.PCG64(SEED + 1))
    tokens = [stream.integers(2, VOCAB, size=length).tolist() for length in PROMPT_LENGTHS]
    return {"schema": "tic/prompts/v1", "vocab_size": VOCAB, "new_tokens": NEW_TOKENS, "prompts": tokens}


def main(argv: list[str]) -> int:
    """Write DIR/checkpoint/{config.json,model.safetensors}, DIR/prompts.json and DIR/record.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args(argv).out
    checkpoint = out / "checkpoint"
    checkpoint.mkdir(parents=True, exist_ok=True)
    (checkpoint / "config.json").write_text(json.dumps(config(), indent=1, sort_keys=True) + "\n")
    save_file(weights(), checkpoint / "model.safetensors", metadata={"format": "pt"})
    (out / "prompts.json").write_text(json.dumps(prompts(), sort_keys=True) + "\n")
    record = tic_record.base("policy", checkpoint, out / "prompts.json", [])
    record["seed"] = SEED
    tic_record.write_json(out / "record.json", record)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
