"""The verifier alone: a pure wheel, few distributions, quick to start, at home on every system (issue 4).

Installed for real, by pip from the index that it is configured for, into a virtual environment of its own.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "kit"))
from layouts import Layout  # noqa: E402
from tic_manifest import __version__  # noqa: E402
from tic_manifest.stages.materials import read_materials  # noqa: E402

MAX_DISTRIBUTIONS = 28
HEAVY = {"torch", "docker", "python-on-whales", "gitpython", "uv", "packaging", "sigstore"}
BLOCKED = ("fcntl", "pwd", "grp", "resource", "termios", "docker", "git", "torch", "python_on_whales")
GUARD = f"""
import builtins, io, os, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BLOCKED!r}:
            raise ImportError(f"No module named {{name!r}}")
sys.meta_path.insert(0, Blocked())
for name in {BLOCKED!r}:
    sys.modules.pop(name, None)
POSIX = ("getuid", "geteuid", "getgid", "getegid", "fork", "forkpty", "setsid", "killpg", "getpgid", "mkfifo", "mknod",
         "chown", "lchown", "fchown", "fchmod", "getloadavg", "sched_getaffinity", "uname", "O_NOFOLLOW", "O_CLOEXEC",
         "O_NONBLOCK", "O_DIRECTORY")
for name in POSIX:
    if hasattr(os, name):
        delattr(os, name)
def audit(event, arguments):
    path = arguments[0] if event == "open" else ""
    if isinstance(path, (str, bytes)) and os.fsdecode(path).startswith("/proc"):
        raise AssertionError(f"opened {{path!r}}")
sys.addaudithook(audit)
from tic_manifest.__main__ import main
main()
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment with the built wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("small")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    made = subprocess.run(
        [*pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    python = folder / "venv" / "bin" / "python"
    done = subprocess.run(
        [*pip, "--python", python, "install", wheel], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "venv" / "bin"


def test_the_wheel_is_pure_and_holds_what_goes_into_images(installed: Path) -> None:
    (wheel,) = installed.parents[1].glob("*.whl")
    assert wheel.name == f"tic_manifest-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert not [name for name in names if name.endswith((".so", ".pyd", ".dll", ".dylib"))]
        for name, raw in read_materials(ROOT).items():
            assert archive.read(f"tic_manifest/project/{name}") == raw, name
    lowered = [name.lower() for name in names]
    assert len(set(lowered)) == len(lowered), "names that differ by case alone are one file on some systems"
    assert not [name for name in names if re.search(r'[<>:"|?*\\]', name)]


def test_few_distributions_none_of_them_heavy(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pip = [sys.executable, "-m", "pip", "--python", str(installed / "python"), "list", "--format", "json"]
    told = json.loads(subprocess.run(pip, capture_output=True, check=True).stdout)
    names = {one["name"].lower() for one in told}
    size = sum(
        one.stat().st_size for one in installed.parent.rglob("*") if one.is_file() and not one.is_symlink()
    )
    with capsys.disabled():
        print(f"\nverifier alone: {len(names)} distributions, {size >> 20} MiB")
    assert "tic-manifest" in names and not names & HEAVY
    assert len(names) <= MAX_DISTRIBUTIONS


def processor_seconds(*argv: str | Path) -> float:
    """Processor time of the quickest of five runs: what an idle machine's clock shows, whatever runs beside."""
    found = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


@pytest.mark.parametrize(("words", "most"), [(["--version"], 0.15), (["verify", "--help"], 0.5)])
def test_it_starts_quickly(
    installed: Path, words: list[str], most: float, capsys: pytest.CaptureFixture[str]
) -> None:
    took = processor_seconds(installed / "tic-manifest", *words)
    with capsys.disabled():
        print(f"\ntic-manifest {' '.join(words)}: {took:.3f} s")
    assert took < most


def run(installed: Path, cwd: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("VIRTUAL", "PYTHON"))}
    return subprocess.run(argv, capture_output=True, text=True, check=False, cwd=cwd, env=env)


def test_version_help_and_module_say_the_same(installed: Path, tmp_path: Path) -> None:
    said = {
        run(installed, tmp_path, str(installed / "tic-manifest"), "--version").stdout,
        run(installed, tmp_path, str(installed / "tic-manifest"), "-q", "--version").stdout,
        run(installed, tmp_path, str(installed / "python"), "-m", "tic_manifest", "--version").stdout,
    }
    assert said == {f"tic-manifest {__version__}\n"}


@pytest.mark.parametrize("depth", ["identity", "content", "files"])
def test_a_layout_is_judged_without_posix_modules_and_proc(
    installed: Path, tmp_path: Path, depth: str
) -> None:
    layout = Layout(tmp_path / "layout")
    digest = layout.save(layout.image())
    outputs = [word for form in ("json", "html", "sarif") for word in ("--output", f"{form}=report.{form}")]
    argv = ["verify", "--offline", "--depth", depth, *outputs, f"oci:layout@{digest}"]
    done = run(installed, tmp_path, str(installed / "python"), "-c", GUARD, *argv)
    assert done.returncode == 3, done.stderr
    assert json.loads((tmp_path / "report.json").read_bytes())["exitCode"] == 3
    written = {one.name for one in tmp_path.iterdir()} - {"layout"}
    assert written == {"report.json", "report.html", "report.sarif"}


def test_an_installed_tool_finds_its_agent_and_its_dockerfile(installed: Path, tmp_path: Path) -> None:
    code = (
        "from tic_manifest.adapters.agent import find_agent\n"
        "from tic_manifest.adapters.project import project_folder\n"
        "from tic_manifest.stages.materials import read_materials\n"
        "print(find_agent(None)); print(len(read_materials(project_folder())))"
    )
    done = run(installed, tmp_path, str(installed / "python"), "-c", code)
    assert done.returncode == 0, done.stderr
    agent, count = done.stdout.splitlines()
    assert Path(agent).read_bytes() == (ROOT / "images/agent/probe_agent.py").read_bytes()
    assert Path(agent).is_relative_to(installed.parent) and int(count) == len(read_materials(ROOT))
    help_text = run(installed, tmp_path, str(installed / "tic-manifest"), "lock", "--help")
    assert help_text.returncode == 0 and "--project" in help_text.stdout
