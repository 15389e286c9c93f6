"""Puts the parts together: one report for a supervised run or for a process that runs already."""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
import time
from typing import Any, Dict, List, Optional

from .base import AGENT_VERSION, SCHEMA, Json, attempt, clean, digest_path, failure, read_file
from .disk import Analysis, agent_file, ownership
from .holder import read_policy
from .jit_disk import environ_of
from .maps import by_file, read_maps
from .outside import Observer
from .outside_linker import linker_view
from .outside_python import find_interpreter, python_from_memory
from .procfs import all_stats, descendants, root_prefix, started_at
from .supervisor import START, Limits, Supervisor


def host_view() -> Json:
    """Kernel and processor: the code that JITs generate depends on them."""
    cpu: Json = {}
    for line in read_file_proc("/proc/cpuinfo").split("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "flags", "Features", "CPU implementer", "CPU part"):
            cpu[key.strip()] = clean(value.strip())
    yama = attempt(lambda: read_file_proc("/proc/sys/kernel/yama/ptrace_scope").strip())
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": cpu,
        "yama": yama if isinstance(yama, str) else None,
        "page_size": os.sysconf("SC_PAGE_SIZE"),
        "uid": os.geteuid(),
        "gid": os.getegid(),
    }


def read_file_proc(path: str) -> str:
    """A text file of /proc."""
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read(1 << 20)


def agent_view() -> Json:
    """The agent's own identity."""
    path = agent_file()
    version = ".".join(str(n) for n in sys.version_info[:3])
    return {
        "version": AGENT_VERSION,
        "path": clean(path),
        "sha256": attempt(digest_path, path),
        "python": version,
    }


def cost() -> Json:
    """What the agent itself used so far: peak memory in bytes, processor seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"max_rss": used.ru_maxrss * 1024, "cpu_seconds": round(used.ru_utime + used.ru_stime, 3)}


def read_inside(out: str, notes: List[str]) -> List[Json]:
    """The views that workers wrote from inside; a broken one is a note, never a crash."""
    views: List[Json] = []
    names = [n for n in os.listdir(out) if n.startswith("inside-") and n.endswith(".json")]
    names.sort(key=lambda n: (os.stat(os.path.join(out, n)).st_mtime_ns, n))
    for name in names[:256]:
        try:
            view = json.loads(read_file(os.path.join(out, name), 256 << 20))
            views.append(checked_view(view))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            notes.append("%s: %s" % (clean(name, 200), failure(error)))
    return thinned(views)


def thinned(views: List[Json]) -> List[Json]:
    """Only the last view of a process keeps its module list; each says which modules were new in it."""
    last: Dict[Any, Json] = {}
    for view in views:
        key = (view["pid"], view.get("start_ticks"))
        before = last.get(key)
        names = {m["name"] for m in view["modules"]}
        view["modules_appeared"] = (
            [] if before is None else sorted(names - {m["name"] for m in before["modules"]})
        )
        distributions = view.pop("distributions", None)
        view["distribution_count"] = len(distributions) if isinstance(distributions, list) else None
        last[key] = view
    for view in views:
        view["module_count"] = len(view["modules"])
        if view is not last[(view["pid"], view.get("start_ticks"))]:
            view["modules"] = []
            view.pop("code", None)
    return views


VIEW_SHAPE = {"pid": int, "start_ticks": int, "label": str, "parameters": dict, "jit": dict, "link_map": dict}


def checked_view(view: Any) -> Json:
    """An inside view with the shape that later steps rely on. ValueError when it is something else."""
    if not isinstance(view, dict) or view.get("schema") != SCHEMA or view.get("kind") != "inside":
        raise ValueError("not an inside view")
    if not all(isinstance(view.get(key), kind) for key, kind in VIEW_SHAPE.items()):
        raise ValueError("no pid, start, label or parts")
    modules, python = view.get("modules"), view.get("python")
    if not isinstance(modules, list) or not all(
        isinstance(m, dict) and isinstance(m.get("name"), str) for m in modules
    ):
        raise ValueError("no module list")
    if not isinstance(python, dict) or not isinstance(python.get("path"), list):
        raise ValueError("no search path")
    return dict(view)


def empty_report(mode: str, role: Optional[str]) -> Json:
    """Every top-level key, so that a reader never finds one missing."""
    return {
        "schema": SCHEMA,
        "kind": "probe",
        "mode": mode,
        "role": role,
        "agent": agent_view(),
        "host": attempt(host_view),
        "worker": None,
        "seen": [],
        "snapshots": [],
        "inside": [],
        "files": [],
        "holders": [],
        "policy": None,
        "distributions": [],
        "debian": [],
        "pth": [],
        "mounts": [],
        "preload": {"file": None},
        "imports": [],
        "jit": {"places": [], "artifacts": [], "compilers": []},
        "ownership": None,
        "appeared": [],
        "gone": [],
        "owner_errors": [],
        "notes": [],
    }


def holders(report: Json) -> List[Json]:
    """Processes that hold the model: by memory where a policy was given, else by their inside view."""
    found: List[Json] = []
    claims = {(v["pid"], v.get("start_ticks")): v.get("parameters") or {} for v in report["inside"]}
    for snapshot in report["snapshots"]:
        for process in snapshot["processes"]:
            if "title" not in process or snapshot["label"] == START:
                continue
            inner = (process["status"].get("ns_pids") or [process["pid"]])[-1]
            claim = claims.get((inner, process["start_ticks"]), {})
            evidence = process.get("holder")
            by_memory = bool(evidence and evidence["holder"])
            by_inside = claim.get("bytes", 0) > 0 and not by_memory
            if by_memory or (
                by_inside and not (evidence and report["policy"]["samples"] and _host_only(claim))
            ):
                found.append(_holder(process, snapshot["label"], "memory" if by_memory else "inside", claim))
    return found


def _host_only(claim: Json) -> bool:
    """True when all claimed parameters are in host memory, where the search would have found the policy."""
    return all(kind.startswith("cpu/") for kind in claim.get("bytes_by_kind", {}))


def _holder(process: Json, label: str, by: str, claim: Json) -> Json:
    keys = ("pid", "start_ticks", "title", "argv", "ancestors", "holder")
    return dict(
        {key: process.get(key) for key in keys}, snapshot=label, by=by, parameter_bytes=claim.get("bytes")
    )


def add_passing(report: Json, supervisor: Supervisor) -> None:
    """Files that only the polls saw: mapped after a snapshot, or by a process that never reached one."""
    files = supervisor.observer.files
    for (pid, _), passing in supervisor.watch.passing.items():
        for item in passing.values():
            index = files.add_late(item.root, item.key)
            if index is not None:
                files.rows[index]["late_bytes"] = max(item.bytes, files.rows[index].get("late_bytes", 0))
                report["appeared"].append(
                    {"file": index, "pid": pid, "seconds": item.seconds, "bytes": item.bytes}
                )


def last_seen(supervisor: Supervisor) -> List[Json]:
    """What the polls kept of a worker that never reached a mark."""
    processes = supervisor.watch.last_seen()
    seconds = supervisor.watch.seconds()
    return (
        [{"label": "last_seen", "seconds": seconds, "took": 0.0, "processes": processes}] if processes else []
    )


def policy_of(path: Optional[str]) -> Any:
    """Samples and report of the policy, None when none was given."""
    return None if path is None else read_policy(path)


def run_report(role: str, out: str, command: List[str], policy: Optional[str], limits: Limits) -> Json:
    """Supervise a worker and describe it. The worker's failure is data; only our own is an exception."""
    report = empty_report("run", role)
    began = time.time()
    samples = policy_of(policy)
    supervisor = Supervisor(command, out, Observer(samples), limits)
    report["worker"] = supervisor.run()
    report["seen"] = supervisor.watch.report()
    report["snapshots"] = list(supervisor.snapshots)
    if not any(s["label"] != START for s in supervisor.snapshots):
        report["snapshots"] += last_seen(supervisor)
    report["gone"] = supervisor.watch.gone_names()
    report["policy"] = samples[1] if samples else None
    report["inside"] = read_inside(out, report["notes"])
    add_passing(report, supervisor)
    own = {
        agent_file(): "agent",
        os.path.dirname(agent_file()): "worker",
        os.path.realpath(out): "output",
        "/in": "input",
    }
    if policy is not None:
        own[os.path.realpath(policy)] = "input"
    return finish(report, supervisor.observer, {"": (began, own)})


def own_views(report: Json, processes: List[Json]) -> None:
    """Views that these processes wrote of themselves, where TIC_PROBE_OUT of their environment says."""
    for process in processes:
        folder = environ_of(process.get("environ")).get("TIC_PROBE_OUT", "")
        place = root_prefix(process["pid"]) + folder
        if folder.startswith("/") and os.path.isdir(place):
            pids = process["status"].get("ns_pids") or [process["pid"]]
            report["inside"] += [
                view
                for view in read_inside(place, report["notes"])
                if view["pid"] in pids and view["start_ticks"] == process["start_ticks"]
            ]


def views_from_memory(report: Json, processes: List[Json]) -> None:
    """What the dynamic linker counted, and for a Python process with no view of its own its modules."""
    known = {(view["pid"], view["start_ticks"]) for view in report["inside"]}
    for process in processes:
        pid, start = process["pid"], process["start_ticks"]
        root, groups = root_prefix(pid), attempt(lambda p=pid: by_file(read_maps(p)[0]))
        process["linker"] = attempt(linker_view, pid, root, groups)
        inner = process["status"].get("ns_pids") or [pid]
        found = attempt(find_interpreter, root, groups)
        if isinstance(found, tuple) and not any((n, start) in known for n in inner):
            view = attempt(python_from_memory, pid, start, found)
            if "error" in view:
                report["notes"].append("modules of %d: %s" % (pid, view["error"]))
                continue
            if "error" not in process["linker"]:
                view["link_map"] = dict(process["linker"], objects=[])
            if view["python"]["unread_modules"]:
                report["notes"].append("%d modules unread of %d" % (view["python"]["unread_modules"], pid))
            report["inside"] += thinned([view])


def snapshot_report(pid: int, policy: Optional[str], alone: bool = False) -> Json:
    """Describe a process that runs already; unless `alone`, with everything below it."""
    report = empty_report("snapshot", None)
    samples = policy_of(policy)
    observer = Observer(samples)
    tree = descendants(all_stats(), pid)
    if not tree or tree[0].state in "ZX":
        raise ProcessLookupError("no process %d" % pid)
    del tree[1 if alone else len(tree) :]
    processes = [observer.process(stat.pid) for stat in tree]
    report["snapshots"] = [{"label": "now", "seconds": 0.0, "took": 0.0, "processes": processes}]
    report["policy"] = samples[1] if samples else None
    own_views(report, [p for p in processes if "title" in p])
    views_from_memory(report, [p for p in processes if "title" in p])
    since = attempt(started_at, tree[0].start)
    moment = since if isinstance(since, float) else time.time()
    roots = {root_prefix(stat.pid): (moment, {agent_file(): "agent"}) for stat in tree}
    return finish(report, observer, roots)


def finish(report: Json, observer: Observer, roots: Dict[str, Any]) -> Json:
    """The part that reads disks: owners, imports, JIT; one root after another (nearly always one)."""
    report["files"] = observer.files.rows
    try:
        report["holders"] = holders(report)
    except Exception as error:  # a worker wrote the views that are read here
        report["notes"].append("holders: " + failure(error))
    for root, (since, own) in list(roots.items())[:4]:
        try:
            Analysis(root, report, since, own).run()
        except Exception as error:  # what was seen alive must reach the reader whatever the disk holds
            report["notes"].append("analysis of root %r failed: %s" % (root, failure(error)))
    chosen = {(h["pid"], h["start_ticks"]) for h in report["holders"]}
    processes = [p for s in report["snapshots"] for p in s["processes"] if "mapped" in p]
    held = [p for p in processes if (p["pid"], p["start_ticks"]) in chosen] or processes
    report["agent"].update(cost())
    report["ownership"] = dict(ownership(report, held), scope="holders" if chosen else "all processes")
    return report
