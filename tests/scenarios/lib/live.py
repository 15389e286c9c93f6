"""Live processes for scenarios of the probe: `up` is the process itself, or drives a C program that gcc made.

A `make` calls `library` and `host`; an `up` ends in `serve(pid)`, or execs a Python program with `python`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

HOST = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(void) {
    static void *last; char line[4096];
    puts("started"); fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "open ", 5)) { last = dlopen(line + 5, RTLD_NOW); puts(last ? "ok" : dlerror()); }
        else if (!strcmp(line, "close")) { dlclose(last); puts("ok"); }
        fflush(stdout);
    }
    return 0;
}
"""
CODE = "int {name}_answer(void) {{ return {value}; }}\nint {name}_other(int x) {{ return x * 3 + {name}_answer(); }}\n"
PLAIN = ("/usr/bin/python3", "-S")


def gcc(source: str, *argv: str) -> None:
    """Compile C source from standard input."""
    subprocess.run(["gcc", "-x", "c", "-O1", "-", *argv], input=source, text=True, check=True)


def library(path: str, value: int = 1, *options: str, soname: str | None = None) -> Path:
    """A shared library; `soname` is its file name unless it is given."""
    target = Path(path).absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    name = "".join(c if c.isalnum() else "_" for c in target.name.partition(".")[0])
    gcc(CODE.format(name=name, value=value), "-shared", "-fPIC", f"-Wl,-soname,{soname or target.name}",
        *options, "-o", str(target))  # fmt: skip
    return target


def host(path: str = "host") -> Path:
    """A C program that opens and closes libraries as its standard input tells."""
    gcc(HOST, "-o", path, "-ldl")
    return Path(path).absolute()


class Live:
    """The C program, running."""

    def __init__(self, *before: str, **env: str) -> None:
        self.child = subprocess.Popen(
            [*before, str(Path("host").absolute())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | env,
        )  # fmt: skip
        self._answer("started")

    def _answer(self, wanted: str) -> None:
        assert self.child.stdout
        said = self.child.stdout.readline().strip()
        if said != wanted:
            sys.exit(f"the host said {said!r}")

    def say(self, line: str) -> None:
        """`open PATH` or `close`; ends the scenario when it fails."""
        assert self.child.stdin
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        self._answer("ok")

    def open(self, *paths: str | Path) -> Live:
        """Load libraries."""
        for path in paths:
            self.say(f"open {path}")
        return self


def serve(pid: int) -> None:
    """Say which process is judged, and stay until the runner ends us."""
    Path("vars.json").write_text(json.dumps({"pid": str(pid)}))
    print("ready", flush=True)
    signal.pause()


def python(source: str, *options: str, **env: str) -> None:
    """Become a Python program that says so itself once its imports are done."""
    after = (
        "\nimport json, os, signal\nopen('vars.json', 'w').write(json.dumps({'pid': str(os.getpid())}))\n"
        "print('ready', flush=True)\nsignal.pause()\n"
    )
    argv = [*PLAIN, *options, "-c", source + after]
    os.execve(argv[0], argv, os.environ | env)


def seen_from_inside(label: str) -> str:
    """Source by which a program of `python` writes the agent's view of itself into the current folder."""
    os.environ["TIC_PROBE_OUT"] = str(Path.cwd())
    agent = Path(__file__).resolve().parents[3] / "images" / "agent" / "probe_agent.py"
    return (
        "\nimport importlib.util, os, sys\n"
        f"spec = importlib.util.spec_from_file_location('tic_probe_agent', {str(agent)!r})\n"
        "agent = sys.modules['tic_probe_agent'] = importlib.util.module_from_spec(spec)\n"
        f"spec.loader.exec_module(agent)\nagent.inside_snapshot(os.getcwd(), {label!r})\n"
    )


def in_own_mounts() -> None:
    """Start this program again in a mount namespace of its own, once."""
    if os.environ.get("TIC_OWN_MOUNTS") != "1":
        argv = ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv]
        os.execvpe(argv[0], argv, os.environ | {"TIC_OWN_MOUNTS": "1"})


def mount(*argv: str | Path) -> None:
    """`mount` in the namespace of this program."""
    subprocess.run(["mount", *map(str, argv)], check=True)


def wheel_installed(site: str, name: str, files: dict[str, str], **more: str) -> Path:
    """Files of a wheel below `site`, with a RECORD that names their hashes; `more` goes into the .dist-info."""
    root = Path(site).absolute()
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    rows = []
    texts = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        **{f"{info}/{key}": text for key, text in more.items()},
    }
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(text.encode())}")
    (root / info / "RECORD").write_text("\n".join([*rows, f"{info}/RECORD,,"]) + "\n")
    return root


def extension_wheel(needs: str) -> None:
    """The wheel `tic_demo` below `site`: it swallows that its module `_C` cannot be imported, which needs a library."""
    body = "try:\n    from tic_demo import _C\nexcept ImportError:\n    _C = None\n"
    root = wheel_installed("site", "tic-demo", {"tic_demo/__init__.py": body})
    gcc("void *PyInit__C(void) { return 0; }\n", "-shared", "-fPIC", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN",
        "-Wl,--unresolved-symbols=ignore-all", "-o", "site/tic_demo/_C.abi3.so", *_stub(needs))  # fmt: skip
    record = root / "tic_demo-1.0.dist-info/RECORD"
    record.write_text(f"tic_demo/_C.abi3.so,,\ntic_demo/lib{needs}.so,,\n" + record.read_text())


def _stub(name: str) -> tuple[str, ...]:
    """A library to link against, in a folder of its own."""
    library(f"stub/lib{name}.so")
    return "-Lstub", f"-l{name}"


DRIVER = "libcuda.so.580.65.06"
RECIPE = """schema: tic/recipe/v1
name: live
forge: {{api: "https://forge.invalid/api/v3"}}
pull_requests:
  alpha:
    url: https://forge.invalid/demo/alpha/pull/1
    target: {{owner: demo, branch: main}}
    base: {base}
    head: {head}
policy: {{{policy}}}
"""


def recipe(policy: str) -> None:
    """A recipe whose policy is all that matters."""
    Path("recipe.yaml").write_text(RECIPE.format(policy=policy, base="a" * 40, head="b" * 40))


def driver(*folders: str) -> None:
    """Copies of a driver library, each with code of its own."""
    for value, folder in enumerate(folders, 1):
        library(f"{folder}/{DRIVER}", value, soname="libcuda.so.1")


def loading(path: str) -> None:
    """Become a Python program that loads a library; ctypes finds it by its path."""
    python(f"import ctypes; library = ctypes.CDLL({str(Path(path).absolute())!r})")
