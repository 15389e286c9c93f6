"""The kernel's view of one process: names, ancestors, namespaces, environment at exec, mounts."""

from __future__ import annotations

import os
import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from .base import MAX_PROCESSES, Json, attempt, clean, environment_view, read_proc, redact_argv, text

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")
PLUMBING = ("/proc", "/sys", "/dev", "/in", "/out")
HERTZ = os.sysconf("SC_CLK_TCK")


class Stat(NamedTuple):
    """Fields of /proc/PID/stat; `start` in clock ticks since boot tells a reused pid from the same one."""

    pid: int
    title: str
    state: str
    parent: int
    group: int
    session: int
    start: int


def read_stat(pid: int) -> Stat:
    """One process's stat. The title may hold spaces and brackets: it ends at the last `)`."""
    raw = read_proc("/proc/%d/stat" % pid, 8192)
    head, _, tail = raw.rpartition(b")")
    number, _, title = head.partition(b" (")
    f = tail.split()
    return Stat(int(number), text(title), f[0].decode("ascii"), int(f[1]), int(f[2]), int(f[3]), int(f[19]))


def same_process(pid: int, start: int) -> bool:
    """True while the pid is still the process that started at `start`."""
    try:
        return read_stat(pid).start == start
    except (OSError, ValueError, IndexError):
        return False


def all_stats() -> Dict[int, Stat]:
    """Every process that can be read now."""
    found: Dict[int, Stat] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and len(found) < 100_000:
            try:
                found[int(name)] = read_stat(int(name))
            except (OSError, ValueError, IndexError):
                continue
    return found


def descendants(stats: Dict[int, Stat], top: int) -> List[Stat]:
    """The process `top` (when it is there) and all below it, parents first."""
    children: Dict[int, List[Stat]] = {}
    for stat in stats.values():
        children.setdefault(stat.parent, []).append(stat)
    found = [stats[top]] if top in stats else []
    queue = [top]
    while queue and len(found) < MAX_PROCESSES:
        below = sorted(children.get(queue.pop(0), []))
        found.extend(below)
        queue.extend(stat.pid for stat in below)
    return found


def read_argv(pid: int) -> List[str]:
    """Argument list as it is now (a process may have rewritten it)."""
    raw = read_proc("/proc/%d/cmdline" % pid, 1 << 17)
    return redact_argv([text(part) for part in raw.rstrip(b"\0").split(b"\0")]) if raw else []


def read_environ(pid: int) -> List[Tuple[str, str]]:
    """Names and values at exec."""
    pairs = []
    for entry in read_proc("/proc/%d/environ" % pid, 4 << 20).split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals:
            pairs.append((name.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape")))
    return pairs


def read_link(pid: int, name: str) -> Optional[str]:
    """Target of /proc/PID/NAME, None when it cannot be read."""
    try:
        return clean(os.readlink("/proc/%d/%s" % (pid, name)))
    except OSError:
        return None


def read_status(pid: int) -> Json:
    """The lines of status that matter here."""
    fields = {}
    for line in read_proc("/proc/%d/status" % pid, 1 << 16).decode("utf-8", "replace").splitlines():
        name, _, value = line.partition(":")
        fields[name] = value.strip()
    numbers = {name: [int(x) for x in fields.get(name, "").split()] for name in ("NSpid", "Uid", "Gid")}
    memory = {
        name: int(fields.get(name, "0").split()[0]) * 1024 for name in ("RssAnon", "RssFile", "RssShmem")
    }
    return {
        "ns_pids": numbers["NSpid"],
        "uids": numbers["Uid"],
        "gids": numbers["Gid"],
        "threads": int(fields.get("Threads", "0")),
        "cap_eff": fields.get("CapEff"),
        "no_new_privs": fields.get("NoNewPrivs"),
        "seccomp": fields.get("Seccomp"),
        "rss_anon": memory["RssAnon"],
        "rss_file": memory["RssFile"],
        "rss_shmem": memory["RssShmem"],
    }


def full_title(pid: int) -> Optional[str]:
    """First argument: the whole title where a process rewrote it (comm ends after 15 bytes).

    No other one: the arguments of processes above the worker are none of our business.
    """
    argv = attempt(read_argv, pid)
    return argv[0][:300] if isinstance(argv, list) and argv else None


def ancestors(pid: int) -> List[Json]:
    """The chain of parents up to the top of this pid namespace, nearest first."""
    chain: List[Json] = []
    current = read_stat(pid).parent
    while current > 0 and len(chain) < 64:
        try:
            stat = read_stat(current)
        except (OSError, ValueError, IndexError):
            break
        chain.append(
            {"pid": stat.pid, "title": stat.title, "name": full_title(current), "start_ticks": stat.start}
        )
        current = stat.parent
    return chain


def unescape_mount(raw: bytes) -> bytes:
    """mountinfo writes space, tab, newline and backslash as three octal digits."""
    return re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m.group(1), 8) & 0xFF]), raw)


def read_mounts(pid: int) -> List[Json]:
    """Mounts of the process that are neither plumbing (/proc, /sys, /dev) nor /in and /out."""
    found: List[Json] = []
    for line in read_proc("/proc/%d/mountinfo" % pid).splitlines()[:100_000]:
        fields = line.split(b" ")
        if b"-" not in fields[6:] or len(fields) < 10:
            continue
        dash = fields.index(b"-", 6)
        point = text(unescape_mount(fields[4]))
        if not any(point == p or point.startswith(p + "/") for p in PLUMBING):
            found.append(_mount(fields, dash, point))
    return found


def _mount(fields: List[bytes], dash: int, point: str) -> Json:
    return {
        "mount_point": point,
        "root": text(unescape_mount(fields[3])),
        "device": text(fields[2]),
        "fstype": text(fields[dash + 1]),
        "source": clean(text(unescape_mount(fields[dash + 2]))),
        "read_only": b"ro" in fields[5].split(b","),
    }


def root_prefix(pid: int) -> str:
    """Where the files of the process are reached: "" when it shares our root, else /proc/PID/root."""
    try:
        theirs, ours = os.stat("/proc/%d/root" % pid), os.stat("/")
        same_root = (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)
        same_mounts = os.readlink("/proc/%d/ns/mnt" % pid) == os.readlink("/proc/self/ns/mnt")
        return "" if same_root and same_mounts else "/proc/%d/root" % pid
    except OSError:
        return "/proc/%d/root" % pid


def started_at(start_ticks: int) -> float:
    """Wall-clock second at which a process started."""
    import time

    with open("/proc/uptime", "rb") as stream:
        uptime = float(stream.read().split()[0])
    return time.time() - uptime + start_ticks / HERTZ


def process_view(pid: int) -> Json:
    """Everything about the process but its memory. Each part that fails is an error of its own."""
    stat = read_stat(pid)
    return {
        "pid": pid,
        "title": stat.title,
        "state": stat.state,
        "parent": stat.parent,
        "group": stat.group,
        "session": stat.session,
        "start_ticks": stat.start,
        "started_ns": attempt(lambda: int(started_at(stat.start) * 1e9)),
        "argv": attempt(read_argv, pid),
        "exe": read_link(pid, "exe"),
        "cwd": read_link(pid, "cwd"),
        "root": read_link(pid, "root"),
        "namespaces": {name: read_link(pid, "ns/" + name) for name in NAMESPACES},
        "cgroup": attempt(lambda: text(read_proc("/proc/%d/cgroup" % pid, 1 << 16)).splitlines()[:20]),
        "status": attempt(read_status, pid),
        "ancestors": attempt(ancestors, pid),
        "environ": attempt(lambda: environment_view(read_environ(pid))),
        "mounts": attempt(read_mounts, pid),
    }
