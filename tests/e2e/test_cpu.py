"""The main job on real upstream code: `make image` on the CPU recipe, killed once on the way, then judged.

Takes minutes and gigabytes; run by scripts/e2e-cpu. TIC_E2E_WORK names a work folder to keep.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "images/recipes/cpu.yaml"
LIMIT_SECONDS = 25 * 60
DIGEST = r"sha256:[0-9a-f]{64}"
COMPARISONS = (
    "rollout_repeat",
    "packing_reversed",
    "one_by_one",
    "prefill_decode",
    "old_logprob",
    "actor_forward",
)


class Run:
    """One work folder; `image` may be asked for again and again."""

    def __init__(self, work: Path, recipe: Path) -> None:
        self.work, self.recipe, self.out, self.seconds = work, recipe, "", 0.0

    def start(self) -> subprocess.Popen[str]:
        argv = [ROOT / "scripts/make-image", str(self.recipe), str(self.work)]
        env = os.environ | {"VENV": str(Path(sys.executable).parent.parent)}
        return subprocess.Popen(
            argv, env=env, text=True, stdout=subprocess.PIPE, cwd=ROOT, start_new_session=True
        )

    def image(self) -> None:
        begun = time.monotonic()
        running = self.start()
        self.out, _ = running.communicate(timeout=2 * LIMIT_SECONDS)
        self.seconds = time.monotonic() - begun
        assert running.returncode == 0, self.out

    def digest(self, label: str) -> str:
        found = re.search(rf"^{label} digest: ({DIGEST})$", self.out, re.M)
        assert found, self.out
        return found[1]

    def receipts(self) -> dict[str, int]:
        return {path.stem: path.stat().st_ino for path in (self.work / "receipts").glob("*/*.json")}

    def verify(self, *more: str, layout: Path | None = None) -> tuple[int, dict[str, Any]]:
        reference = f"oci:{layout or self.work / 'layout'}@{self.digest('platform manifest')}"
        argv = [sys.executable, "-m", "tic_manifest", "verify", reference, "--output", "json", *more]
        ran = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=False)
        return ran.returncode, json.loads(ran.stdout)


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The delivery, after a `kill -9` of the whole process group in the middle of the probe."""
    kept = os.environ.get("TIC_E2E_WORK")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("cpu")
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(folder / "work", Path(shutil.copy(RECIPE, folder / "cpu.yaml")))
    begun = time.monotonic()
    first = run.start()
    while first.poll() is None and "build" not in run.receipts():
        time.sleep(1)
    time.sleep(20)
    if first.poll() is None:
        os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    finished = run.receipts()
    run.image()
    assert {name: run.receipts()[name] for name in finished} == finished, "a finished stage was done again"
    run.seconds = time.monotonic() - begun
    return run


def test_the_first_time_stays_within_its_limit(delivered: Run) -> None:
    assert delivered.seconds < LIMIT_SECONDS, f"{delivered.seconds:.0f} s, one kill included"


def test_verdict_and_measured_parity(delivered: Run) -> None:
    code, report = delivered.verify()
    assert code == report["exitCode"]
    checks = {one["id"]: one for one in report["checks"]}
    measured = {name: checks[f"validation.{name}"]["status"] for name in COMPARISONS}
    print(f"measured: {measured}")
    assert set(measured.values()) <= {"pass", "fail"}, "every comparison was measured"
    codes = {one["code"] for one in report["findings"]}
    assert {"UNAPPROVED", "NATIVE_NOT_FROM_SOURCE", "NOT_RUN"} <= codes
    assert checks["build.vllm"]["status"] == "inconclusive"
    assert [checks[f"gate.{name}"]["status"] for name in ("vllm", "megatron", "verl")] == ["pass"] * 3


def test_files_are_those_of_the_wheels_and_the_heads(delivered: Run) -> None:
    """Nothing but the origin of vLLM's precompiled native code is open."""
    _, report = delivered.verify("--depth", "files")
    checks = {one["id"]: one["status"] for one in report["checks"]}
    assert [checks[f"files.{name}"] for name in ("tree", "records", "start")] == ["pass"] * 3
    assert checks["files.sources"] == "inconclusive"
    codes = {one["code"] for one in report["findings"] if not one["note"]}
    assert not codes & {"TREE_MISMATCH", "WHEEL_HASH", "UNOWNED_FILE", "SUBMODULE_DRIFT", "RECORD_HASH"}
    generated = [one["actual"] for one in report["findings"] if one["evidence"].get("kind") == "generated"]
    assert generated == [["vllm/_version.py"]]


def observation(run: Run, name: str) -> dict[str, Any]:
    (path,) = (run.work / "runs").glob(f"*/{name}/probe.json")
    data: dict[str, Any] = json.loads(path.read_bytes())
    return data


def test_the_holder_is_the_vllm_worker_with_title_and_ancestors(delivered: Run) -> None:
    holders = [one for one in observation(delivered, "probe_rollout")["holders"] if one["holder"]["holder"]]
    assert {one["title"] for one in holders} == {"VLLM::Worker"}
    assert len({one["pid"] for one in holders}) == 1, "one process holds the model, in every snapshot"
    titles = [one["title"] for one in holders[0]["ancestors"]]
    assert any("VLLM::EngineCor" in title for title in titles), titles


def test_every_mapped_byte_has_an_owner_and_executes_as_hashed(delivered: Run) -> None:
    checks = {one["id"]: one for one in delivered.verify("--depth", "identity")[1]["checks"]}
    for role in ("rollout", "trainer"):
        print(
            f"{role}: {checks[f'probe.{role}.ownership']['reason']}; {checks[f'probe.{role}.executing']['reason']}"
        )
        assert checks[f"probe.{role}.ownership"]["status"] == "pass"
        assert checks[f"probe.{role}.executing"]["status"] == "pass"
    assert checks["probe.attribution.vllm"]["status"] == "pass"
    assert "_C.abi3.so" in checks["probe.attribution.vllm"]["reason"]


def test_jit_kernels_and_their_compiler_are_named(delivered: Run) -> None:
    jit = observation(delivered, "probe_rollout")["jit"]
    kernels = [one for one in jit["artifacts"] if one["path"].endswith(".so")]
    print(f"{len(kernels)} compiled libraries; compilers: {[one['path'] for one in jit['compilers']]}")
    assert kernels
    assert any("g++" in one["path"] for one in jit["compilers"])


def test_a_second_run_is_quick(delivered: Run) -> None:
    before = delivered.receipts()
    delivered_digest = delivered.digest("delivery manifest")
    took = delivered.seconds
    delivered.image()
    again, delivered.seconds = delivered.seconds, took
    print(f"second run: {again:.1f} s")
    assert again < 10
    assert delivered.receipts() == before
    assert delivered.digest("delivery manifest") == delivered_digest


def test_one_flipped_byte_is_a_fail_at_the_default_depth(delivered: Run, tmp_path: Path) -> None:
    copy = tmp_path / "layout"
    shutil.copytree(delivered.work / "layout", copy, copy_function=os.link)
    name = delivered.digest("platform manifest").partition(":")[2]
    layer = json.loads((copy / "blobs/sha256" / name).read_bytes())["layers"][-1]["digest"].partition(":")[2]
    blob = copy / "blobs/sha256" / layer
    data = bytearray(blob.read_bytes())
    data[len(data) // 2] ^= 1
    blob.unlink()
    blob.write_bytes(data)
    code, report = delivered.verify(layout=copy)
    assert code == 1
    assert "BLOB_DIGEST" in {one["code"] for one in report["findings"]}


def test_approval_takes_unapproved_away_and_nothing_else(delivered: Run) -> None:
    argv = [
        sys.executable,
        "-m",
        "tic_manifest",
        "approve",
        str(delivered.recipe),
        "--as",
        "A Person",
        "--work",
        str(delivered.work),
    ]
    subprocess.run(argv, check=True, cwd=ROOT, capture_output=True)
    _, before = delivered.verify("--depth", "identity")
    delivered.image()
    _, after = delivered.verify("--depth", "identity")
    lost = {one["code"] for one in before["findings"]} - {one["code"] for one in after["findings"]}
    assert lost == {"UNAPPROVED"}
