"""Make the mini delivery's policy: a bigram table in one plain file of float32, and its prompts.

Values come from a 64-bit congruential generator and are scaled by a power of two, so that the bytes are the
same everywhere. Needs nothing but the standard library.
"""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tic_record

VOCAB, HIDDEN, SEED = 64, 32, 20260901
PROMPT_LENGTHS, NEW_TOKENS = (3, 4, 5, 6, 7, 8, 9, 10), 32


def stream(seed: int) -> Iterator[int]:
    """24 random bits at a time (constants of Knuth's MMIX generator)."""
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) & ((1 << 64) - 1)
        yield state >> 40


def main(argv: list[str]) -> int:
    """Write checkpoint/policy.bin (inputs, then outputs; VOCAB x HIDDEN each), prompts.json, record.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args(argv).out
    checkpoint = out / "checkpoint"
    checkpoint.mkdir(parents=True, exist_ok=True)
    bits = stream(SEED)
    values = [(next(bits) - (1 << 23)) * 2.0**-23 for _ in range(2 * VOCAB * HIDDEN)]
    (checkpoint / "policy.bin").write_bytes(struct.pack(f"<{len(values)}f", *values))
    prompts = [[next(bits) % VOCAB for _ in range(length)] for length in PROMPT_LENGTHS]
    document = {"schema": "tic/prompts/v1", "vocab_size": VOCAB, "hidden": HIDDEN, "new_tokens": NEW_TOKENS}
    tic_record.write_json(out / "prompts.json", {**document, "prompts": prompts})
    record = tic_record.base("policy", checkpoint, out / "prompts.json", [])
    tic_record.write_json(out / "record.json", record)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
