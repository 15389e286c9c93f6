"""Lock and build of the mini recipe, for real: the same lock gives the same image, whatever the machine's mood."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.adapters.engine import ContainerEngine
from tic_manifest.adapters.layout_read import read_built
from tic_manifest.adapters.progress import StderrProgress
from tic_manifest.ports import Container

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "images/recipes/mini.yaml"
TOOL = [sys.executable, "-m", "tic_manifest"]

pytestmark = pytest.mark.engine


@dataclass(frozen=True)
class Made:
    """A work folder with a finished build, and the checkout that it was made from."""

    work: Path
    env: dict[str, str]
    project: Path

    @property
    def lock(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.work / "lock.json").read_bytes())
        return found

    @property
    def platform(self) -> str:
        return read_built(self.work / "layout").platform_digest


def tool(env: dict[str, str], *argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TOOL, *argv], env=env, text=True, capture_output=True, timeout=900, check=False, **options
    )


def good(ran: subprocess.CompletedProcess[str]) -> str:
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    root = tmp_path_factory.mktemp("forge")
    subprocess.run([ROOT / "scripts/engine", "up"], check=True, capture_output=True)
    said = subprocess.run([ROOT / "scripts/engine", "env"], check=True, capture_output=True, text=True).stdout
    host = re.search(r"DOCKER_HOST=(\S+)", said)
    clean = {key: value for key, value in os.environ.items() if key != "TIC_FORGE_MAP"}
    up = [ROOT / "scripts/demo-forge", "up", "--set", "mini", "--root", str(root)]
    made = subprocess.run(up, check=True, capture_output=True, text=True, env=clean)
    clean["TIC_FORGE_MAP"] = made.stdout.strip().splitlines()[-1]
    yield clean | ({"DOCKER_HOST": host[1].strip("'\"")} if host else {})
    down = [ROOT / "scripts/demo-forge", "down", "--root", str(root)]
    subprocess.run(down, check=True, capture_output=True)


@pytest.fixture(scope="module")
def made(env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("first")
    project, work = folder / "project", folder / "work"
    shutil.copytree(ROOT / "images", project / "images")
    shutil.copy(ROOT / "Dockerfile.unified", project)
    good(tool(env, "lock", str(RECIPE), "--work", str(work), "--project", str(project)))
    good(tool(env, "build", "--work", str(work)))
    return Made(work, env, project)


def test_a_build_from_nothing_elsewhere_is_the_same_image(made: Made, tmp_path: Path) -> None:
    """Empty store, other folder, time zone and umask, no cache, wheels and roots made again; network gone after lock."""
    folder = tmp_path / "an other folder"
    folder.mkdir()
    env = made.env | {"TZ": "Asia/Kathmandu", "LC_ALL": "C"}
    good(
        tool(env, "lock", str(RECIPE), "--project", str(made.project), "--work", "w", cwd=folder, umask=0o077)
    )
    assert (folder / "w/lock.json").read_bytes() == (made.work / "lock.json").read_bytes()
    gone = {key: value for key, value in env.items() if key != "TIC_FORGE_MAP"} | {
        "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9",
    }  # fmt: skip
    good(tool(gone, "build", "--no-cache", "--work", "w", cwd=folder, umask=0o077))
    assert read_built(folder / "w/layout").platform_digest == made.platform
    again = {one["name"]: one["digest"] for one in wheels(folder / "w")}
    assert again == {one["name"]: one["digest"] for one in wheels(made.work)}


def wheels(work: Path) -> list[dict[str, Any]]:
    receipt = json.loads(next((work / "receipts").rglob("build.json")).read_bytes())
    found: list[dict[str, Any]] = receipt["body"]["wheels"]
    return found


def test_the_image_holds_what_the_lock_says_and_no_compiler(made: Made, tmp_path: Path) -> None:
    engine = ContainerEngine(made.env.get("DOCKER_HOST"), StderrProgress("none"))
    out = tmp_path / "out"
    out.mkdir()
    script = (
        "python -c 'import tic_mini_alpha, tic_mini_beta, tic_mini_gamma' && ls /opt/tic /opt/venv/bin"
        " && ! command -v gcc && ! ls -d /src /opt/build 2>/dev/null && ! find / -xdev -name '*.egg-link' | grep ."
        " && ls /sys/class/net"
    )
    ended = engine.run(
        Container(
            image=engine.load(made.work / "layout", made.platform), argv=["sh", "-c", script], env={}, inputs={},
            output=out, shm_mib=64, timeout_seconds=60, log=tmp_path / "log", name="look",
        )
    )  # fmt: skip
    assert ended.exit_code == 0, ended.log_tail
    assert ended.log_tail[-1] == "lo"
    assert {"probe_agent.py", "workers"} <= set(ended.log_tail)


def test_other_tools_read_the_layout(made: Made) -> None:
    if shutil.which("skopeo") is None:
        pytest.skip("skopeo is not here")
    argv = ["skopeo", "inspect", f"oci:{made.work / 'layout'}"]
    seen = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    assert tuple(seen["Layers"]) == read_built(made.work / "layout").layers
    assert seen["Labels"]["org.tic-manifest.lock"].startswith("sha256:")


def test_check_says_what_changed_and_opens_no_socket(made: Made, tmp_path: Path) -> None:
    recipe = Path(shutil.copy(RECIPE, tmp_path / "mini.yaml"))
    argv = [
        "lock",
        str(recipe),
        "--check",
        "--work",
        str(made.work),
        "--project",
        str(made.project),
        "--output",
        "json",
    ]
    alone = ["unshare", "-n", *TOOL] if os.geteuid() == 0 and shutil.which("unshare") else TOOL
    same = subprocess.run([*alone, *argv], env=made.env, text=True, capture_output=True, check=False)
    assert (same.returncode, json.loads(same.stdout)["outcome"]) == (0, "pass"), same.stderr
    recipe.write_text(recipe.read_text().replace("max_commits: 0", "max_commits: 1"))
    changed = subprocess.run([*alone, *argv], env=made.env, text=True, capture_output=True, check=False)
    said = json.loads(changed.stdout)
    assert (changed.returncode, [one["code"] for one in said["findings"]]) == (1, ["LOCK_STALE"])
    assert said["findings"][0]["subject"] == "recipe"


def test_no_place_of_this_machine_is_in_the_lock(made: Made) -> None:
    text = json.dumps(made.lock)
    assert not re.search(r"127\.0\.0\.1|localhost|deb\.debian\.org|pythonhosted|file://", text)
    assert str(made.work) not in text


@pytest.mark.parametrize(
    ("change", "code", "exit_code"),
    [
        (('"setuptools>=68"', '"setuptools @ https://x.invalid/a.whl"'), "RECIPE", 2),
        (('"setuptools>=68"', '"setuptools>=68", "tic-there-is-no-such-distribution==1"'), "RESOLVE", 3),
        (
            ("packages: [python3, python3-venv]", "packages: [python3, there-is-no-such-package]"),
            "RESOLVE",
            3,
        ),
        (("    head: 4f22", "    head: 0000"), "PIN_UNFETCHABLE", 2),
    ],
    ids=["requirement by address", "no such distribution", "no such package", "no such commit"],
)
def test_bad_input_is_one_message_and_nothing_is_written(
    env: dict[str, str], tmp_path: Path, change: tuple[str, str], code: str, exit_code: int
) -> None:
    text = RECIPE.read_text()
    assert change[0] in text
    (tmp_path / "r.yaml").write_text(text.replace(*change, 1))
    ran = tool(env, "lock", str(tmp_path / "r.yaml"), "--work", str(tmp_path / "w"), cwd=ROOT)
    assert ran.returncode == exit_code, ran.stderr
    assert f"[{code}]" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "w/lock.json").exists()
