"""One wheel from one source tree, without network: TREE, SUBDIRECTORY, SUBMODULES and WHEEL_ENV say how.

usage: wheel.py TREE_FOLDER OUTPUT

The tree's id is computed here again, from the files that are built: what was locked is what is compiled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from git_tree import tree_id

PRECOMPILED = Path("/run/precompiled")


def main(source: Path, output: Path) -> None:
    """Check the tree, then build. Modes and times are set first: they would enter the wheel."""
    os.umask(0o022)
    wanted, found = os.environ["TREE"], tree_id(source, json.loads(os.environ["SUBMODULES"]))
    if found != wanted:
        sys.exit(f"wheel: the source is tree {found}, the lock says {wanted}")
    print(f"wheel: source is tree {found}", flush=True)
    settle(source, int(os.environ["SOURCE_DATE_EPOCH"]))
    output.mkdir()
    build(source / os.environ["SUBDIRECTORY"], output)
    made = [one.name for one in output.iterdir()]
    if len(made) != 1 or not made[0].endswith(".whl"):
        sys.exit(f"wheel: expected one wheel, got {made}")
    print(f"wheel: {made[0]}", flush=True)


def settle(root: Path, epoch: int) -> None:
    """One mode for files, one for programs and folders, one time for all."""
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, 0o755 if os.stat(path).st_mode & 0o100 else 0o644)
            os.utime(path, (epoch, epoch), follow_symlinks=False)
        os.chmod(folder, 0o755)  # noqa: S103
        os.utime(folder, (epoch, epoch))


def build(source: Path, output: Path) -> None:
    """Run the project's own build backend with pip, in a fixed environment."""
    argv = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index"]
    argv += ["--no-cache-dir", "--wheel-dir", str(output), "."]
    subprocess.run(argv, cwd=source, env=environment(), check=True)


def environment() -> dict[str, str]:
    """The recipe's variables over a fixed few; `{precompiled}` is the path of the wheel given with them."""
    given = json.loads(os.environ["WHEEL_ENV"])
    wheel = next(iter(sorted(PRECOMPILED.glob("*.whl"))), PRECOMPILED)
    fixed = {
        "PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SOURCE_DATE_EPOCH": os.environ["SOURCE_DATE_EPOCH"],
    }
    return fixed | {name: value.replace("{precompiled}", str(wheel)) for name, value in given.items()}


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
