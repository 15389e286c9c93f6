#!/usr/bin/env python3
"""Cost of the gate on a generated repository: 2,000 open pull requests, 20,000 commits.

usage: scripts/benches/gate.py [--pulls N] [--commits N]

Prints calls of the forge's interface, seconds with a cold and a warm mirror, and peak memory: of the largest
process, as the kernel says, and of the tool with its git processes together, sampled. BENCH_MIRROR=DIR also
prints the time per pull request on a mirror of a real history (a bare repository with refs/pull/*/head, HEAD
its trunk); without it that row says not_run. Exit: 0 within the limits, 1 beyond one of them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _watch import watched
from scenarios import githttp
from scenarios.httpd import Request, Stream
from tic_manifest.adapters.git_gate import GateMirror
from tic_manifest.adapters.git_remote import HttpRemote
from tic_manifest.adapters.git_run import GitRunner

MAX_CALLS, MAX_SECONDS, MAX_MIB = 100, 60.0, 500
OURS = 3


def main() -> int:
    """Generate, run cold, run warm, print."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--pulls", type=int, default=2000)
    asked.add_argument("--commits", type=int, default=20000)
    options = asked.parse_args()
    with tempfile.TemporaryDirectory(prefix="tic-bench-", dir=os.environ.get("TMPDIR", "/var/tmp")) as name:
        work = Path(name)
        heads = generate(work / "r.git", options.pulls, options.commits)
        server = Server(work, heads)
        commits = git(work / "r.git", "rev-list", "--all", "--count")
        rows = [run(work, server, heads, kind) for kind in ("cold", "warm")]
    print(f"generated: {len(heads)} open pull requests, {commits} commits")
    for row in rows:
        memory = f"{row.largest} MiB the largest process, {row.together} MiB all together"
        print(f"{row.kind} mirror ({row.stored} KiB): {row.seconds:.1f} s, {row.calls} calls, {memory}")
    print(f"limits: {MAX_CALLS} calls, {MAX_SECONDS:.0f} s warm, {MAX_MIB} MiB")
    mirror = os.environ.get("BENCH_MIRROR", "")
    print(f"real history: {real(Path(mirror)) if mirror else 'not_run (BENCH_MIRROR is not set)'}")
    return 0 if rows[1].seconds < MAX_SECONDS and all(row.small for row in rows) else 1


@dataclass(frozen=True)
class Row:
    """Figures of one run: seconds of wall time, calls, peak memory in MiB, the mirror's objects in KiB."""

    kind: str
    seconds: float
    calls: int
    largest: int
    together: int
    stored: int

    @property
    def small(self) -> bool:
        """Whether calls and memory are within the limits, whichever way memory is counted."""
        return self.calls <= MAX_CALLS and max(self.largest, self.together) <= MAX_MIB


def git(repo: Path, *argv: str) -> str:
    """What git prints of a repository."""
    done = subprocess.run(["git", f"--git-dir={repo}", *argv], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def generate(repo: Path, pulls: int, commits: int) -> dict[int, str]:
    """A repository by one fast-import: a trunk, and pull requests of one to five commits, some on others."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(repo)], check=True)
    stream, rnd = Importer(), random.Random(1)
    trunk: list[int] = []
    for number in range(max(commits - 3 * pulls, 10)):
        last = trunk[-1] if trunk else 0
        trunk.append(
            stream.commit("refs/heads/main", last, f"d{number % 50}/f{number % 977}.txt", str(number))
        )
    heads: dict[int, int] = {}
    for number in range(1, pulls + 1):
        stacked = number > OURS + 1 and rnd.random() < 0.1
        mark = heads[rnd.randint(1, number - 1)] if stacked else trunk[-rnd.randint(1, min(3000, len(trunk)))]
        for part in range(rnd.randint(1, 5)):
            # the first commit of every fifth one changes the same file, so that patches must be compared
            path = f"hot/{number % 5}.txt" if part == 0 else f"p{number}/{part}.txt"
            mark = stream.commit(f"refs/pull/{number}/head", mark, path, f"{number}-{part}")
        heads[number] = mark
    marks = stream.write(repo)
    found = {number: marks[mark] for number, mark in heads.items()}
    subprocess.run(
        ["git", f"--git-dir={repo}", "update-ref", f"refs/heads/feature-{OURS}", found[OURS]], check=True
    )
    return found


def _path(number: int) -> str:
    return f"d{number % 50}/f{number % 977}.txt"


class Importer:
    """Commands of `git fast-import`; identities and dates are fixed."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._mark = 0

    def commit(self, ref: str, parent: int, path: str, text: str) -> int:
        """One commit that writes one file; its mark."""
        self._mark += 1
        who = f"A <a@example.com> {1_700_000_000 + 60 * self._mark} +0000"
        origin = f"from :{parent}\n" if parent else ""
        words = f"c{self._mark}"
        self._parts.append(
            f"commit {ref}\nmark :{self._mark}\nauthor {who}\ncommitter {who}\ndata {len(words)}\n{words}\n"
            f"{origin}M 100644 inline {path}\ndata {len(text)}\n{text}\n".encode()
        )
        return self._mark

    def write(self, repo: Path) -> dict[int, str]:
        """Import everything; commit ids by mark."""
        marks = repo / "marks"
        argv = ["git", f"--git-dir={repo}", "fast-import", "--quiet", f"--export-marks={marks}"]
        subprocess.run(argv, input=b"".join(self._parts), check=True)
        rows = (line.split() for line in marks.read_text().splitlines())
        return {int(mark[1:]): oid for mark, oid in rows}


class Server:
    """GitHub's interface over the generated repository, as little of it as the gate asks for."""

    def __init__(self, work: Path, heads: dict[int, str]) -> None:
        self.calls = 0
        self.work = work
        self.rows = [self.pull(number, oid) for number, oid in sorted(heads.items())]
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.answer(self, b"")

            def do_POST(self) -> None:
                outer.answer(self, self.rfile.read(int(self.headers.get("content-length", "0"))))

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def pull(self, number: int, oid: str) -> dict[str, object]:
        """One pull request."""
        repo = {"id": 1, "full_name": "o/r"}
        return {
            "number": number, "state": "open", "draft": False, "merged": False, "mergeable": True,
            "mergeable_state": "clean", "body": "", "user": {"login": "a"},
            "head": {"ref": f"feature-{number}", "sha": oid, "repo": repo},
            "base": {"ref": "main", "sha": oid, "repo": repo},
        }  # fmt: skip

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Git, or a call that is counted."""
        request = Request(
            handler.command, handler.path, {k.lower(): v for k, v in handler.headers.items()}, body
        )
        if githttp.is_git(request):
            self._git(handler, githttp.serve(request, lambda name: self.work / "r.git"))
            return
        self.calls += 1
        parts = urlsplit(handler.path)
        data, link = self._data(parts.path, int(parse_qs(parts.query).get("page", ["1"])[0]))
        raw = json.dumps(data).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(raw)))
        if link:
            handler.send_header("Link", link)
        handler.end_headers()
        handler.wfile.write(raw)

    def _data(self, path: str, page: int) -> tuple[object, str]:
        if path.endswith("/pulls"):
            more = page * 100 < len(self.rows)
            link = f'<{self.url}{path}?state=open&per_page=100&page={page + 1}>; rel="next"' if more else ""
            return self.rows[(page - 1) * 100 : page * 100], link
        if "/pulls/" in path:
            return self.rows[int(path.rsplit("/", 1)[1]) - 1], ""
        return {"id": 1, "full_name": "o/r", "default_branch": "main"}, ""

    def _git(self, handler: BaseHTTPRequestHandler, answer: object) -> None:
        assert isinstance(answer, Stream)
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("Connection", "close")
        handler.end_headers()
        while piece := answer.source.read(1 << 16):
            handler.wfile.write(piece)
        answer.done()
        handler.close_connection = True


def run(work: Path, server: Server, heads: dict[int, str], kind: str) -> Row:
    """One run of the gate, which must pass."""
    recipe = work / "recipe.yaml"
    base = git(work / "r.git", "rev-parse", "main")
    recipe.write_text(
        f"schema: tic/recipe/v1\nname: bench\nforge: {{api: '{server.url}'}}\npull_requests:\n  ours:\n"
        f"    url: {server.url}/o/r/pull/{OURS}\n    git: {server.url}/o/r.git\n"
        f"    target: {{owner: o, branch: main}}\n    base: {base}\n    head: {heads[OURS]}\n"
    )
    server.calls, started = 0, time.monotonic()
    argv = [sys.executable, "-m", "tic_manifest", "gate", str(recipe), "--work", str(work / ".tic")]
    with (work / "said").open("wb+") as said:
        tool = subprocess.Popen(
            [*argv, "--output", "json"], stdout=said, stderr=subprocess.STDOUT, start_new_session=True
        )
        together = watched(tool)
        seconds = time.monotonic() - started
        if tool.returncode != 0:
            said.seek(0)
            print(said.read()[-3000:].decode(errors="replace"), file=sys.stderr)
            raise SystemExit("the gate did not pass on the generated repository")
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    stored = sum(
        one.stat().st_size for one in (work / ".tic/store/git").rglob("objects/**/*") if one.is_file()
    )
    return Row(kind, seconds, server.calls, largest, together, stored >> 10)


def real(mirror: Path) -> str:
    """Time per pull request for the exact set rule on a real history, by the tool's own adapter."""
    runner = GitRunner(os.environ)
    listed = git(mirror, "for-each-ref", "--format=%(refname) %(objectname)", "refs/pull")
    refs = (line.split() for line in listed.splitlines())
    heads = {int(name.split("/")[2]): oid for name, oid in refs if name.endswith("/head")}
    if not heads:
        return "not_run (the mirror has no refs/pull/*/head)"
    sets, started = GateMirror(runner, mirror, HttpRemote(runner, "", "")), time.monotonic()
    own = sets.own_of(heads, [git(mirror, "rev-parse", "HEAD")])
    sharing = sum(bool(own[one] & own[two]) for one, two in pairwise(sorted(own)))
    each = (time.monotonic() - started) / len(heads)
    return f"{len(heads)} pull requests, {each * 1000:.2f} ms each ({sharing} share commits with the next)"


if __name__ == "__main__":
    sys.exit(main())
