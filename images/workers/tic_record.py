"""What every worker writes: scores as raw bytes, and one record that says how they came about.

Record schema `tic/worker-record/v1`: role, pid, checkpoint (sha256 of each file), tokens_sha256, mask (one
0 or 1 per request and position), dtype, byte_order, quantity, scores and scores_grad, no_grad and grad
(what the tensors say), packing, batches, diagnostic_interventions; a role's own keys are never judged.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

SCHEMA = "tic/worker-record/v1"
QUANTITY = "selected-token raw logprob"
PACKAGES = ("vllm", "megatron-core", "verl", "torch", "triton", "numpy", "transformers", "numba")


def sha256(file: Path) -> str:
    """Hex sha256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def checkpoint_digests(folder: Path) -> dict[str, str]:
    """sha256 of each file of a checkpoint, by its path relative to it."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {file.relative_to(folder).as_posix(): sha256(file) for file in files}


def write_json(file: Path, value: Any) -> None:
    """Write whole or not at all: a record that exists is complete."""
    part = file.with_name(file.name + ".part")
    part.write_text(json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")
    part.replace(file)


def write_scores(file: Path, rows: Sequence[bytes]) -> dict[str, Any]:
    """Write rows of float32 values, little endian, one row per request; returns the file's description.

    Raises ValueError unless there are values and all rows are of one length.
    """
    lengths = {len(row) for row in rows}
    if len(lengths) != 1 or lengths == {0} or lengths.pop() % 4:
        raise ValueError("scores are not float32 rows of one length")
    file.write_bytes(b"".join(rows))
    shape = [len(rows), len(rows[0]) // 4]
    return {"file": file.name, "sha256": sha256(file), "shape": shape, "count": shape[0] * shape[1]}


def read_tokens(file: Path) -> list[dict[str, Any]]:
    """Read `tic/tokens/v1`: per request its name, prompt and completion token ids."""
    document = json.loads(file.read_text(encoding="utf-8"))
    if document.get("schema") != "tic/tokens/v1" or not document.get("requests"):
        raise ValueError(f"{file} holds no tokens of schema tic/tokens/v1")
    return list(document["requests"])


def write_tokens(file: Path, requests: list[dict[str, Any]]) -> None:
    """Write `tic/tokens/v1`."""
    write_json(file, {"schema": "tic/tokens/v1", "requests": requests})


def cpu() -> dict[str, Any]:
    """Model name and flags: Inductor, oneDNN and vLLM choose code by them."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    pairs = dict(reversed([line.split(":", 1) for line in lines if ":" in line]))
    fields = {key.strip(): value.strip() for key, value in pairs.items()}
    return {"model": fields.get("model name", "unknown"), "flags": sorted(fields.get("flags", "").split())}


def versions() -> dict[str, str | None]:
    """Installed versions; None where a package is absent."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def cores() -> list[int]:
    """The CPU numbers this process may run on, ascending."""
    return sorted(os.sched_getaffinity(0))


def geometry(checkpoint: Path) -> dict[str, Any] | None:
    """The model's sizes as its own configuration names them; None for a policy without one."""
    file = checkpoint / "config.json"
    if not file.is_file():
        return None
    given = json.loads(file.read_text(encoding="utf-8"))
    names = {"layers": "num_hidden_layers", "hidden": "hidden_size", "heads": "num_attention_heads"}
    names |= {"kv_heads": "num_key_value_heads", "mlp": "intermediate_size", "vocab": "vocab_size"}
    return {"family": given.get("model_type"), **{name: given.get(key) for name, key in names.items()}}


def base(role: str, checkpoint: Path, tokens: Path, requests: list[dict[str, Any]]) -> dict[str, Any]:
    """The part of a record that every role has."""
    return {
        "schema": SCHEMA,
        "role": role,
        "pid": os.getpid(),
        "checkpoint": checkpoint_digests(checkpoint),
        "tokens_sha256": sha256(tokens),
        "requests": [request["request"] for request in requests],
        "mask": [[1] * len(request["completion"]) for request in requests],
        "dtype": "float32",
        "byte_order": "little",
        "quantity": QUANTITY,
        "model": geometry(checkpoint),
        "diagnostic_interventions": [],
        "cpu": cpu(),
        "versions": versions(),
    }
