"""The environment in which wheels are built: a venv with the lock's build tools and nothing else.

usage: tools.py WHEELS TARGET
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main(wheels: Path, target: Path) -> None:
    """Make the venv and install every wheel of the folder with the pip that is among them."""
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(target)], check=True)
    pip = next(wheels.glob("pip-*.whl"), None)
    if pip is None:
        sys.exit("tools: no pip among the build wheels")
    files = sorted(str(one) for one in wheels.glob("*.whl"))
    options = ["--no-index", "--no-deps", "--no-compile", "--no-cache-dir", "--no-warn-script-location", "-q"]
    python = str(target / "bin" / "python")
    subprocess.run([python, "-B", str(pip / "pip"), "install", *options, *files], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
