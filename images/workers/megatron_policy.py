"""The policy as a `megatron.core` GPTModel: build it, and load a Hugging Face Llama checkpoint exactly."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from megatron.core import cpu_parity, parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.transformer.transformer_config import TransformerConfig
from safetensors.torch import load_file
from torch.nn import functional


def start() -> None:
    """One process, gloo, no network: tensor, pipeline and data parallel sizes are one."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    parallel_state.initialize_model_parallel(1, 1)


def _transformer_config(hf: dict[str, Any]) -> TransformerConfig:
    return TransformerConfig(
        num_layers=hf["num_hidden_layers"], hidden_size=hf["hidden_size"],
        num_attention_heads=hf["num_attention_heads"], num_query_groups=hf["num_key_value_heads"],
        kv_channels=hf["head_dim"], ffn_hidden_size=hf["intermediate_size"], normalization="RMSNorm",
        layernorm_epsilon=hf["rms_norm_eps"], gated_linear_unit=True, activation_func=functional.silu,
        add_bias_linear=False, bias_activation_fusion=False, bias_dropout_fusion=False,
        apply_rope_fusion=False, masked_softmax_fusion=False, gradient_accumulation_fusion=False,
        persist_layer_norm=False, hidden_dropout=0.0, attention_dropout=0.0, use_cpu_initialization=True,
        params_dtype=torch.float32, pipeline_dtype=torch.float32,
    )  # fmt: skip


def build(checkpoint: Path, operators: str) -> Any:
    """A GPTModel holding the checkpoint's weights.

    `operators` is `parity` (linear, rotary and attention by the rollout's CPU kernels) or `native`.
    """
    hf = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    config = _transformer_config(hf)
    theta, positions = float(hf["rope_theta"]), hf["max_position_embeddings"]
    if operators == "parity":
        cpu_parity.enable()
        spec, embedding = cpu_parity.layer_spec(config, theta, positions), "none"
    else:
        spec, embedding = get_gpt_layer_local_spec(normalization="RMSNorm"), "rope"
    model = GPTModel(
        config, spec, vocab_size=hf["vocab_size"], max_sequence_length=positions,
        position_embedding_type=embedding, rotary_base=int(theta),
        share_embeddings_and_output_weights=False,
    )  # fmt: skip
    load(model, load_file(checkpoint / "model.safetensors"), hf)
    return model.train()


def _fused_qkv(at: str, tensors: dict[str, torch.Tensor], hf: dict[str, Any]) -> torch.Tensor:
    """Per query group: its queries, its key, its value; [groups * (queries + 2) * head_dim, hidden]."""
    groups, size, hidden = hf["num_key_value_heads"], hf["head_dim"], hf["hidden_size"]
    parts = [tensors[f"{at}self_attn.{p}_proj.weight"].view(groups, -1, size, hidden) for p in "qkv"]
    return torch.cat(parts, dim=1).reshape(-1, hidden)


def mapped(tensors: dict[str, torch.Tensor], hf: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The checkpoint under Megatron's parameter names; every value unchanged."""
    out = {
        "embedding.word_embeddings.weight": tensors["model.embed_tokens.weight"],
        "decoder.final_layernorm.weight": tensors["model.norm.weight"],
        "output_layer.weight": tensors["lm_head.weight"],
    }
    for layer in range(hf["num_hidden_layers"]):
        at, to = f"model.layers.{layer}.", f"decoder.layers.{layer}."
        gate, up = tensors[at + "mlp.gate_proj.weight"], tensors[at + "mlp.up_proj.weight"]
        out[to + "input_layernorm.weight"] = tensors[at + "input_layernorm.weight"]
        out[to + "pre_mlp_layernorm.weight"] = tensors[at + "post_attention_layernorm.weight"]
        out[to + "self_attention.linear_qkv.weight"] = _fused_qkv(at, tensors, hf)
        out[to + "self_attention.linear_proj.weight"] = tensors[at + "self_attn.o_proj.weight"]
        out[to + "mlp.linear_fc1.weight"] = torch.cat((gate, up))
        out[to + "mlp.linear_fc2.weight"] = tensors[at + "mlp.down_proj.weight"]
    return out


def load(model: Any, tensors: dict[str, torch.Tensor], hf: dict[str, Any]) -> None:
    """Copy every parameter; raises KeyError where model and checkpoint do not have the same set."""
    source = mapped(tensors, hf)
    parameters = dict(model.named_parameters())
    if set(parameters) != set(source):
        raise KeyError(f"parameters differ: {sorted(set(parameters) ^ set(source))}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(source[name])


def nudge(model: Any, name: str, index: int) -> str:
    """Move one weight by one unit in the last place, away from zero; returns how to record it."""
    flat = dict(model.named_parameters())[name].data.view(-1)
    before = flat[index].clone()
    flat[index] = torch.nextafter(before, before * torch.inf)
    return f"one ulp: {name}:{index} from {before.item()!r} to {flat[index].item()!r}"
