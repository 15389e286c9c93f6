"""`run`: start a worker, follow its whole tree, look when it says ready, and record how it ended."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from typing import Any, Dict, List, NamedTuple, Optional, Set

from .base import Json, clean, failure, redact_argv
from .logs import Tail
from .outside import Observer
from .procfs import Stat
from .watch import Watch

PR_SET_CHILD_SUBREAPER = 36
MARKS = {"ready": "continue", "done": "finish"}
START = "start"
POLL = 0.05
GRACE = 10.0


class Limits(NamedTuple):
    """Seconds that a worker may take: to its ready mark, and in all."""

    ready: float
    total: float


class Supervisor:
    """One run of one worker: exited, signaled, timeout, ready_timeout, start_failed or interrupted."""

    def __init__(self, command: List[str], out: str, observer: Observer, limits: Limits) -> None:
        self.command = command
        self.out = out
        self.observer = observer
        self.limits = limits
        self.watch = Watch()
        self.snapshots: List[Json] = []
        self.adopted: List[Json] = []
        self.main: Optional[Json] = None
        self.main_ended = 0.0
        self.killed: Optional[str] = None
        self.interrupted = False
        self.reached: Dict[str, float] = {}
        self.pid = 0

    def run(self) -> Json:
        """Supervise to the end; the worker's part of the report."""
        for name in os.listdir(self.out):  # what an earlier run left is no evidence of this one
            inside = name.startswith("inside-") and name.endswith(".json")
            if inside or name in {*MARKS, *MARKS.values(), "probe.json"}:
                os.unlink(os.path.join(self.out, name))
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        previous = {
            s: signal.signal(s, self._interrupt) for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        }
        try:
            return self._supervise()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _interrupt(self, number: int, frame: Any) -> None:
        self.interrupted = True

    def _supervise(self) -> Json:
        environment = dict(os.environ, TIC_PROBE_OUT=os.path.abspath(self.out))
        try:
            child = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env=environment,
            )
        except OSError as error:
            return self._report("start_failed", [], error=failure(error))
        assert child.stdout is not None and child.stderr is not None
        self.pid = child.pid
        tails = [
            Tail(os.dup(s.fileno()), os.path.join(self.out, n))
            for s, n in ((child.stdout, "stdout.log"), (child.stderr, "stderr.log"))
        ]
        child.stdout.close()
        child.stderr.close()
        left = self._loop()
        self._reap()
        child.returncode = 0 if self.main is None else self.main["status"]
        return self._report(self._outcome(), left, tails=tails)

    def _loop(self) -> List[int]:
        """Until nothing of the tree is left; returns the pids that had to be ended after the worker."""
        while True:
            self._reap()
            before = time.monotonic()
            alive = self.watch.poll()
            pause = min(1.0, max(POLL, 40 * (time.monotonic() - before)))  # at most a fortieth of one core
            if not self.snapshots and self._started():
                self._take(START)
            for mark in MARKS:
                if mark not in self.reached and os.path.exists(os.path.join(self.out, mark)):
                    self._snapshot(mark)
            if not alive and self.main is not None:
                return []
            reason = self._over()
            if reason is not None:
                self.killed = reason if reason != "left_behind" else None
                return self._end_tree() if reason == "left_behind" else self._end_tree() and []
            time.sleep(pause)

    def _over(self) -> Optional[str]:
        """Why the run must end now, or None."""
        seconds = self.watch.seconds()
        if self.interrupted:
            return "interrupted"
        if seconds > self.limits.total:
            return "timeout"
        if "ready" not in self.reached and seconds > self.limits.ready:
            return "ready_timeout"
        # A daemon whose starter exited before the mark is the worker; after the mark it is left behind.
        if self.main is not None and "ready" in self.reached and time.monotonic() - self.main_ended > GRACE:
            return "left_behind"
        return None

    def _started(self) -> bool:
        """A process wrote its first view, under the label `start`: nobody waits for this snapshot."""
        return any(n.startswith("inside-start-") and n.endswith(".json") for n in os.listdir(self.out))

    def _snapshot(self, mark: str) -> None:
        self.reached[mark] = self.watch.seconds()
        self.watch.keep_views = False
        self._take(mark)
        with open(os.path.join(self.out, MARKS[mark]), "w", encoding="ascii") as stream:
            stream.write("\n")

    def _take(self, label: str) -> None:
        began = self.watch.seconds()
        processes = [self._look(stat.pid, label != START) for stat in self.watch.tree()]
        took = round(self.watch.seconds() - began, 3)
        self.snapshots.append({"label": label, "seconds": began, "took": took, "processes": processes})

    def _look(self, pid: int, search: bool) -> Json:
        """The outside view; the worker waits for an answer, so no failure may keep it waiting."""
        try:
            return self.observer.process(pid, search)
        except Exception as error:
            return {"pid": pid, "error": failure(error), "exited": False}

    def _reap(self) -> None:
        """Collect ended children: the worker itself, and descendants that came to us."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            row = {"pid": pid, "seconds": self.watch.seconds(), **exit_status(status)}
            if pid == self.pid:
                self.main, self.main_ended = row, time.monotonic()
            elif len(self.adopted) < 1000:
                self.adopted.append(row)

    def _end_tree(self) -> List[int]:
        """Ask every process of the tree to end, then make it."""
        asked: Set[int] = set()
        for number, seconds in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                self._reap()
                alive: List[Stat] = self.watch.tree()
                if not alive:
                    return sorted(asked)
                for stat in alive:
                    if number == signal.SIGKILL or stat.pid not in asked:
                        asked.add(stat.pid)
                        _send(stat.pid, number)
                time.sleep(POLL)
        return sorted(asked)

    def _outcome(self) -> str:
        if self.killed is not None:
            return self.killed
        return "signaled" if self.main is not None and self.main["signal"] else "exited"

    def _report(
        self, outcome: str, left: List[int], tails: Optional[List[Tail]] = None, error: Optional[str] = None
    ) -> Json:
        report: Json = {
            "argv": redact_argv([clean(word) for word in self.command]),
            "pid": self.pid,
            "outcome": outcome,
            "error": error,
            "exit": self.main,
            "ready": "ready" in self.reached,
            "marks": self.reached,
            "seconds": self.watch.seconds(),
            "adopted": self.adopted,
            "left_behind": left,
            "limits": {"ready": self.limits.ready, "total": self.limits.total},
        }
        for name, tail in zip(("stdout", "stderr"), tails or []):
            report[name] = tail.finish(3.0)
        return report


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def exit_status(status: int) -> Json:
    """A wait status in words: exit code, or signal with its name, and whether a core was dumped."""
    if not os.WIFSIGNALED(status):
        return {"status": status, "code": os.WEXITSTATUS(status), "signal": None, "core_dumped": False}
    number = os.WTERMSIG(status)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "SIG%d" % number
    return {"status": -number, "code": None, "signal": name, "core_dumped": os.WCOREDUMP(status)}
