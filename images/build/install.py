"""The image's environment: a venv with exactly the wheels of the lock, the same bytes every time.

usage: install.py WHEELS TOOLS TARGET IMAGE

WHEELS holds /wheels and requirements.txt (name==version --hash=sha256:…), TOOLS the pip that installs. What
was installed at TARGET is moved below IMAGE, every time set, to be copied into the image as it is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

_NAME = re.compile(r"[-_.]+")


def main(wheels: Path, tools: Path, target: Path, image: Path) -> None:
    """Make the venv, install by hash, then compare what is installed with what was asked for."""
    os.umask(0o022)
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(target)], check=True)
    requirements = wheels / "requirements.txt"
    python = target / "bin" / "python"
    options = [
        "--no-index",
        "--no-deps",
        "--no-compile",
        "--no-cache-dir",
        "--no-warn-script-location",
        "--quiet",
        "--require-hashes",
        "--find-links",
        str(wheels / "wheels"),
        "--requirement",
        str(requirements),
    ]
    pip = next(tools.glob("pip-*.whl"))
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "PYTHONHASHSEED": "0",
    }
    subprocess.run([str(python), "-B", str(pip / "pip"), "install", *options], env=environment, check=True)
    compare(target, wanted(requirements))
    for script in ("activate", "activate.csh", "activate.fish", "Activate.ps1"):
        (target / "bin" / script).unlink(missing_ok=True)
    place = image / target.relative_to("/")
    place.parent.mkdir(parents=True)
    target.rename(place)
    settle(image, int(os.environ["SOURCE_DATE_EPOCH"]))


def settle(root: Path, epoch: int) -> None:
    """One time for everything."""
    for folder, folders, names in os.walk(root, topdown=False):
        for name in (*names, *folders):
            os.utime(os.path.join(folder, name), (epoch, epoch), follow_symlinks=False)
    os.utime(root, (epoch, epoch))


def wanted(requirements: Path) -> dict[str, str]:
    """Name to version, as the requirements say."""
    rows = (line.split(" ", 1)[0].split("==") for line in requirements.read_text().splitlines() if line)
    return {_NAME.sub("-", name).lower(): version for name, version in rows}


def compare(target: Path, lock: dict[str, str]) -> None:
    """End with an error unless the installed distributions are those of the lock."""
    from importlib.metadata import distributions

    paths = [str(path) for path in target.glob("lib/python3*/site-packages")]
    found = {_NAME.sub("-", one.metadata["Name"]).lower(): one.version for one in distributions(path=paths)}
    if found != lock:
        odd = sorted(set(found.items()) ^ set(lock.items()))
        sys.exit(f"install: installed and locked distributions differ: {odd}")
    print(f"install: {len(found)} distributions, as locked", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
