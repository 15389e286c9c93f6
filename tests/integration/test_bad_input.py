"""Bad input: one clear message, the right exit code, nothing half-written, nothing left running."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from mini import RECIPE, ROOT, TOOL, Delivery, image, tool

pytestmark = pytest.mark.engine
TEXT = RECIPE.read_text()
HEAD = "4f2224456231e270af9614801271eed3a85207a6"
BASE = "47828101266282a3b6daa5b43c8544330233b3e1"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param(f"head: {HEAD}", "head: 4f22244", "mini.yaml:17: pull_requests.alpha.head", id="short SHA"),
        pytest.param(f"head: {HEAD}", f"head: {'a' * 64}", "SHA-256 is not supported yet", id="SHA-256"),
        pytest.param("    row: vllm\n", "    rowe: vllm\n", "pull_requests.alpha.rowe: unknown key", id="unknown key"),
        pytest.param("name: mini\n", "name: mini\nname: mini\n", "mini.yaml:4: key 'name' stands twice", id="twice"),
        pytest.param("demo/alpha/pull/1", "demo/alpha/pulls/1", "is not a pull request", id="wrong URL"),
        pytest.param(HEAD, "539f2224456231e270af9614801271eed3a85207", "PIN_UNFETCHABLE", id="no such commit"),
        pytest.param(f"base: {BASE}", f"base: {HEAD}", "BASE_REWRITTEN", id="base is no ancestor of the branch"),
        pytest.param("needs: [policy, rollout_a]", "needs: [nobody]", "names no other worker", id="unknown worker"),
    ],
)  # fmt: skip
def test_a_recipe_that_is_wrong(
    mini_env: dict[str, str], tmp_path: Path, old: str, new: str, words: str
) -> None:
    assert old in TEXT
    recipe = tmp_path / "mini.yaml"
    recipe.write_text(TEXT.replace(old, new, 1))
    ran = tool(mini_env, "lock", str(recipe), "--work", str(tmp_path / "work"))
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert words in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "work" / "lock.json").exists()


def test_no_engine(delivery: Delivery, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(delivery.work / "lock.json", work)
    env = delivery.env | {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    ran = tool(env, "build", "--work", str(work))
    assert ran.returncode == 3
    assert "[ENGINE_MISSING]" in ran.stderr
    assert "scripts/engine up" in ran.stderr
    assert not list((work / "receipts").rglob("build.json"))


def test_less_disk_than_needed_is_refused_before_anything_starts(
    mini_env: dict[str, str], tmp_path: Path
) -> None:
    recipe = tmp_path / "mini.yaml"
    recipe.write_text(TEXT.replace("disk_mib: 1500", f"disk_mib: {1 << 30}"))
    ran = tool(mini_env, "image", str(recipe), "--work", str(tmp_path / "work"))
    assert ran.returncode == 3
    assert "[DISK_FULL]" in ran.stderr
    assert f"expected: {1 << 50} bytes free" in ran.stderr
    assert {path.name for path in (tmp_path / "work").iterdir()} == {"writer"}


def test_a_second_writer_is_told_who_holds_the_folder(delivery: Delivery) -> None:
    with (delivery.work / "writer").open("a+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.truncate(0)
        stream.write(str(os.getpid()))
        stream.flush()
        ran = tool(delivery.env, "build", "--work", str(delivery.work))
    assert ran.returncode == 3
    assert "[WORK_BUSY]" in ran.stderr
    assert f"process {os.getpid()}" in ran.stderr


def with_rollout(delivery: Delivery, tmp_path: Path, code: str, limit: int = 60) -> tuple[Path, Path]:
    """A recipe whose measured rollout runs `code`, and a work folder that has the store already."""
    recipe, work = tmp_path / "mini.yaml", tmp_path / "work"
    head, _, tail = TEXT.partition("  rollout_a:\n")
    body, _, rest = tail.partition("  rollout_repeat:\n")
    lines = [line for line in body.splitlines() if "command:" not in line and "timeout" not in line]
    lines += [f"    command: [/opt/venv/bin/python, -c, {code!r}]", f"    timeout_seconds: {limit}"]
    recipe.write_text(head + "  rollout_a:\n" + "\n".join(lines) + "\n  rollout_repeat:\n" + rest)
    work.mkdir()
    shutil.copytree(delivery.work / "store", work / "store", copy_function=os.link)
    return recipe, work


@pytest.mark.parametrize(
    ("code", "limit", "words"),
    [
        pytest.param("import os; print(1111, flush=True); os.kill(os.getpid(), 11)", 60, ["signal 11", "1111"], id="dies"),
        pytest.param("import time; print(2222, flush=True); time.sleep(600)", 3, ["the time limit", "2222"], id="hangs"),
        pytest.param("print(3333)", 60, ["record.json in its output folder", "exit code 0", "3333"], id="empty output"),
    ],
)  # fmt: skip
def test_a_worker_that_ends_without_its_output(
    delivery: Delivery, tmp_path: Path, code: str, limit: int, words: list[str]
) -> None:
    recipe, work = with_rollout(delivery, tmp_path, code, limit)
    ran = tool(delivery.env, "image", str(recipe), "--work", str(work))
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert "[WORKER_EXIT]" in ran.stderr
    for one in words:
        assert one in ran.stderr
    done = {path.stem for path in (work / "receipts").rglob("*.json")}
    assert done == {"gate", "build", "probe"}


def test_interrupt_ends_containers_and_keeps_finished_stages(delivery: Delivery, tmp_path: Path) -> None:
    recipe, work = with_rollout(delivery, tmp_path, "import time; time.sleep(600)", 500)
    running = subprocess.Popen(
        [*TOOL, "image", str(recipe), "--work", str(work)], env=delivery.env, cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, preexec_fn=heed_interrupts,
    )  # fmt: skip
    until = time.monotonic() + 240
    while time.monotonic() < until and not containers(delivery, work):
        time.sleep(0.5)
    try:
        assert containers(delivery, work)
        os.killpg(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=60)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
    assert running.returncode == 130, said
    assert "interrupted; finished stages are kept" in said
    assert not containers(delivery, work)
    assert {path.stem for path in (work / "receipts").rglob("*.json")} >= {"gate", "build", "probe"}


def heed_interrupts() -> None:
    """A test run in the background of a shell ignores SIGINT, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def containers(delivery: Delivery, work: Path) -> list[str]:
    """Running containers of the measured rollout of this work folder's delivery."""
    ids = [path.read_text().strip() for path in (work / "receipts").rglob("run-id")]
    found = []
    for one in ids if list((work / "receipts").rglob("probe.json")) else []:
        argv = ["docker", "ps", "-q", "--filter", f"label=org.tic-manifest.run={one}"]
        ran = subprocess.run(argv, env=delivery.env, capture_output=True, text=True, check=True)
        found += ran.stdout.split()
    return found


def test_files_stay_deletable_and_clean_says_what_it_frees(delivery: Delivery, tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(delivery.work, work, copy_function=os.link)
    ran = tool(delivery.env, "clean", "--work", str(work))
    assert ran.returncode == 0
    assert "runs: freed " in ran.stdout
    assert (work / "layout").is_dir()
    ran = tool(delivery.env, "clean", "--all", "--work", str(work))
    assert "store: freed " in ran.stdout
    assert {path.name for path in work.iterdir()} == {"writer"}


def test_the_image_is_made_again_after_clean(delivery: Delivery, tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(delivery.work, work, copy_function=os.link)
    tool(delivery.env, "clean", "--work", str(work))
    again = image(delivery.env, delivery.recipe, work)
    assert again.digest("platform manifest") == delivery.digest("platform manifest")
