"""Samples of a policy, and the forms in which a process may hold them."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from types import ModuleType

import pytest


def write_safetensors(path: Path, tensors: dict[str, tuple[str, list[int], bytes]]) -> None:
    """The format by hand: length, JSON header, data."""
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    encoded = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + data)


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def test_embedding_rows_outweigh_weights_that_may_be_repacked(agent: ModuleType, tmp_path: Path) -> None:
    linear = {f"layers.{i}.weight": ("BF16", [64, 64], noise(8192, i)) for i in range(20)}
    embedding = {"model.embed_tokens.weight": ("BF16", [128, 64], noise(16384, 99))}
    write_safetensors(tmp_path / "model.safetensors", linear | embedding)
    samples, report = agent.read_policy(str(tmp_path))
    rows = [s for s in samples if "embed" in s.where]
    assert report["errors"] == []
    assert len(rows) * 2 > len(samples) > len(rows)


def test_constant_tensors_give_no_sample(agent: ModuleType, tmp_path: Path) -> None:
    write_safetensors(tmp_path / "m.safetensors", {"norm": ("F32", [64], struct.pack("<f", 1.0) * 64)})
    samples, report = agent.read_policy(str(tmp_path))
    assert samples == [] and report["samples"] == 0


def test_forms_follow_a_change_of_width(agent: ModuleType) -> None:
    chance = random.Random(3)
    values = [chance.uniform(-2, 2) for _ in range(16)]
    narrow = agent.forms_of(struct.pack("<16f", *values), "F32")["BF16"]
    wide = agent.forms_of(narrow * 2, "BF16")["F32"]
    assert (len(narrow), len(wide)) == (32, 64)
    assert all(abs(a - b) < 0.01 for a, b in zip(struct.unpack("<16f", wide), values, strict=True))


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff" * 8, struct.pack("<Q", 10) + b"not json!!", struct.pack("<Q", 2) + b"[]", noise(1000)],
)
def test_a_broken_checkpoint_is_an_error_in_the_report(
    agent: ModuleType, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    samples, report = agent.read_policy(str(tmp_path))
    assert samples == [] and len(report["errors"]) <= 1


def test_a_tensor_outside_the_file_is_refused(agent: ModuleType, tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}}).encode()
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    assert "outside" in agent.read_policy(str(tmp_path))[1]["errors"][0]


def test_a_checkpoint_one_folder_down_is_found(agent: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "p.bin").write_bytes(noise(100_000))
    assert agent.read_policy(str(tmp_path))[1]["samples"] == 16


def test_a_sample_across_two_windows_is_found(agent: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "p.bin").write_bytes(noise(64))
    samples, _ = agent.read_policy(str(tmp_path))
    search = agent.Search(samples, agent.Budget(5))
    search.left = {0: dict(samples[0].forms)}
    data = bytes(100) + noise(64)
    tail = data[:-20][-(agent.SAMPLE - 1) :]
    search.look(data[:-20], 0)
    assert search.found == {}
    search.look(tail + data[-20:], 0)
    assert search.found == {0: "raw"}
