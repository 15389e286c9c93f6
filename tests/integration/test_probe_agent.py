"""The agent against real processes: trees, titles, deaths, files that change under a process, secrets."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.probe import ProbeReport
from tic_manifest.rules.probe import judge_observation

ROOT = Path(__file__).resolve().parents[2]
AGENT = ROOT / "images" / "agent" / "probe_agent.py"
PRELUDE = f"""
import ctypes, importlib.util, mmap, os, signal, subprocess, sys, time
spec = importlib.util.spec_from_file_location("agent", {str(AGENT)!r})
agent = importlib.util.module_from_spec(spec); sys.modules["agent"] = agent; spec.loader.exec_module(agent)
out = os.environ["TIC_PROBE_OUT"]
def title(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
def hold(path):
    data = open(path, "rb").read()
    return bytearray(data)
def ready(label="ready"):
    agent.inside_snapshot(out, label)
    assert agent.wait_at_mark(out, "ready", 120)
"""
Report = dict[str, Any]


def observe(folder: Path, body: str, *options: str, env: dict[str, str] | None = None) -> Report:
    """Run a worker under the agent; the agent itself always ends with 0."""
    script = folder / "worker.py"
    script.write_text(PRELUDE + textwrap.dedent(body))
    out = folder / "out"
    command = [
        sys.executable,
        "-I",
        str(AGENT),
        "run",
        "--role",
        "trainer",
        "--out",
        str(out),
        "--timeout",
        "100",
    ]
    command += [*options, "--", sys.executable, str(script), str(folder)]
    done = subprocess.run(
        command, env=os.environ | (env or {}), capture_output=True, text=True, timeout=150, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    raw = (out / "probe.json").read_bytes()
    judge_observation(
        read_model(raw, ProbeReport, "probe.json")
    )  # whatever happened, the reader knows its shape
    return dict(json.loads(raw))


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """Two megabytes that no process holds by accident."""
    path = tmp_path / "policy.bin"
    path.write_bytes(random.Random(7).randbytes(2_000_000))
    return path


def build(folder: Path, name: str, source: str, *flags: str) -> Path:
    """A shared library made by gcc."""
    (folder / f"{name}.c").write_text(source)
    path = folder / f"{name}.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", path, folder / f"{name}.c", *flags], check=True)
    return path


def mapped(report: Report, name: str, snapshot: int = 0) -> dict[str, Any]:
    """Row of a mapped file, with the file's own row under `row`."""
    for process in report["snapshots"][snapshot]["processes"]:
        for row in process["mapped"]:
            if report["files"][row["file"]]["path"].endswith(name):
                return dict(row, row=report["files"][row["file"]])
    raise AssertionError(f"{name} is not mapped")


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


CODE = "int answer(void) { return %d; }\nint other(int x) { return x * 3 + answer(); }\n"


def test_code_that_is_executed_is_compared_with_the_file(tmp_path: Path) -> None:
    build(tmp_path, "plain", CODE % 1)
    build(tmp_path, "patched", CODE % 2)
    build(tmp_path, "replaced", CODE % 3)
    build(tmp_path, "replaced_new", CODE % 4)
    build(tmp_path, "really (deleted)", CODE % 5)
    report = observe(
        tmp_path,
        """
        here = sys.argv[1]
        libs = {n: ctypes.CDLL(f"{here}/{n}.so") for n in ("plain", "patched", "replaced", "really (deleted)")}
        address = ctypes.cast(libs["patched"].answer, ctypes.c_void_p).value
        c = ctypes.CDLL(None); page = address & ~4095
        assert c.mprotect(ctypes.c_void_p(page), 4096, 7) == 0
        ctypes.memset(address, 0xCC, 1)
        os.rename(f"{here}/replaced_new.so", f"{here}/replaced.so")
        ready()
        """,
    )
    assert mapped(report, "/plain.so")["executing"]["verdict"] == "same"
    assert mapped(report, "/patched.so")["executing"]["verdict"] == "differs"
    replaced = mapped(report, "/replaced.so")
    assert (replaced["identity"], replaced["row"]["deleted"]) == ("deleted", True)
    assert replaced["executing"]["verdict"] in ("same", "unverifiable")
    real = mapped(report, "/really (deleted).so")
    assert (real["identity"], real["row"]["deleted"]) == ("same", False)


def test_a_name_that_ends_in_deleted_and_one_with_a_newline(tmp_path: Path) -> None:
    plain = build(tmp_path, "x", CODE % 1)
    odd = [tmp_path / "libz.so (deleted)", tmp_path / "new\nline.so", tmp_path / "sp ace.so"]
    for path in odd:
        path.write_bytes(plain.read_bytes())
    report = observe(
        tmp_path,
        """
        for n in ("libz.so (deleted)", "new\\nline.so", "sp ace.so"):
            ctypes.CDLL(sys.argv[1] + "/" + n)
        ready()
        """,
    )
    for path in odd:
        row = mapped(report, "/" + path.name)
        assert (row["identity"], row["row"]["deleted"], row["executing"]["verdict"]) == (
            "same",
            False,
            "same",
        )


def test_the_build_id_comes_from_the_kernel_and_agrees(tmp_path: Path) -> None:
    build(tmp_path, "plain", CODE % 1, "-Wl,--build-id=sha1")
    row = mapped(observe(tmp_path, 'ctypes.CDLL(sys.argv[1] + "/plain.so"); ready()'), "/plain.so")
    if row["kernel"]["build_id"] is None:
        pytest.skip(f"PROCMAP_QUERY does not answer here: {row['kernel']['reason']}")
    assert row["kernel"]["build_id"] == row["row"]["elf"]["build_id"]


def test_a_preloaded_library_stays_visible_after_its_variable_is_gone(tmp_path: Path) -> None:
    library = build(tmp_path, "pre", CODE % 9)
    report = observe(
        tmp_path,
        'os.environ.pop("LD_PRELOAD"); ready()',
        env={"LD_PRELOAD": str(library), "SOME_API_TOKEN": "hunter2", "UNKNOWN": "hunter3"},
    )
    process = report["snapshots"][0]["processes"][0]
    values = {e["name"]: e.get("value") for e in process["environ"]}
    assert values["LD_PRELOAD"] == str(library)
    assert "LD_PRELOAD" not in {e["name"] for e in report["inside"][0]["environ"]}
    assert mapped(report, "/pre.so")["executing"]["verdict"] == "same"
    assert "hunter" not in (tmp_path / "out" / "probe.json").read_text()


def test_an_import_error_is_found_though_no_line_was_logged(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "demo").mkdir(parents=True)
    gone = build(tmp_path, "libgone", CODE % 1, "-Wl,-soname,libgone.so.1")
    extension = build(
        tmp_path,
        "ext",
        "int answer(void); int use(void) { return answer(); }",
        f"-L{tmp_path}",
        "-l:libgone.so",
    )
    extension.rename(site / "demo" / "_C.abi3.so")
    gone.unlink()
    (site / "demo" / "__init__.py").write_text("from demo import platform\n")
    (site / "demo" / "platform.py").write_text(
        "def kernels():\n    try:\n        import demo._C\n    except ImportError:\n        pass\nkernels()\n"
    )
    info = site / "demo-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: demo\nVersion: 1.0\n")
    (info / "RECORD").write_text("demo/__init__.py,,\ndemo/platform.py,,\ndemo/_C.abi3.so,,\n")
    report = observe(tmp_path, "sys.path.insert(0, sys.argv[1] + '/site'); import demo; ready()")
    (found,) = [b for b in report["imports"][0]["broken"] if b["module"] == "demo._C"]
    assert found["missing"] == [{"library": "libgone.so.1", "needed_by": str(site / "demo" / "_C.abi3.so")}]
    assert (found["importer"], found["line"], found["where"]) == ("demo.platform", 3, "function")
    assert report["imports"][0]["unloadable"][0]["tried"] is True
    assert report["worker"]["stderr"]["tail"] == []


def test_an_edited_module_differs_from_its_record(tmp_path: Path) -> None:
    import base64
    import hashlib

    site = tmp_path / "site"
    info = site / "demo-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: demo\nVersion: 1.0\n")
    recorded = base64.urlsafe_b64encode(hashlib.sha256(b"x = 1\n").digest()).rstrip(b"=").decode()
    (info / "RECORD").write_text(f"demo.py,sha256={recorded},6\nsame.py,sha256={recorded},6\n")
    (site / "demo.py").write_text("x = 2\n")
    (site / "same.py").write_text("x = 1\n")
    (site / "extra.py").write_text("x = 1\n")
    (site / "zz_dev.pth").write_text("import sys\n/somewhere\n")
    report = observe(tmp_path, "sys.path.insert(0, sys.argv[1] + '/site'); import demo, same, extra; ready()")
    rows = {m["name"]: m for m in report["inside"][0]["modules"]}
    assert [o["record"] for o in rows["demo"]["owners"]] == ["differs"]
    assert [o["record"] for o in rows["same"]["owners"]] == ["match"]
    assert rows["extra"]["owners"] == []
    (pth,) = [p for p in report["pth"] if p["path"].endswith("zz_dev.pth")]
    assert (pth["code_lines"], pth["added_paths"], pth["owners"]) == (["import sys"], ["/somewhere"], [])


def test_what_is_mapped_after_the_mark_is_reported_too(tmp_path: Path) -> None:
    build(tmp_path, "late", CODE % 1)
    report = observe(tmp_path, 'ready(); ctypes.CDLL(sys.argv[1] + "/late.so"); time.sleep(4.5)')
    (late,) = [r for r in report["appeared"] if report["files"][r["file"]]["path"].endswith("/late.so")]
    assert report["files"][late["file"]]["sha256"]
    assert late["seconds"] > report["worker"]["marks"]["ready"]


def test_two_marks_give_two_snapshots(tmp_path: Path) -> None:
    build(tmp_path, "late", CODE % 1)
    report = observe(
        tmp_path,
        """
        ready()
        ctypes.CDLL(sys.argv[1] + "/late.so")
        import colorsys
        agent.inside_snapshot(out, "end")
        assert agent.wait_at_mark(out, "done", 60)
        """,
    )
    assert [s["label"] for s in report["snapshots"]] == ["ready", "done"]
    assert mapped(report, "/late.so", 1)["executing"]["verdict"] == "same"
    assert [v["label"] for v in report["inside"]] == ["ready", "end"]
    assert "colorsys" in report["inside"][1]["modules_appeared"]


def test_objects_that_were_unloaded_are_counted(tmp_path: Path) -> None:
    build(tmp_path, "brief", CODE % 1)
    report = observe(
        tmp_path,
        """
        import _ctypes
        lib = ctypes.CDLL(sys.argv[1] + "/brief.so"); _ctypes.dlclose(lib._handle)
        ready()
        """,
    )
    ledger = report["inside"][0]["link_map"]
    assert ledger["subs"] >= 1 and ledger["adds"] - ledger["subs"] == ledger["count"]


def test_sixty_thousand_maps_are_read_in_bounded_time(tmp_path: Path) -> None:
    report = observe(
        tmp_path,
        """
        f = open(sys.argv[1] + "/worker.py", "rb")
        kept = []
        for i in range(60000):
            prot = mmap.PROT_READ if i % 2 else mmap.PROT_READ | mmap.PROT_WRITE
            kept.append(mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot))
        ready()
        """,
    )
    process = report["snapshots"][0]["processes"][0]
    assert process["maps"]["lines"] > 50_000 and process["maps"]["malformed"] == 0
    assert report["snapshots"][0]["took"] < 30


def test_a_broken_inside_view_is_a_note(tmp_path: Path) -> None:
    report = observe(
        tmp_path,
        """
        open(out + "/inside-evil-1.json", "w").write('{"schema": "tic/probe-agent/v1", "modules": 3}')
        open(out + "/inside-evil-2.json", "w").write("[" * 100000)
        os.mkfifo(out + "/inside-evil-3.json")
        ready()
        """,
    )
    assert len(report["notes"]) == 3
    assert [v["label"] for v in report["inside"]] == ["ready"]


def test_hostile_modules_are_not_asked(tmp_path: Path) -> None:
    report = observe(
        tmp_path,
        """
        import types
        class Lazy(types.ModuleType):
            def __getattr__(self, name):
                os._exit(99)
        sys.modules["lazy"] = Lazy("lazy")
        class Liar:
            @property
            def __class__(self):
                raise RuntimeError("asked")
            def __getattr__(self, name):
                raise SystemExit(98)
        sys.modules["liar"] = Liar()
        sys.modules["nothing"] = None
        fake = types.ModuleType("fake"); fake.__file__ = "/no/such/file.py"; sys.modules["fake"] = fake
        class Hook:
            def find_spec(self, *args):
                raise RuntimeError("hook")
        sys.meta_path.insert(0, Hook())
        ready()
        """,
    )
    rows = {m["name"]: m for m in report["inside"][0]["modules"]}
    assert {"lazy", "liar", "nothing"} <= set(rows)
    assert (rows["fake"]["on_disk"], rows["fake"]["owners"]) == (False, [])
    assert "sys" not in report["inside"][0]["agent_effect"]["modules_loaded"]
    assert "__main__.Hook" in report["inside"][0]["python"]["meta_path"]


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
