"""`make image` on the mini recipe, for real: engine, forge, build, probe, validation, delivery, verification."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from mini import RECIPE, ROOT, STAGES, TOOL, Delivery, codes, image, tool, verify

pytestmark = pytest.mark.engine
HIDDEN = 32
"""Values of one token in the mini policy (images/workers/mini/policy.py)."""


def test_it_prints_gate_first_then_rows_digests_and_verdict(delivery: Delivery) -> None:
    order = ["gate:", "vLLM PR", "Megatron PR", "verl PR", "Unified image", "Approved recipe", "Final validation",
             "\nplatform manifest digest: sha256:", "image: inconclusive"]  # fmt: skip
    places = [delivery.out.index(words) for words in order]
    assert places == sorted(places)
    heads = re.findall(r"head commit: ([0-9a-f]{40})$", delivery.out, re.M)
    assert heads == re.findall(r"head: ([0-9a-f]{40})", RECIPE.read_text())


def test_the_verdict_is_what_follows_from_the_evidence(delivery: Delivery) -> None:
    code, report = verify(delivery)
    assert (code, report["outcome"], report["exitCode"]) == (3, "inconclusive", 3)
    assert {"UNAPPROVED", "NOT_RUN"} <= codes(report)
    checks = {one["id"]: one["status"] for one in report["checks"]}
    measured = ["rollout_repeat", "packing_reversed", "regrouped", "old_logprob", "actor_forward"]
    assert [checks[f"validation.{one}"] for one in measured] == ["pass"] * 5
    assert checks["status.theta0_2"] == checks["build.reproducible"] == "not_run"
    assert [checks[f"gate.{one}"] for one in ("alpha", "beta", "gamma")] == ["pass"] * 3


def test_files_are_those_of_the_wheels_and_the_heads(delivery: Delivery) -> None:
    code, report = verify(delivery, "--depth", "files")
    rows = {one["id"]: one["status"] for one in report["checks"] if one["id"].startswith("files.")}
    assert rows == dict.fromkeys(("files.tree", "files.records", "files.start", "files.sources"), "pass")
    kinds = Counter(one["evidence"]["kind"] for one in report["findings"] if one["code"] == "NOT_IN_TREE")
    assert kinds == {"metadata": 3, "compiled": 3}
    traced = next(one["evidence"] for one in report["findings"] if one["code"] == "NATIVE_TRACED")
    assert (traced["builtFiles"], traced["builtWheels"]) == (3, 3)
    assert (code, report["notRead"]) == (3, [])


def test_no_address_of_this_machine_is_in_lock_or_evidence(delivery: Delivery) -> None:
    raw = (delivery.work / "lock.json").read_bytes()
    raw += b"".join(path.read_bytes() for path in (delivery.work / "receipts").rglob("*.json"))
    assert b"127.0.0.1" not in raw
    assert b"localhost" not in raw
    assert str(delivery.work).encode() not in (delivery.work / "lock.json").read_bytes()


def test_a_second_run_does_nothing_and_is_quick(delivery: Delivery) -> None:
    before, start = delivery.receipts(), time.monotonic()
    again = image(delivery.env, delivery.recipe, delivery.work)
    took = time.monotonic() - start
    assert again.digest("delivery manifest") == delivery.digest("delivery manifest")
    assert delivery.receipts() == before
    assert took < 10, f"{took:.1f} s"


@pytest.mark.parametrize("place", [0, 0.5, 0.999])
def test_one_flipped_byte_of_any_layer_is_seen_at_the_default_depth(
    delivery: Delivery, tmp_path: Path, place: float
) -> None:
    document = delivery.digest("platform manifest").partition(":")[2]
    blobs = delivery.work / "layout/blobs/sha256"
    for number, layer in enumerate(json.loads((blobs / document).read_bytes())["layers"]):
        copy = tmp_path / str(number)
        shutil.copytree(delivery.work / "layout", copy, copy_function=os.link)
        blob = copy / "blobs/sha256" / layer["digest"].partition(":")[2]
        data = bytearray(blob.read_bytes())
        data[int(place * len(data))] ^= 1
        blob.unlink()
        blob.write_bytes(data)
        code, report = verify(delivery, reference=f"oci:{copy}@{delivery.digest('platform manifest')}")
        assert code == 1
        assert "BLOB_DIGEST" in codes(report)


def test_peers_accept_the_layout(delivery: Delivery) -> None:
    layout, digest = delivery.work / "layout", delivery.digest("platform manifest")
    seen = subprocess.run(
        ["skopeo", "inspect", "--raw", f"oci:{layout}:{_tag(layout)}"], check=True, capture_output=True
    )
    assert json.loads(seen.stdout)["schemaVersion"] == 2
    ran = subprocess.run(
        ["docker", "run", "--rm", "--network", "none", digest, "/opt/venv/bin/python", "-c", "import tic_mini_alpha; print('ok')"],
        check=True, capture_output=True, text=True, env=delivery.env,
    )  # fmt: skip
    assert ran.stdout == "ok\n"


def _tag(layout: Path) -> str:
    entries = json.loads((layout / "index.json").read_bytes())["manifests"]
    names = [one.get("annotations", {}).get("org.opencontainers.image.ref.name", "") for one in entries]
    return next(name for name in names if name and not name.startswith("sha256-"))


def test_approval_supersedes_and_changes_nothing_else(delivery: Delivery, tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(delivery.work, work, copy_function=os.link)
    recipe = Path(shutil.copy(delivery.recipe, tmp_path / "mini.yaml"))
    said = tool(delivery.env, "approve", str(recipe), "--as", "A Person", "--work", str(work))
    assert said.returncode == 0, said.stderr
    approved = image(delivery.env, recipe, work)
    assert approved.digest("platform manifest") == delivery.digest("platform manifest")
    assert approved.digest("delivery manifest") != delivery.digest("delivery manifest")
    code, report = verify(approved)
    assert code == 3
    assert "UNAPPROVED" not in codes(report)
    assert "NOT_RUN" in codes(report)


def test_after_lock_no_network_is_needed(delivery: Delivery, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(delivery.work / "lock.json", work)
    shutil.copytree(delivery.work / "store", work / "store", copy_function=os.link)
    alone = ["unshare", "-n", *TOOL]
    for stage in (["build"], ["probe"], ["validate"], ["assemble"]):
        ran = subprocess.run(
            [*alone, *stage, "--work", str(work)], env=delivery.env, capture_output=True, text=True, cwd=ROOT
        )
        assert ran.returncode in {0, 3}, f"{stage}: {ran.stdout}{ran.stderr}"
        assert ran.returncode == 0 or "NETWORK" not in ran.stdout + ran.stderr
    reference = f"oci:{work / 'layout'}@{delivery.digest('platform manifest')}"
    seen = subprocess.run(
        [*alone, "verify", reference, "--offline", "--output", "json"],
        env=delivery.env,
        capture_output=True,
        text=True,
    )
    assert seen.returncode == 3
    assert json.loads(seen.stdout)["outcome"] == "inconclusive"


def test_two_builds_from_scratch_give_the_same_platform_manifest(delivery: Delivery, tmp_path: Path) -> None:
    """Other folder, time zone, umask and engine data root; empty store; no cache."""
    root = tmp_path / "e"
    env = {key: value for key, value in delivery.env.items() if key != "DOCKER_HOST"}
    env |= {"TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "77", "TIC_ENGINE_ROOT": str(root)}
    if len(str(root)) > 60:
        root = Path("/var/tmp") / f"tic-{os.getpid()}"
        env["TIC_ENGINE_ROOT"] = str(root)
    try:
        subprocess.run([ROOT / "scripts/engine", "up"], check=True, capture_output=True, env=env)
        said = subprocess.run(
            [ROOT / "scripts/engine", "env"], check=True, capture_output=True, text=True, env=env
        ).stdout
        found = re.search(r"DOCKER_HOST=(\S+)", said)
        assert found
        env["DOCKER_HOST"] = found[1].strip("'\"")
        work = tmp_path / "elsewhere" / "deeper"
        for argv in (["lock", str(delivery.recipe)], ["build", "--no-cache"]):
            ran = subprocess.run(
                [*TOOL, *argv, "--work", str(work)],
                env=env,
                capture_output=True,
                text=True,
                cwd=ROOT,
                umask=0o077,
            )
            assert ran.returncode == 0, ran.stdout + ran.stderr
        assert f"lock digest: {delivery.digest('lock')}" in ran.stdout
        assert f"platform manifest digest: {delivery.digest('platform manifest')}" in ran.stdout
    finally:
        subprocess.run([ROOT / "scripts/engine", "purge"], capture_output=True, env=env, check=False)


@pytest.mark.parametrize("seed", range(12))
def test_kill_anywhere_and_the_same_command_ends_with_the_same_digest(
    delivery: Delivery, tmp_path: Path, seed: int
) -> None:
    """Three seeded moments in each of four stages; no finished stage is done again."""
    work, stage = tmp_path / "work", STAGES[seed % 4]
    later = STAGES[STAGES.index(stage) :]
    shutil.copytree(delivery.work, work, copy_function=os.link)
    folder = work / "receipts" / delivery.digest("lock")
    for name in later:
        (folder / f"{name}.json").unlink(missing_ok=True)
    if stage in {"gate", "build"}:
        shutil.rmtree(work / "layout", ignore_errors=True)
    running = subprocess.Popen(
        [*TOOL, "image", str(delivery.recipe), "--work", str(work)], env=delivery.env, cwd=ROOT,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    time.sleep(random.Random(seed).uniform(0.3, 6.0))
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    done = {path.stem: path.stat().st_ino for path in folder.glob("*.json")}
    again = image(delivery.env, delivery.recipe, work)
    assert again.digest("platform manifest") == delivery.digest("platform manifest")
    for name, inode in done.items():
        assert (folder / f"{name}.json").stat().st_ino == inode, f"{name} was done again"
    assert verify(again)[0] == 3


def test_one_weight_moved_by_one_ulp_changes_the_count(delivery: Delivery, tmp_path: Path) -> None:
    """The trainer runs again with one weight nudged; the figures say so, and so does the finding."""
    index = weight_that_matters(delivery, tmp_path)
    text = delivery.recipe.read_text()
    plain = "--tokens, /in/rollout_a/tokens.json, --out, /out]"
    assert plain in text
    recipe = tmp_path / "mini.yaml"
    recipe.write_text(
        text.replace(plain, f"--tokens, /in/rollout_a/tokens.json, --nudge, '{index}', --out, /out]")
    )
    work = tmp_path / "work"
    work.mkdir()
    shutil.copytree(delivery.work / "store", work / "store", copy_function=os.link)
    made = image(delivery.env, recipe, work)
    _, report = verify(made)
    said = [one for one in report["findings"] if one["code"] == "PARITY_MISMATCH"]
    assert {one["subject"] for one in said} == {"validation.old_logprob", "validation.actor_forward"}
    assert all(0 < one["actual"]["mismatches"] <= one["actual"]["validTokens"] for one in said)
    assert "INTERVENTION" in codes(report)


def weight_that_matters(delivery: Delivery, tmp_path: Path) -> int:
    """The first weight of the commonest token whose last place shows in a score: most are rounded away."""
    (runs,) = (delivery.work / "runs").iterdir()
    requests = json.loads((runs / "rollout_a/tokens.json").read_bytes())["requests"]
    seen = Counter(token for one in requests for token in one["prompt"][-1:] + one["completion"][:-1])
    first = seen.most_common(1)[0][0] * HIDDEN
    wanted = (runs / "trainer/scores_nograd.bin").read_bytes()
    for index in range(first, first + HIDDEN):
        out = tmp_path / f"nudged-{index}"
        out.mkdir()
        mounts = [f"{runs / 'policy'}:/in/policy:ro", f"{runs / 'rollout_a'}:/in/rollout_a:ro", f"{out}:/out"]
        program = ["/opt/venv/bin/python", "/opt/tic/workers/mini/trainer.py", "--policy", "/in/policy", "--tokens",
                   "/in/rollout_a/tokens.json", "--nudge", str(index), "--out", "/out"]  # fmt: skip
        volumes = [word for mount in mounts for word in ("-v", mount)]
        argv = [
            "docker",
            "run",
            "--rm",
            "--network",
            "none",
            *volumes,
            delivery.digest("platform manifest"),
            *program,
        ]
        subprocess.run(argv, check=True, capture_output=True, env=delivery.env)
        if (out / "scores_nograd.bin").read_bytes() != wanted:
            return index
    raise AssertionError("no weight of the commonest token shows in a score")
