"""The one part that imports a compiler: a process of its own with an empty cache, started by `rederive`.

Standard input: a JSON list of jobs; standard output: one JSON line per job, `{"job": n, …}`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from typing import Any, Dict, List

from .base import Json, attempt, clean
from .elf import code_identity
from .jit_entry import cubin_identity
from .jit_values import digest_of

TUPLES = (list, tuple)


def child_main(family: str, site: str) -> int:
    """Do every job of one family. The compilers' own output goes to standard error."""
    jobs: List[Json] = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if site:
        sys.path.insert(0, site)
    worker = {"triton": triton_again, "inductor": inductor_again}[family]
    for job in jobs:
        found = attempt(worker, job)
        answers.write(json.dumps(dict(found, job=job["job"])) + "\n")
        answers.flush()
    return 0


def triton_again(job: Json) -> Json:
    """Compile the cached .ttir again for the recorded target with every recorded option."""
    triton = importlib.import_module("triton")
    compiler = importlib.import_module("triton.backends.compiler")
    with open(job["json"], encoding="utf-8") as stream:
        metadata: Dict[str, Any] = json.load(stream)
    wanted = metadata.get("triton_version")
    if triton.__version__ != wanted:
        return {"not_run": clean("triton %s is here, the entry needs %s" % (triton.__version__, wanted))}
    given = metadata["target"]
    target = compiler.GPUTarget(given["backend"], given["arch"], given["warp_size"])
    backend = triton.compiler.make_backend(target)
    known = backend.parse_options({}).__dict__
    options = {name: frozen(metadata[name]) for name in known if name in metadata}
    options.pop("ir_override", None)
    options["extern_libs"] = dict(own_libraries(triton, metadata.get("extern_libs")))
    folder = tempfile.mkdtemp(dir=os.environ["TRITON_CACHE_DIR"])
    source = os.path.join(folder, os.path.basename(job["ttir"]))
    with open(job["ttir"], "rb") as stream, open(source, "wb") as copy:
        copy.write(stream.read())
    made = triton.compile(source, target=target, options=options)
    image = made.asm[backend.binary_ext]
    again = os.path.join(folder, "again." + backend.binary_ext)
    with open(again, "wb") as out:
        out.write(image)
    code = attempt(cubin_identity, again)
    return {"sha256": digest_of(image), "code_sha256": code[0] if isinstance(code, tuple) else None}


def own_libraries(triton: Any, recorded: Any) -> List[Any]:
    """Device libraries by this Triton's own copy where the recorded one is of that name: paths move."""
    folder = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "lib")
    rows = []
    for name, path in recorded or ():
        mine = os.path.join(folder, os.path.basename(str(path)))
        rows.append((name, mine if os.path.isfile(mine) else path))
    return rows


def frozen(value: Any) -> Any:
    """Lists of JSON as the tuples that options hold."""
    return tuple(frozen(one) for one in value) if isinstance(value, TUPLES) else value


def inductor_again(job: Json) -> Json:
    """Build a cached .cpp of Inductor again with the flags that this torch gives its kernels."""
    builder = importlib.import_module("torch._inductor.cpp_builder")
    isa = importlib.import_module("torch._inductor.cpu_vec_isa")
    folder = tempfile.mkdtemp(dir=os.environ["TORCHINDUCTOR_CACHE_DIR"])
    options = builder.CppTorchOptions(vec_isa=isa.pick_vec_isa(), compile_only=False)
    made = builder.CppBuilder(name="again", sources=job["cpp"], output_dir=folder, BuildOption=options)
    made.build()
    return {"sha256": None, "code_sha256": code_identity(made.get_target_file_path())["text_sha256"]}
