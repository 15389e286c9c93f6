"""The view from inside a Python process. Imports nothing that it measures, changes nothing, never raises."""

from __future__ import annotations

import _imp
import gc
import os
import sys
import time
import types
from typing import Any, Callable, Dict, List, Optional

from .base import (
    AGENT_VERSION,
    MAX_MODULES,
    SCHEMA,
    Json,
    attempt,
    clean,
    environment_view,
    redact_argv,
    write_json,
)
from .environment import libc_view
from .inside_jit import jit_state
from .ledger import link_map
from .live_code import live_view
from .operators import operators_view
from .owners import scan_distributions
from .procfs import read_stat
from .symbols import symbol_bindings


def raw_dict(thing: Any) -> Dict[str, Any]:
    """The object's own dictionary, read past any `__getattr__` that would import or raise."""
    try:
        found = object.__getattribute__(thing, "__dict__")
        return found if isinstance(found, dict) else {}
    except Exception:
        return {}


def type_name(thing: Any) -> str:
    """Module and name of a type or function, or of the type of anything else."""
    kind = thing if isinstance(thing, (type, types.FunctionType)) else type(thing)
    return clean("%s.%s" % (kind.__module__, kind.__qualname__), 200)


def optional_text(value: Any) -> Optional[str]:
    """A string as clean text; anything else, None."""
    return clean(value) if isinstance(value, str) else None


def module_view(name: str, module: Any) -> Json:
    """One entry of sys.modules. `file` and `origin` are both kept: they can disagree."""
    names = raw_dict(module)
    spec = raw_dict(names.get("__spec__"))
    view: Json = {
        "name": clean(name),
        "file": optional_text(names.get("__file__")),
        "origin": optional_text(spec.get("origin")),
        "loader": clean(type(spec["loader"]).__name__, 200) if spec.get("loader") is not None else None,
        "cached": optional_text(spec.get("_cached") or spec.get("cached") or names.get("__cached__")),
    }
    if isinstance(spec.get("loader"), type):
        view["loader"] = clean(spec["loader"].__name__, 200)
    places = spec.get("submodule_search_locations")
    places = places if isinstance(places, list) else raw_dict(places).get("_path")
    if isinstance(places, list):
        view["search"] = [clean(p) for p in places[:8] if isinstance(p, str)]
    return view


def modules_view() -> List[Json]:
    """sys.modules in order of name."""
    names = [n for n in list(sys.modules) if isinstance(n, str)]
    return [module_view(n, sys.modules.get(n)) for n in sorted(names)[:MAX_MODULES]]


def python_view() -> Json:
    """The interpreter: where it looks for code, and what was put in its way."""
    flags = {
        n: getattr(sys.flags, n)
        for n in ("isolated", "no_site", "no_user_site", "ignore_environment", "optimize")
    }
    flags["safe_path"] = getattr(sys.flags, "safe_path", False)
    return {
        "version": clean(sys.version),
        "executable": optional_text(sys.executable),
        "program": attempt(lambda: clean(os.path.realpath(sys.executable))) if sys.executable else None,
        "prefix": clean(sys.prefix),
        "base_prefix": clean(sys.base_prefix),
        "argv": redact_argv([a for a in getattr(sys, "argv", []) if isinstance(a, str)]),
        "cwd": attempt(os.getcwd),
        "flags": flags,
        "path": [clean(p) for p in list(sys.path)[:1000] if isinstance(p, str)],
        "meta_path": [attempt(type_name, f) for f in list(sys.meta_path)[:100]],
        "path_hooks": [attempt(type_name, h) for h in list(sys.path_hooks)[:100]],
        "builtin_modules": sorted(sys.builtin_module_names),
        "extension_suffixes": attempt(_imp.extension_suffixes),
        "customize": {
            n: module_view(n, sys.modules[n]) for n in ("sitecustomize", "usercustomize") if n in sys.modules
        },
    }


def threads_view() -> Json:
    """How many threads the kernel knows, and the names of those that Python knows (no lock is taken)."""
    threading = sys.modules.get("threading")
    active = raw_dict(threading).get("_active", {})
    names = [clean(raw_dict(t).get("_name"), 100) for t in list(active.values())[:256]]
    return {"kernel": len(os.listdir("/proc/self/task")), "python": sorted(names)}


def parameters_view() -> Json:
    """torch parameters that live in this process, found among existing objects when torch is loaded."""
    base = raw_dict(sys.modules.get("torch.nn.modules.module")).get("Module")
    if not isinstance(base, type):
        return {"torch_loaded": "torch" in sys.modules, "bytes": 0, "count": 0}
    seen: Dict[int, Any] = {}
    roots = 0
    for thing in gc.get_objects():
        if issubclass(type(thing), base):
            roots += 1
            own = raw_dict(thing).get("_parameters")
            for name, value in list(own.items())[:10_000] if isinstance(own, dict) else ():
                if value is not None:
                    seen.setdefault(id(value), (type(thing).__name__, name, value))
    return dict(_sum_parameters(list(seen.values())[:1_000_000]), modules=roots, torch_loaded=True)


def _sum_parameters(found: List[Any]) -> Json:
    total, failed = 0, 0
    kinds: Dict[str, int] = {}
    rows: List[Json] = []
    for owner, name, value in found:
        try:
            size = int(value.numel()) * int(value.element_size())
            kind = "%s/%s" % (value.device, value.dtype)
            row: Json = {
                "module": clean(owner, 100),
                "name": clean(name, 100),
                "bytes": size,
                "kind": clean(kind, 100),
            }
            row.update(shape=[int(n) for n in value.shape], requires_grad=bool(value.requires_grad))
        except Exception:
            failed += 1
            continue
        total += size
        kinds[row["kind"]] = kinds.get(row["kind"], 0) + size
        rows.append(row)
    rows.sort(key=lambda r: -r["bytes"])
    return {
        "bytes": total,
        "count": len(rows),
        "unreadable": failed,
        "bytes_by_kind": kinds,
        "largest": rows[:10],
    }


def torch_view() -> Json:
    """Version strings that torch itself keeps, from its dictionary only."""
    torch = raw_dict(sys.modules.get("torch"))
    version = raw_dict(sys.modules.get("torch.version"))
    return {
        "version": optional_text(torch.get("__version__")) or clean(torch.get("__version__", "")) or None,
        "git_version": optional_text(version.get("git_version")),
        "cuda": optional_text(version.get("cuda")),
    }


PARTS: Dict[str, Callable[[], Any]] = {
    "python": python_view,
    "modules": modules_view,
    "environ": lambda: environment_view(list(os.environ.items())),
    "environ_libc": libc_view,
    "threads": threads_view,
    "link_map": link_map,
    "symbols": symbol_bindings,
    "parameters": parameters_view,
    "torch": torch_view,
    "jit": jit_state,
    "operators": operators_view,
    "code": live_view,
    "distributions": lambda: scan_distributions("", [p for p in sys.path if isinstance(p, str)]),
}


def inside_view(label: str) -> Json:
    """The whole view as a value; a part that fails is `{"error": …}`, the others stay."""
    before = time.monotonic()
    view: Json = {
        "schema": SCHEMA,
        "kind": "inside",
        "agent_version": AGENT_VERSION,
        "label": clean(label, 100),
    }
    view.update(pid=os.getpid(), start_ticks=attempt(lambda: read_stat(os.getpid()).start))
    for name, part in PARTS.items():
        view[name] = attempt(part)
    seconds = round(time.monotonic() - before, 6)
    # The head of the one file notes which modules its own imports added to the measured process.
    view["agent_effect"] = {"modules_loaded": list(globals().get("AGENT_MODULES", ())), "seconds": seconds}
    return view


def inside_snapshot(out_dir: str, label: str) -> str:
    """Write `out_dir/inside-LABEL-PID.json` about the calling process; returns its path.

    Call it in the process that holds the model. Only a failure to write raises (OSError).
    """
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in label)[:100] or "snapshot"
    path = os.path.join(out_dir, "inside-%s-%d.json" % (safe, os.getpid()))
    write_json(path, inside_view(label))
    return path


def wait_at_mark(out_dir: str, mark: str = "ready", timeout: float = 600.0) -> bool:
    """Say that a mark is reached and wait for the supervisor: `ready` → `continue`, `done` → `finish`.

    True when the supervisor answered, False after `timeout` seconds (there may be none).
    """
    answer = {"ready": "continue", "done": "finish"}[mark]
    write_json(os.path.join(out_dir, mark), {"pid": os.getpid()})
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if os.path.exists(os.path.join(out_dir, answer)):
            return True
        time.sleep(0.02)
    return False
