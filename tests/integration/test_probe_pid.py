"""`tic-manifest probe --pid` against real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from watched import AGENT, PRELUDE


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["/bin/sleep", "600"]) as child:
        yield child
        child.kill()


def probe(*argv: str, cwd: Path | None = None) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "tic_manifest", "probe", *argv, "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, check=False)
    return done.returncode, json.loads(done.stdout)


def snapshot(pid: int) -> dict[str, Any]:
    command = ["/usr/bin/python3", "-I", str(AGENT), "--pid", str(pid)]
    return dict(json.loads(subprocess.run(command, capture_output=True, timeout=60, check=True).stdout))


def rows(report: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {row["id"].rpartition(".")[2]: (row["status"], row["state"]) for row in report["checks"]}


def test_a_program_of_the_system_passes_and_says_what_is_out_of_scope(
    sleeper: subprocess.Popen[bytes],
) -> None:
    status, report = probe(f"--pid={sleeper.pid}")
    found = rows(report)
    assert (status, report["outcome"], report["subjects"]) == (0, "pass", [f"pid {sleeper.pid}"])
    assert found["ownership"] == found["executing"] == found["ledger"] == ("pass", "required")
    assert found["worker"] == found["holder"] == found["imports"] == ("not_run", "out_of_scope")


PLAIN = ["/usr/bin/python3", "-I", "-S", "-c"]


def test_modules_of_a_python_process_are_read_from_its_memory(tmp_path: Path) -> None:
    (tmp_path / "m\u00e9.py").write_text("")
    body = f"""import json, sys, time, xml.dom
sys.path.insert(0, {str(tmp_path)!r}); import m\u00e9
print(json.dumps([sys.path, {{n: getattr(m, '__file__', None) for n, m in sys.modules.items()}}]), flush=True)
time.sleep(600)"""
    with subprocess.Popen([*PLAIN, body], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        path, modules = json.loads(child.stdout.readline())
        report = snapshot(child.pid)
        child.kill()
    (view,) = report["inside"]
    assert (view["label"], view["python"]["path"], report["notes"]) == ("memory", path, [])
    assert {m["name"]: m["file"] for m in view["modules"]} == modules


def test_a_python_process_of_the_system_is_judged_whole() -> None:
    with subprocess.Popen([*PLAIN, "import time; print(1, flush=True); time.sleep(600)"],
                          stdout=subprocess.PIPE) as child:  # fmt: skip
        assert child.stdout and child.stdout.readline()
        status, report = probe(f"--pid={child.pid}")
        child.kill()
    assert (status, report["findings"]) == (0, [])
    assert rows(report)["imports"] == ("pass", "required")


def test_objects_that_were_unloaded_before_anybody_looked_are_counted() -> None:
    body = "import ctypes, _ctypes, time\nfor n in range(3): _ctypes.dlclose(ctypes.CDLL('libanl.so.1')._handle)\n"
    with subprocess.Popen([*PLAIN, body + "print(1, flush=True); time.sleep(600)"],
                          stdout=subprocess.PIPE) as child:  # fmt: skip
        assert child.stdout and child.stdout.readline()
        status, report = probe(f"--pid={child.pid}")
        child.kill()
    (found,) = report["findings"]
    assert (status, found["code"], found["actual"][:24]) == (
        3,
        "LEDGER_INCOMPLETE",
        "3 native objects were un",
    )


def test_the_view_that_the_process_wrote_of_itself_is_read(tmp_path: Path) -> None:
    body = PRELUDE + "agent.inside_snapshot(out, 'now')\nprint(1, flush=True)\ntime.sleep(600)\n"
    environment = os.environ | {"TIC_PROBE_OUT": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", body], env=environment, stdout=subprocess.PIPE) as child:
        assert child.stdout and child.stdout.readline()
        _, report = probe(f"--pid={child.pid}")
        child.kill()
    assert rows(report)["imports"][0] != "not_run"
    assert "no view" not in json.dumps(report["findings"])


def test_only_the_named_process_is_judged(tmp_path: Path) -> None:
    body = "import subprocess, sys; sys.exit(subprocess.call(['/bin/sleep', '600']))"
    with subprocess.Popen([sys.executable, "-c", body], start_new_session=True) as child:
        _, report = probe(f"--pid={child.pid}")
        os.killpg(child.pid, 9)
    assert "sleep" not in json.dumps(report["findings"])


def test_what_cannot_be_looked_at_is_one_clear_error(tmp_path: Path) -> None:
    status, report = probe(f"--pid={2**22 - 1}")
    assert (status, report["findings"][0]["code"]) == (3, "PROCESS_GONE")
    status, report = probe("--pid=1", f"--agent={tmp_path / 'none.py'}")
    assert (status, report["findings"][0]["code"]) == (3, "PROBE_AGENT_MISSING")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_process_of_somebody_else_is_a_clear_error(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    out = tmp_path / "probe.json"
    copy = Path(os.path.realpath("/tmp")) / f"probe_agent_{os.getpid()}.py"
    copy.write_bytes(AGENT.read_bytes())
    try:
        done = subprocess.run(
            ["/usr/bin/python3", "-I", str(copy), "--pid", str(sleeper.pid)],
            stdout=out.open("wb"), user=65534, group=65534, extra_groups=[], check=False, timeout=60,
        )  # fmt: skip
    finally:
        copy.unlink()
    assert done.returncode == 0
    (seen,) = json.loads(out.read_bytes())["snapshots"][0]["processes"]
    assert "PermissionError" in seen["maps"]["error"]


@pytest.mark.parametrize("argv", [("--pid=0",), ("--pid=1", "--container=x"), ("oci:x", "--pid=1")])
def test_a_wrong_command_line(argv: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "tic_manifest", "probe", *argv]
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 2
