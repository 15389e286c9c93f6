"""What `verify` loads: no engine, no torch, nothing that one system alone has (issue 4, "Must show")."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from layouts import Layout

BLOCKED = (
    "docker", "git", "torch", "python_on_whales", "elftools", "uv", "packaging", "fcntl", "pwd", "grp", "resource",
    "termios",
)  # fmt: skip
GUARD = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BLOCKED!r}:
            raise ImportError(f"{{name}} is blocked")
sys.meta_path.insert(0, Blocked())
for name in {BLOCKED!r}:
    sys.modules.pop(name, None)
import socket
def refuse(*_, **__):
    raise AssertionError("a socket was opened")
"""


def run(code: str, *argv: str) -> subprocess.CompletedProcess[str]:
    main = "from tic_manifest.__main__ import main\nmain()\n"
    return subprocess.run(
        [sys.executable, "-c", GUARD + code + main, *argv], capture_output=True, text=True, check=False
    )


@pytest.fixture
def reference(tmp_path: Path) -> str:
    layout = Layout(tmp_path / "layout")
    return f"oci:{layout.root}@{layout.save(layout.image())}"


def test_a_layout_is_judged_without_engine_posix_modules_and_sockets(reference: str) -> None:
    no_sockets = "socket.socket = refuse\nsocket.create_connection = refuse\nsocket.getaddrinfo = refuse\n"
    done = run(no_sockets, "verify", "--offline", reference)
    assert done.returncode == 3, done.stderr
    assert "DELIVERY_MISSING" in done.stdout and "Traceback" not in done.stderr


def test_a_registry_is_asked_without_engine_and_posix_modules() -> None:
    done = run("", "verify", "127.0.0.1:1/team/app@sha256:" + "0" * 64)
    assert done.returncode == 3 and "[NETWORK]" in done.stderr, done.stderr


def test_offline_refuses_a_registry_and_show_policy_is_a_policy(tmp_path: Path) -> None:
    done = run("", "verify", "--offline", "127.0.0.1:1/team/app@sha256:" + "0" * 64)
    assert done.returncode == 2
    shown = run("", "verify", "--show-policy")
    assert shown.returncode == 0
    from tic_manifest.formats.policy import read_policy

    policy = read_policy(shown.stdout.encode(), "built-in")
    assert policy.required == ("approval",) and policy.out_of_scope == ("authenticity",)


def test_a_policy_of_a_person_is_read_strictly(reference: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    for text, line in (("schema: tic/policy/v1\ndepht: content\n", 2), ("schema: tic/policy/v2\n", 1)):
        policy.write_text(text)
        done = run("", "verify", "--policy", str(policy), reference)
        assert done.returncode == 2 and f"policy.yaml:{line}" in done.stderr, done.stderr
    policy.write_text("schema: tic/policy/v1\nrequired: [never.measured]\n")
    done = run("", "verify", "--policy", str(policy), reference)
    assert done.returncode == 3 and "never.measured" in done.stdout


def test_depth_files_says_what_it_does_not_compare(reference: str) -> None:
    done = run("", "verify", "--depth", "files", reference)
    assert done.returncode == 3 and "files.sources" in done.stdout


def test_no_network_system_call_is_made_offline(reference: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    argv = [sys.executable, "-m", "tic_manifest", "verify", "--offline", reference]
    done = subprocess.run(
        [strace, "-f", "-e", "trace=network", "-o", str(trace), *argv],
        capture_output=True,
        text=True,
        check=False,
    )
    if not trace.exists() or "Operation not permitted" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()[:200]}")
    assert done.returncode == 3
    calls = [
        line
        for line in trace.read_text().splitlines()
        if "(" in line and "+++" not in line and "---" not in line
    ]
    assert calls == []
