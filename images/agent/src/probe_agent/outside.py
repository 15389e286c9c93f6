"""One moment of a process tree, seen from outside: names, memory map, files, and who holds the model."""

from __future__ import annotations

from typing import Optional

from .base import Budget, Json, failure
from .files import FileTable
from .holder import Policy, search_process
from .maps import anonymous_executable, by_file, read_maps
from .procfs import process_view, read_stat, root_prefix, same_process


class Observer:
    """Takes outside views; the file table is shared, so each file is hashed once for all processes."""

    def __init__(self, policy: Optional[Policy]) -> None:
        self.files = FileTable()
        self.policy = policy

    def process(self, pid: int, search: bool = True) -> Json:
        """The outside view of one process. A process that ends meanwhile is said to have ended.

        Without `search` nobody looks for the model: at the start it is not loaded yet.
        """
        try:
            start = read_stat(pid).start
            view = process_view(pid)
            view.update(self._memory(pid, view, search))
        except (OSError, ValueError, IndexError) as error:
            return {"pid": pid, "error": failure(error), "exited": True}
        view["exited"] = not same_process(pid, start)
        view["pid_reused"] = view["start_ticks"] != start
        return view

    def _memory(self, pid: int, view: Json, search: bool) -> Json:
        try:
            mappings, report = read_maps(pid)
        except OSError as error:
            return {"maps": {"error": failure(error)}, "mapped": [], "holder": None}
        report["anonymous_executable"] = anonymous_executable(mappings)
        result: Json = {
            "maps": report,
            "mapped": self.files.scan(pid, root_prefix(pid), by_file(mappings)),
            "holder": None,
        }
        if self.policy is not None and search:
            rss = view["status"].get("rss_anon", 0) + view["status"].get("rss_shmem", 0)
            result["holder"] = search_process(pid, rss, mappings, self.policy, Budget(120.0))
        return result
