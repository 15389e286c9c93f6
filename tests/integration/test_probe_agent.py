"""The agent against real processes: trees, titles, deaths, namespaces, forged views."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from watched import AGENT, CODE, build, mapped, observe


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """Two megabytes that no process holds by accident."""
    path = tmp_path / "policy.bin"
    path.write_bytes(random.Random(7).randbytes(2_000_000))
    return path


def test_the_holder_is_who_holds_the_bytes_whatever_the_titles(tmp_path: Path, policy: Path) -> None:
    report = observe(
        tmp_path,
        """
        if os.fork() == 0:                       # a decoy that has the title and maps the checkpoint
            title("VLLM::Worker")
            f = open(sys.argv[1] + "/policy.bin", "rb")
            view = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
            junk = os.urandom(8 << 20)
            signal.pause()
        if os.fork() == 0:
            if os.fork() == 0:                   # the holder: a grandchild that calls itself something else
                weights = hold(sys.argv[1] + "/policy.bin")
                title("bash")
                ready("held")
                os._exit(0)
            os.wait()
            os.killpg(0, signal.SIGKILL)
        os.wait()
        """,
        "--policy",
        str(policy),
    )
    (holder,) = report["holders"]
    assert (holder["title"], holder["by"], holder["snapshot"]) == ("bash", "memory", "ready")
    assert holder["holder"]["found"] * 2 >= holder["holder"]["samples"] == 16
    assert [a["pid"] for a in holder["ancestors"]][1] == report["worker"]["pid"]
    decoy = next(p for p in report["snapshots"][0]["processes"] if p["title"] == "VLLM::Worker")
    assert (decoy["holder"]["holder"], decoy["holder"]["maps_checkpoint"]) == (False, True)


def test_without_a_policy_nobody_is_called_holder_by_its_title(tmp_path: Path) -> None:
    report = observe(tmp_path, 'title("VLLM::Worker")\nready()')
    assert report["holders"] == []
    assert report["ownership"]["scope"] == "all processes"


@pytest.mark.parametrize(
    ("body", "outcome", "code", "signal"),
    [
        ("print('last words'); sys.stdout.flush(); os.kill(os.getpid(), 11)", "signaled", None, "SIGSEGV"),
        ("print('last words'); sys.exit(7)", "exited", 7, None),
        ("print('last words', flush=True); time.sleep(60)", "ready_timeout", None, "SIGTERM"),
        (
            "signal.signal(15, signal.SIG_IGN); print('last words', flush=True); time.sleep(60)",
            "ready_timeout",
            None,
            "SIGKILL",
        ),
    ],
)
def test_a_worker_that_dies_or_hangs_is_an_observation(
    tmp_path: Path, body: str, outcome: str, code: int | None, signal: str | None
) -> None:
    report = observe(tmp_path, body, "--ready-timeout", "3")
    worker = report["worker"]
    assert (worker["outcome"], worker["ready"]) == (outcome, False)
    assert (worker["exit"]["code"], worker["exit"]["signal"]) == (code, signal)
    assert worker["stdout"]["tail"] == ["last words"]
    assert report["snapshots"][0]["label"] == "last_seen"
    assert report["snapshots"][0]["processes"][0]["argv"][0] == sys.executable


def test_a_worker_that_cannot_start_is_an_observation(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [
        sys.executable,
        AGENT,
        "run",
        "--role",
        "r",
        "--out",
        out,
        "--",
        "/no/such/program",
        "--timeout",
        "x",
    ]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
    worker = json.loads((out / "probe.json").read_text())["worker"]
    assert worker["outcome"] == "start_failed" and "FileNotFoundError" in worker["error"]
    assert worker["argv"] == ["/no/such/program", "--timeout", "x"]


def test_output_is_kept_bounded_with_its_last_lines(tmp_path: Path) -> None:
    report = observe(tmp_path, "for i in range(5000): print('line', i)\nsys.stderr.write('x' * 100000)")
    assert report["worker"]["stdout"]["tail"][-1] == "line 4999"
    assert (report["worker"]["stdout"]["lines"], len(report["worker"]["stdout"]["tail"])) == (5000, 200)
    assert len(report["worker"]["stderr"]["tail"][0]) == 2000
    assert (tmp_path / "out" / "stderr.log").stat().st_size == 100000


def test_a_daemon_is_followed_and_one_left_behind_is_ended(tmp_path: Path) -> None:
    report = observe(
        tmp_path,
        """
        if os.fork():
            os._exit(0)                          # the starter leaves at once
        os.setsid()
        if os.fork():
            os._exit(0)
        title("daemon")
        ready()
        signal.signal(signal.SIGTERM, lambda *_: os._exit(5))
        time.sleep(90)
        """,
    )
    worker = report["worker"]
    assert (worker["outcome"], worker["exit"]["code"], worker["ready"]) == ("exited", 0, True)
    assert len(worker["left_behind"]) == 1
    assert worker["adopted"][-1]["code"] == 5
    assert report["snapshots"][0]["processes"][0]["title"] == "daemon"


def test_a_killed_helper_is_recorded_with_its_signal(tmp_path: Path) -> None:
    report = observe(
        tmp_path,
        """
        if os.fork() == 0:
            if os.fork() == 0:
                time.sleep(0.5)
                os.kill(os.getpid(), 9)
            os._exit(0)
        os.wait()
        time.sleep(1.0)
        """,
    )
    assert [a["signal"] for a in report["worker"]["adopted"]] == ["SIGKILL"]


def test_an_interrupted_agent_ends_its_tree_and_still_writes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, str(AGENT), "run", "--role", "r", "--out", str(out), "--", "sleep", "61.25"]
    agent = subprocess.Popen(command)
    while not (out / "stdout.log").exists():
        time.sleep(0.05)
    time.sleep(0.3)
    agent.terminate()
    assert agent.wait(30) == 0
    worker = json.loads((out / "probe.json").read_text())["worker"]
    assert (worker["outcome"], worker["exit"]["signal"]) == ("interrupted", "SIGTERM")


def test_a_snapshot_of_a_running_process(tmp_path: Path, policy: Path) -> None:
    script = f"data = bytearray(open({str(policy)!r}, 'rb').read()); print('up', flush=True); import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        command = [sys.executable, AGENT, "--pid", str(process.pid), "--policy", policy]
        done = subprocess.run(command, capture_output=True, check=True)
        process.kill()
    report = json.loads(done.stdout)
    assert [h["pid"] for h in report["holders"]] == [process.pid]
    assert report["mode"] == "snapshot"


def test_a_process_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, AGENT, "--pid", "4194304"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "probe_agent: ProcessLookupError: no process 4194304\n"


def test_a_process_in_other_namespaces_is_read_through_its_own_root(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root for a mount namespace")
    site, cover = tmp_path / "site", tmp_path / "cover"
    for folder, value in ((site, 1), (cover, 2)):
        folder.mkdir()
        build(folder, "lib", CODE % value)
    body = f"import ctypes, time; ctypes.CDLL('{site}/lib.so'); print('up', flush=True); time.sleep(60)"
    inner = f'mount --bind {cover} {site} && exec {sys.executable} -c "{body}"'
    with subprocess.Popen(
        ["unshare", "-m", "-p", "-f", "sh", "-c", inner], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        done = subprocess.run(
            [sys.executable, AGENT, "--pid", str(process.pid)], capture_output=True, check=True
        )
        report = json.loads(done.stdout)
        child = report["snapshots"][0]["processes"][-1]
        os.kill(child["pid"], 9)
    row = mapped(report, "/lib.so")
    agent_hash = subprocess.run(
        ["sha256sum", cover / "lib.so"], capture_output=True, text=True, check=True
    ).stdout[:64]
    assert (row["executing"]["verdict"], row["row"]["sha256"]) == ("same", agent_hash)
    assert child["status"]["ns_pids"][-1] == 1
    (mount,) = [m for m in report["mounts"] if m["mount_point"] == str(site)]
    assert mount["covers"] >= 1


def test_what_an_earlier_run_left_is_no_evidence(tmp_path: Path) -> None:
    observe(tmp_path, "ready('first')")
    report = observe(tmp_path, "sys.exit(3)")
    assert (report["inside"], report["worker"]["ready"], report["snapshots"][0]["label"]) == (
        [],
        False,
        "last_seen",
    )


def test_a_worker_that_forges_its_view_cannot_break_the_agent(tmp_path: Path) -> None:
    report = observe(
        tmp_path,
        """
        import json
        ready()
        view = json.load(open(f"{out}/inside-ready-{os.getpid()}.json"))
        forged = {"start_ticks": [1], "parameters": [], "jit": 3, "link_map": None, "modules": [{"name": 3}], "pid": "x"}
        for i, (key, value) in enumerate(forged.items()):
            json.dump({**view, key: value}, open(f"{out}/inside-forged{i}-1.json", "w"))
        """,
    )
    assert len(report["notes"]) == 6
    assert [v["label"] for v in report["inside"]] == ["ready"]
