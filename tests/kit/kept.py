"""Deliveries of released versions: how one is made and what is asked of it. Used by tests and scripts/keep-delivery."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1] / "deliveries"
DEPTHS = ("identity", "content")
LAYERS = (
    {"usr/bin/tool": b"#!/bin/sh\n" * 40, "etc/removed": b"x"},
    {"etc/.wh.removed": b"", "usr/share/doc/tool/copyright": b"licence\n" * 20},
)


def keep(version: str) -> Path:
    """Make the delivery of a version anew; its folder."""
    folder = ROOT / version
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    index = _make(folder)
    said = {depth: asked(folder, index, depth) for depth in DEPTHS}
    expected = {"index": index, "depths": said}
    (folder / "expect.json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")
    return folder


def _make(folder: Path) -> str:
    sys.path.insert(0, str(ROOT.parent / "scenarios" / "lib"))
    from delivered import Delivered, new_key, wheel

    private, public = new_key()
    with contextlib.chdir(folder):
        made = Delivered(
            files=(*LAYERS, wheel({"alpha/__init__.py": b"A = 1\n", "alpha/one.py": b"B = 2\n"}))
        )
        made.close()
        made.deliver(key=private)
        made.deliver(
            key=private, started_at="2026-01-01T00:00:01Z"
        )  # a chain of two: the later one is judged
        made.policy()
    (folder / "key.pub").write_bytes(public)
    return str(made.index["digest"])


def asked(folder: Path, index: str, depth: str) -> dict[str, Any]:
    """What `verify` says of a kept delivery: exit code, codes of findings and of notes, whether an accepted key signed."""
    argv = [
        "verify",
        "--offline",
        "--depth",
        depth,
        "--key",
        "key.pub",
        "--policy",
        "policy.yaml",
        "--output",
        "json",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tic_manifest", *argv, f"oci:layout@{index}"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    report = json.loads(done.stdout)
    found = report["findings"]
    return {
        "exit": done.returncode, "codes": sorted({one["code"] for one in found if not one["note"]}),
        "signed": report["authenticity"].startswith("signed by "),
    }  # fmt: skip
