"""The bench of `verify` on a small image: its machinery, memory, disk, requests and verdicts, not its seconds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "scripts" / "benches" / "verify.py"


@pytest.mark.skipif(
    not shutil.which("crane") or not shutil.which("skopeo"), reason="crane or skopeo is absent"
)
def test_a_small_image_is_read_within_the_limits_of_memory_disk_and_requests(tmp_path: Path) -> None:
    argv = [sys.executable, BENCH, "--size", "16", "--rounds", "1", "--no-limits", "--work", tmp_path]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith(("gzip, 16", "zstd, 16"))]
    assert sum("verify --depth files" in line for line in rows) == 2
    assert sum("crane validate" in line for line in rows) == 1
    assert done.stdout.count("ok  ") == 5 and "FAIL" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_generated_image_is_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCH.parent)
    import _verify_image as generated

    first, again = (generated.make(tmp_path / name, 8 << 20) for name in ("a", "b"))
    assert [one.blobs for one in first] == [one.blobs for one in again]
    planned = generated.plan(4 << 30)
    sizes = [size for layer in planned for size in layer.sizes]
    assert len(planned) == 30 and len(sizes) >= 150_000
    assert abs(sum(sizes) - (4 << 30)) < (4 << 30) // 100
