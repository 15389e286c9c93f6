"""Entries of the ledger made again, in processes of their own with empty caches, and compared."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from typing import Dict, List, Optional, Tuple

from .base import Budget, Json, attempt, clean
from .elf import code_identity
from .jit_entry import CacheDisk

KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TRITON_DEFAULT_FP_FUSION", "CC", "CXX")
"""Variables that a child gets; any other could bring an override or another compiler back."""
FLAG = re.compile(
    r"^-(?:[DUIOWgLl]|isystem$|std=|m[\w.=-]+$|fPIC$|fno-|fopenmp|ffp-|fvis|funroll|ftree|pthread$|shared$|c$)"
)
RUNS = re.compile(r"@|plugin|^-W[pa],")
COMPILER_NAME = re.compile(r"^(?:g\+\+|c\+\+|gcc|cc|clang(?:\+\+)?)(?:-\d+)?$")
OTHER_FLAGS = "other code came out, but the entry does not name its flags, so that proves nothing"
UNKNOWN = "the entry does not name what it was made of"
NO_READER = {
    "numba": "its code lies in memory only; the index is a pickle, which is never built",
    "tilelang": "the compiler runs on a GPU machine's toolkit, which is not looked for",
    "deep_gemm": "needs nvcc and CUTLASS headers of the time, which the entry does not name",
    "cute_dsl": "keeps no source",
    "vllm": "its entries name what Inductor built, which is compared by itself",
    "flashinfer": "needs nvcc and a driver library to link with",
}


def rederive(report: Json, root: str, python: str, seconds: float = 300.0) -> None:
    """Give every entry `rederived`: {"verdict": same, differs or not_run, "by", "reason", …}."""
    rows = report["jit"].get("ledger", [])
    budget = Budget(seconds)
    for row in rows:
        row["rederived"] = not_run(NO_READER.get(row["family"], UNKNOWN))
    if root:
        for row in rows:
            row["rederived"] = not_run("the process has another root: run the agent inside it")
        return
    kernels = [r for r in rows if r["family"] == "inductor" and r["loaded"] and r["kernel"] and "paths" in r]
    in_child("triton", [r for r in rows if _triton_ready(r)], report, python, budget)
    in_child("inductor", kernels, report, python, budget)
    for row in rows:
        if row["family"] == "cpp_extension":
            found = attempt(extension_again, row, budget)
            row["rederived"] = found if "verdict" in found else not_run(found["error"])


def not_run(reason: str) -> Json:
    """The verdict of what was not made again."""
    reason = clean(reason, 500)
    return {"verdict": "not_run", "reason": reason, "by": None, "sha256": None, "code_sha256": None}


def _triton_ready(row: Json) -> bool:
    return row["family"] == "triton" and {"ttir", "json"} <= set(row.get("paths", ())) and bool(row["sha256"])


def in_child(family: str, rows: List[Json], report: Json, python: str, budget: Budget) -> None:
    """Run the jobs of a family in one child and compare what it says."""
    if not rows:
        return
    jobs = [dict(row["paths"], job=n) for n, row in enumerate(rows)]
    site = site_of(report, "triton" if family == "triton" else "torch")
    answers, error = run_child(family, jobs, site, python, budget)
    for number, row in enumerate(rows):
        found = answers.get(number)
        if found is None:
            row["rederived"] = not_run(error or "the child ended before it")
        elif "not_run" in found or "error" in found:
            row["rederived"] = not_run(found.get("not_run") or found["error"])
        else:
            row["rederived"] = compared(row, found, "%s %s" % (family, python))
            if family == "inductor" and row["rederived"]["verdict"] == "differs":
                row["rederived"] = not_run(OTHER_FLAGS)


def compared(row: Json, found: Json, by: str) -> Json:
    """Bytes against bytes where both are known (Triton), else code section against code section."""
    code = bool(found["code_sha256"]) and found["code_sha256"] == row["code_sha256"]
    whole = found["sha256"] is not None and row["sha256"] is not None
    same = found["sha256"] == row["sha256"] if whole else code
    reason = "equal code, other bytes elsewhere in the file" if code and not same else None
    made = {"verdict": "same" if same else "differs", "reason": reason, "by": clean(by, 300)}
    return dict(made, sha256=found["sha256"], code_sha256=found["code_sha256"])


def site_of(report: Json, package: str) -> str:
    """The folder from which processes imported a package; empty when none did."""
    for view in report["inside"]:
        for module in view.get("modules", ()):
            if module.get("name") == package and module.get("file"):
                return os.path.dirname(os.path.dirname(str(module["file"])))
    return ""


def run_child(
    family: str, jobs: List[Json], site: str, python: str, budget: Budget
) -> Tuple[Dict[int, Json], Optional[str]]:
    """({job: answer}, what went wrong) of the child."""
    folder = tempfile.mkdtemp(prefix="tic-rederive-")
    caches = {"TRITON_CACHE_DIR": folder, "TORCHINDUCTOR_CACHE_DIR": folder, "TMPDIR": folder}
    environ = {k: os.environ[k] for k in KEPT if k in os.environ}
    argv = [python, "-I", os.path.realpath(__file__), "rederive-child", family, "--site", site]
    try:
        done = subprocess.run(
            argv,
            input=json.dumps(jobs).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ, **caches),
            timeout=max(1.0, budget.left()),
            check=False,
        )
        said, output = done.stderr.decode("utf-8", "replace"), done.stdout
        error = "the child ended with %d: %s" % (done.returncode, said[-300:]) if done.returncode else None
    except subprocess.TimeoutExpired as late:
        output, error = late.stdout or b"", "the time for making entries again was over"
    except OSError as failed:
        output, error = b"", "%s: %s" % (python, failed)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return answers_of(output), error


def answers_of(output: bytes) -> Dict[int, Json]:
    """Answers by job; lines that are none are left out."""
    found: Dict[int, Json] = {}
    for line in output.decode("utf-8", "replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get("job"), int):
            found[row["job"]] = row
    return found


def ninja_values(text: str) -> Dict[str, str]:
    """`name = value` lines of a build.ninja, at top level."""
    return dict(re.findall(r"^(\w+) = (.*)$", text, re.MULTILINE))


class Compiling:
    """A compiler with its flags, at work in a folder of its own."""

    def __init__(self, compiler: str, values: Dict[str, str], budget: Budget) -> None:
        self.compiler = compiler
        self.flags = values.get("cflags", "").split() + values.get("post_cflags", "").split()
        self.links = values.get("ldflags", "").split()
        self.budget = budget
        self.folder = ""

    def odd(self) -> List[str]:
        """Flags that say more than how to compile: a plug-in, a specs file, a wrapper."""
        words = self.flags + self.links
        return [w for w in words if RUNS.search(w) or (w.startswith("-") and not FLAG.match(w))]

    def library(self, sources: List[str]) -> str:
        """Compile and link; the path of the library. ValueError when it cannot be made."""
        objects = []
        for number, source in enumerate(sources):
            if not source.endswith((".cpp", ".cc", ".c", ".cxx")):
                raise ValueError("%s is not C++" % source)
            objects.append("%s/%d.o" % (self.folder, number))
            self.run([*self.flags, "-c", source, "-o", objects[-1]])
        self.run([*objects, *self.links, "-o", self.folder + "/again.so"])
        return self.folder + "/again.so"

    def run(self, argv: List[str]) -> None:
        """One run of the compiler. ValueError with its last words."""
        limit = max(1.0, self.budget.left())
        done = subprocess.run(
            [self.compiler, *argv],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit,
            check=False,
        )
        if done.returncode:
            raise ValueError(clean(done.stderr.decode("utf-8", "replace")[-300:], 300))


def extension_again(row: Json, budget: Budget) -> Json:
    """Compile and link the sources again with the compiler and flags of the build.ninja beside the artifact.

    Nothing of that file is executed but a known compiler, with flags that only say how to compile.
    """
    text = CacheDisk("", 0.0, {}, {}, budget).text(os.path.dirname(row["artifact"]) + "/build.ninja")
    values = ninja_values(text)
    name = os.path.basename(values.get("cxx", "c++"))
    compiler = shutil.which(name) if COMPILER_NAME.match(name) else None
    made = Compiling(compiler or "", values, budget)
    if compiler is None or made.odd():
        return not_run("compiler or flags that are not repeated: %s" % " ".join([name, *made.odd()]))
    made.folder = tempfile.mkdtemp(prefix="tic-rederive-")
    try:
        code = code_identity(made.library(row.get("sources", [])))["text_sha256"]
        return compared(row, {"sha256": None, "code_sha256": code}, compiler)
    finally:
        shutil.rmtree(made.folder, ignore_errors=True)
