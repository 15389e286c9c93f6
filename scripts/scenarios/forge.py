"""One address that answers as GitHub and serves git: what is scripted first, else the bare repositories."""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from scenarios import githttp
from scenarios.github import GitHub
from scenarios.httpd import Answer, Request
from scenarios.reply import Reply, scripted
from scenarios.script import Script, whole
from scenarios.world import World

PREFIX = "/api/v3"
PHASE_HEADER = "x-tic-phase"
NULLS = 2


class Forge:
    """The forge of one work folder. `nulls` answers `mergeable: null` twice for every pull request."""

    def __init__(self, work: Path, *, script: Script | None = None, nulls: bool = False) -> None:
        self.work = work
        self._nulls = NULLS if nulls else 0
        self._served: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.use(script or Script(None))

    def use(self, script: Script) -> None:
        """Serve this script from now on."""
        self.script = script
        self.world = World(self.work, dict(_ids(script)))

    def answer(self, request: Request) -> Answer:
        """The answer to one request, git's included."""
        if githttp.is_git(request):
            return self._git(request)
        target, phase = self._canonical(request.target), request.headers.get(PHASE_HEADER)
        null = self._answers_null(request, target, phase)
        told = self.script.take(request.method, target, phase, consume=not null)
        if told is None and target != request.target:
            told = self.script.take(request.method, request.target, phase)
        if told is None and request.method == "HEAD":
            told = self.script.head(target)
        unscripted = None if told is not None and whole(told) else self._unscripted(request)
        reply = unscripted if told is None else scripted(told, unscripted, self.work)
        assert reply is not None
        return self._mergeable(request, target, reply, null=null)

    def _git(self, request: Request) -> Answer:
        told = self.script.take(request.method, request.target, request.headers.get(PHASE_HEADER))
        if told is not None and whole(told):
            return scripted(told, None, self.work)
        return githttp.serve(request, self.world.git_path)

    def _unscripted(self, request: Request) -> Reply:
        api = f"http://{request.headers.get('host', '127.0.0.1')}"
        path = request.path
        if path.startswith(PREFIX + "/"):
            api, path = api + PREFIX, path.removeprefix(PREFIX)
        phase = request.headers.get(PHASE_HEADER)
        return GitHub(self.world, api, lambda key: self._scripted_pull(key, phase)).reply(request, path)

    def _scripted_pull(self, path: str, phase: str | None) -> dict[str, Any] | None:
        told = self.script.peek("GET", path, phase)
        body = told.get("body") if told and told.get("status", 200) == 200 else None
        return body if isinstance(body, dict) else None

    def _canonical(self, target: str) -> str:
        """The target as scripts name it: without `/api/v3`, and by name where it goes by number."""
        path, mark, query = target.removeprefix(PREFIX).partition("?")
        parts = path.split("/")
        if parts[1:2] == ["repositories"] and len(parts) > 2 and parts[2].isdigit():
            repo = self.world.by_id(int(parts[2]))
            path = "/".join(["", "repos", repo.full_name, *parts[3:]]) if repo else path
        return path + mark + query

    def _answers_null(self, request: Request, target: str, phase: str | None) -> bool:
        """Whether this answer is to say null. One that says so by itself counts as scripted."""
        if request.method != "GET" or not _is_pull(target):
            return False
        told = self.script.peek("GET", target, phase)
        body = told.get("body") if told else None
        if told and whole(told) and not (isinstance(body, dict) and body.get("mergeable") is not None):
            return False
        with self._lock:
            return self._served[target] < self._nulls

    def _mergeable(self, request: Request, target: str, reply: Reply, *, null: bool) -> Reply:
        """Replace a merge state by null where that is asked for, and tell the script what was said."""
        if request.method != "GET" or not _is_pull(target) or reply.status != 200:
            return reply
        body = _object(reply)
        if null and body and body.get("mergeable") is not None:
            with self._lock:
                self._served[target] += 1
            body |= {"mergeable": None, "mergeable_state": "unknown"}
            reply = _with_body(reply, body)
        self.script.remember("GET", target, null=bool(body) and body.get("mergeable") is None)
        return reply


def _is_pull(target: str) -> bool:
    parts = target.partition("?")[0].split("/")
    return len(parts) == 6 and parts[1] == "repos" and parts[4] == "pulls" and parts[5].isdigit()


def _object(reply: Reply) -> dict[str, Any]:
    try:
        value = json.loads(reply.body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _with_body(reply: Reply, body: dict[str, Any]) -> Reply:
    headers = {key: value for key, value in reply.headers.items() if key.lower() != "etag"}
    return replace(reply, body=json.dumps(body, ensure_ascii=False).encode(), headers=headers)


def _ids(script: Script) -> list[tuple[str, int]]:
    """Numbers that scripted answers give to repositories, wherever in a body they stand."""
    found: list[tuple[str, int]] = []
    for _, path, body in script.bodies():
        found += _named_ids(body)
        for row in body if isinstance(body, list) else [body]:
            found += _base_id(path.split("/"), row)
    return found


def _named_ids(value: Any) -> list[tuple[str, int]]:
    if isinstance(value, list):
        return [pair for one in value for pair in _named_ids(one)]
    if not isinstance(value, dict):
        return []
    own = isinstance(value.get("full_name"), str) and type(value.get("id")) is int
    inner = [pair for one in value.values() for pair in _named_ids(one)]
    return [*inner, (value["full_name"], value["id"])] if own else inner


def _base_id(path: list[str], row: Any) -> list[tuple[str, int]]:
    """The base of a pull request is the repository of its path, named or not."""
    base = row.get("base") if isinstance(row, dict) and path[1:2] == ["repos"] and "pulls" in path else None
    repo = base.get("repo") if isinstance(base, dict) else None
    number = repo.get("id") if isinstance(repo, dict) else None
    return [("/".join(path[2:4]), number)] if type(number) is int else []
