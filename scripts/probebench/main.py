"""Makes the bench once, finds it again, deletes it."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS, DRIVER = HERE / "requirements.txt", HERE / "libcuda.c"
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
SYSTEM = "/usr/bin/python3"
LAYOUT = 2
"""Number of the way it is made: another one makes it again."""
USAGE = "usage: scripts/probe-bench up | path | purge"


class BenchError(Exception):
    """The bench cannot be made; the text says why."""


def root() -> Path:
    """The folder that benches lie in, also where HOME names another folder than the user's."""
    named = os.environ.get("TIC_PROBE_BENCH_ROOT")
    if named:
        return Path(named).absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache"
    return Path(cache) / "tic-probe-bench"


def place() -> Path:
    """The folder of the bench that this Python and these files make."""
    if named := os.environ.get("TIC_PROBE_BENCH"):
        return Path(named).absolute()
    return root() / name_of(REQUIREMENTS.read_bytes() + DRIVER.read_bytes())


def name_of(made_of: bytes) -> str:
    """The name of a bench by what it is made of: the files, this Python, and the way it is made."""
    how = f"{LAYOUT} {interpreter()}"
    return hashlib.sha256(made_of + how.encode()).hexdigest()[:16]


def interpreter() -> str:
    """The distribution's Python, whose files packages own, where it is new enough; else this one."""
    asked = "import sys; print(sys.implementation.cache_tag, sys.version_info >= (3, 11))"
    try:
        done = subprocess.run([SYSTEM, "-c", asked], capture_output=True, text=True, check=False)
    except OSError:
        done = None
    known = done is not None and done.stdout.endswith("True\n")
    return SYSTEM if known else os.path.realpath(sys.executable)


def is_ready(folder: Path) -> bool:
    """Whether it was made to its end."""
    return (folder / "ready").is_file()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One at a time: others wait for whoever makes it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def up() -> Path:
    """The bench, made where it was not there. Raises BenchError."""
    folder = place()
    if is_ready(folder):
        return folder
    if "TIC_PROBE_BENCH" in os.environ:
        raise BenchError(f"TIC_PROBE_BENCH names {folder}, and there is no whole bench")
    with locked(folder):
        if not is_ready(folder):
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
    return folder


def make(folder: Path) -> None:
    """Environment and driver library; `ready` comes last."""
    print(f"making the probe's bench in {folder}", file=sys.stderr)
    run("venv", interpreter(), "-m", "venv", "--without-pip", str(folder))
    install(folder)
    driver(next((folder / "lib").glob("python3*")) / "site-packages", folder / "cuda")
    (folder / "ready").write_text("ready\n")


def install(folder: Path) -> None:
    """The pinned versions, from pip's own places; where those lack torch, from its CPU index too."""
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
    argv = [*pip, "--disable-pip-version-check", "--no-deps", "-r", str(REQUIREMENTS)]
    try:
        run("pip", *argv)
    except BenchError:
        run("pip", *argv, "--extra-index-url", TORCH_INDEX)


def driver(site: Path, link: Path) -> None:
    """The driver library as a package of its own with a RECORD, and a folder that names it."""
    library, info = site / "tic_stub_cuda" / "libcuda.so.1", site / "tic_stub_cuda-1.0.dist-info"
    library.parent.mkdir()
    info.mkdir()
    run("gcc", "gcc", "-shared", "-fPIC", "-O1", "-Wl,-soname,libcuda.so.1", str(DRIVER), "-o", str(library))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tic-stub-cuda\nVersion: 1.0\n")
    rows = [_recorded(site, one) for one in (library, info / "METADATA")]
    (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/RECORD,,", ""]))
    link.symlink_to(library.parent)


def _recorded(site: Path, file: Path) -> str:
    data = file.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{file.relative_to(site)},sha256={digest},{len(data)}"


def run(name: str, *argv: str) -> None:
    """Run a program; its last lines are the error."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise BenchError(f"{name}: {error}") from error
    if done.returncode:
        tail = (done.stderr or done.stdout).strip().splitlines()[-4:]
        raise BenchError(f"{name} ended with {done.returncode}: {' | '.join(tail)}")


def purge(folder: Path) -> None:
    """Delete it, unless it is one that the user named."""
    if "TIC_PROBE_BENCH" in os.environ:
        raise BenchError("TIC_PROBE_BENCH names a bench of yours; it stays")
    shutil.rmtree(folder, ignore_errors=True)


def main(argv: list[str]) -> int:
    """The command line."""
    if argv not in (["up"], ["path"], ["purge"]):
        print(__doc__ if argv in (["-h"], ["--help"]) else USAGE, file=sys.stderr)
        return 2
    try:
        if argv == ["purge"]:
            purge(place())
            return 0
        folder = up() if argv == ["up"] else place()
    except (BenchError, OSError) as error:
        print(f"probe-bench: {error}", file=sys.stderr)
        return 3
    print(folder)
    return 0 if is_ready(folder) else 3
