"""The process tree below the supervisor over time: who appeared, as what, and what it mapped in passing."""

from __future__ import annotations

import os
import time
from typing import Dict, List, NamedTuple, Set, Tuple

from .base import MAX_PROCESSES, Json, attempt, text
from .maps import FileKey, by_file, read_maps
from .procfs import Stat, all_stats, descendants, process_view, read_argv, read_link, root_prefix

MAX_IMAGES = 16
MAX_VIEWS = 512


class Passing(NamedTuple):
    """A file seen mapped by a light poll."""

    key: FileKey
    root: str
    bytes: int
    exec_bytes: int
    seconds: float


class Watch:
    """Polls /proc. Cheap on purpose: one read of stat a process, maps only every few seconds."""

    def __init__(self, maps_every: float = 2.0) -> None:
        self.began = time.monotonic()
        self.seen: Dict[Tuple[int, int], Json] = {}
        self.passing: Dict[Tuple[int, int], Dict[FileKey, Passing]] = {}
        self.gone: Set[FileKey] = set()
        self.views: Dict[Tuple[int, int], Json] = {}
        self.keep_views = True
        self.overflow = 0
        self._every = maps_every
        self._next_maps = 0.0

    def seconds(self) -> float:
        """Seconds since the watch began."""
        return round(time.monotonic() - self.began, 3)

    def tree(self) -> List[Stat]:
        """Every process below this one now, daemons included (we are a subreaper), zombies left out."""
        found = descendants(all_stats(), os.getpid())
        return [s for s in found if s.pid != os.getpid() and s.state not in "ZX"]

    def poll(self) -> List[Stat]:
        """One round: note who is there; every few seconds also what is mapped."""
        alive = self.tree()
        for stat in alive:
            self._note(stat)
        if time.monotonic() >= self._next_maps:
            self._next_maps = time.monotonic() + self._every
            for stat in alive:
                self._maps(stat)
        return alive

    def _note(self, stat: Stat) -> None:
        key = (stat.pid, stat.start)
        if key not in self.seen and len(self.seen) >= MAX_PROCESSES:
            self.overflow += 1
            return
        row = self.seen.setdefault(
            key,
            {
                "pid": stat.pid,
                "start_ticks": stat.start,
                "parent": stat.parent,
                "first": self.seconds(),
                "images": [],
            },
        )
        row["last"] = self.seconds()
        row["group"], row["session"] = stat.group, stat.session
        if row["parent"] != stat.parent:
            row["adopted_by"] = stat.parent
        image = {"title": stat.title, "exe": read_link(stat.pid, "exe"), "argv": attempt(read_argv, stat.pid)}
        if image["exe"] is not None and image not in row["images"] and len(row["images"]) < MAX_IMAGES:
            row["images"].append(image)

    def _maps(self, stat: Stat) -> None:
        try:
            groups = by_file(read_maps(stat.pid)[0])
        except OSError:
            return
        if self.keep_views and len(self.views) < MAX_VIEWS:
            self.views[(stat.pid, stat.start)] = attempt(process_view, stat.pid)
        known = self.passing.setdefault((stat.pid, stat.start), {})
        root = root_prefix(stat.pid)
        for key, segments in groups.items():
            if key not in known and len(known) < 20_000:
                total = sum(s.size for s in segments)
                known[key] = Passing(
                    key, root, total, sum(s.size for s in segments if s.executable), self.seconds()
                )
        self.gone.update(key for key in known if key not in groups)

    def last_seen(self) -> List[Json]:
        """Views of processes that no snapshot met, from the last poll; memory was not looked at."""
        found = []
        for view in self.views.values():
            if "title" in view:
                found.append(dict(view, maps=None, mapped=[], holder=None, exited=True, pid_reused=False))
        return found

    def report(self) -> List[Json]:
        """Every process that was seen, in order of appearance."""
        return sorted(self.seen.values(), key=lambda row: (row["first"], row["pid"]))

    def gone_names(self) -> List[str]:
        """Files that were mapped at one poll and not at a later one of the same process."""
        return sorted({text(key[2]) for key in self.gone})[:1000]
