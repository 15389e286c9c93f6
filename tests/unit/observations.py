"""A whole observation of a worker that did everything right, and pieces to spoil it with."""

from __future__ import annotations

from typing import Any

A, B = "a" * 64, "b" * 64
SITE = "/opt/venv/lib/python3.11/site-packages"
Json = dict[str, Any]
WHEEL = {"kind": "wheel", "name": "demo", "version": "1.0", "distribution": 0, "recorded_sha256": A}
MATCH = {**WHEEL, "record": "match"}
DIFFERS = {**WHEEL, "record": "differs"}
DEBIAN = {"kind": "dpkg", "name": "libc6", "version": "2.36", "record": "match"}


def file(path: str, *owners: Json, soname: str | None = None, **more: Any) -> Json:
    """A mapped file."""
    elf = {"soname": soname, "needed": [], "rpath": [], "runpath": [], "build_id": None, "machine": "x86_64"}
    row = {"path": path, "root": "", "device": "8:1", "inode": 1, "deleted": False, "runtime": False}
    return {**row, "owners": list(owners), "sha256": A, "elf": elf, **more}


def mapped(number: int, verdict: str = "same", **more: Any) -> Json:
    """A file in a process."""
    row = {"file": number, "segments": 3, "bytes": 8192, "exec_bytes": 4096, "perms": ["r-xp"]}
    executing = {"verdict": verdict, "bytes": 4096 if verdict == "same" else 0, "reason": "why"}
    return {**row, "executing": executing, "identity": "same", "read_by": "path", **more}


def clean_report() -> Json:
    """A worker that held its model, with every file owned and nothing strange."""
    evidence = {"maps_checkpoint": False, "samples": 16, "found": 12, "holder": True, "bytes_scanned": 9}
    key = {"pid": 7, "start_ticks": 70, "title": "VLLM::Worker", "argv": ["VLLM::Worker"]}
    above = [{"pid": 1, "title": "VLLM::EngineCor", "name": "VLLM::EngineCore", "start_ticks": 1}]
    anonymous = {"count": 0, "bytes": 0, "writable": 0, "names": []}
    maps = {"lines": 9, "malformed": 0, "truncated": False, "anonymous_executable": anonymous}
    process = {
        **key, "exited": False, "status": {"ns_pids": [7]}, "ancestors": above, "environ": [], "mounts": [],
        "maps": maps, "mapped": [mapped(0), mapped(1)], "holder": evidence,
    }  # fmt: skip
    link_map = {"objects": [], "count": 9, "adds": 9, "subs": 0}
    module = {"name": "demo", "file": f"{SITE}/demo.py", "on_disk": True, "sha256": A, "owners": [MATCH]}
    running = {"functions": 5, "compared": 4, "foreign": 0, "cut_short": False, "reason": None, "patched": []}
    operators = {"torch_loaded": True, "read": True, "operators": 9, "torch_meta": 3, "overrides": []}
    inside = {
        "schema": "tic/probe-agent/v1", "kind": "inside", "agent_version": "1", "label": "ready", "pid": 7,
        "start_ticks": 70, "python": {}, "modules": [module], "module_count": 1, "modules_appeared": [],
        "distribution_count": 1, "environ": [], "threads": {}, "link_map": link_map, "parameters": {}, "torch": {},
        "jit": {}, "agent_effect": {}, "running": running, "operators": operators,
    }  # fmt: skip
    exit_ = {"pid": 3, "seconds": 2.0, "status": 0, "code": 0, "signal": None, "core_dumped": False}
    stream = {"tail": ["last"], "lines": 1, "bytes": 5, "ended": True, "log": "x", "log_truncated": False}
    share = {"files": 2, "bytes": 16384}
    scan = {"pid": 7, "label": "ready", "view_of_process": True, "scanned": 1, "not_scanned": 0, "errors": []}
    return {
        "schema": "tic/probe-agent/v1", "kind": "probe", "mode": "run", "role": "rollout", "agent": {}, "host": {},
        "worker": {
            "argv": ["x"], "pid": 3, "outcome": "exited", "error": None, "exit": exit_, "ready": True,
            "marks": {"ready": 1.0}, "seconds": 2.0, "adopted": [], "left_behind": [], "stdout": stream,
            "stderr": stream, "limits": {"ready": 9.0, "total": 10.0},
        },
        "seen": [], "inside": [inside], "gone": [], "owner_errors": [], "notes": [], "debian": [], "pth": [],
        "snapshots": [{"label": "ready", "seconds": 1.0, "took": 0.1, "processes": [process]}],
        "files": [file(f"{SITE}/demo/_C.abi3.so", MATCH), file("/usr/lib/libc.so.6", DEBIAN, soname="libc.so.6")],
        "holders": [{**key, "ancestors": above, "holder": evidence, "snapshot": "ready", "by": "memory",
                     "parameter_bytes": 5}],
        "policy": {"path": "/in", "files": [], "bytes": 9, "errors": [], "samples": 16},
        "distributions": [{"name": "demo", "version": "1.0", "path": "/x", "site": SITE, "editable": None,
                           "installer": "pip", "record_sha256": A}],
        "mounts": [{"mount_point": "/", "root": "/", "device": "0:1", "fstype": "overlay", "source": "overlay",
                    "read_only": False, "covers": 9, "examples": []}],
        "preload": {"file": None}, "imports": [{**scan, "broken": [], "absent": [], "unloadable": []}],
        "jit": {"places": [], "artifacts": [], "compilers": []},
        "ownership": {"mapped_bytes": 16384, "owned_bytes": 16384, "files": 2, "by_kind": {"wheel": share},
                      "runtime": {"files": 0, "bytes": 0}, "orphans": [], "scope": "holders"},
        "appeared": [],
    }  # fmt: skip
