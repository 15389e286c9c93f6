"""The local forge: GitHub's REST interface over bare repositories. Read only; nothing here is scripted."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from scenarios.httpd import Request
from scenarios.pulls import Pulls
from scenarios.reply import Reply, json_reply
from scenarios.shapes import Shapes
from scenarios.world import Repository, World

DOCS = "https://docs.github.com/rest"
Overlay = Callable[[str], Mapping[str, Any] | None]
"""What the script says of a pull request, by the path of its answer."""

_ROUTES: list[tuple[re.Pattern[str], str]] = [
    (re.compile(pattern + "$"), name)
    for pattern, name in (
        ("", "_repo"),
        ("/pulls", "_pulls"),
        ("/pulls/([0-9]+)", "_pull"),
        ("/pulls/([0-9]+)/commits", "_commits"),
        ("/pulls/([0-9]+)/files", "_files"),
        ("/pulls/([0-9]+)/merge", "_merged"),
        ("/issues/([0-9]+)", "_issue"),
        ("/issues/([0-9]+)/(?:timeline|events|comments)", "_events"),
        ("/branches", "_branches"),
        ("/branches/([^/]+)", "_branch"),
        ("/git/refs?/(heads/.+|tags/.+|pull/.+)", "_ref"),
        ("/git/matching-refs/(.+)", "_matching"),
        ("/git/commits/([0-9a-f]{40})", "_commit"),
        ("/commits/([0-9a-f]{40})/pulls", "_pulls_of"),
        ("/commits/(.+)", "_commit"),
        ("/compare/(.+)", "_compare"),
    )
]


class GitHub:
    """Answers for one world under one address; `overlay` keeps listings in step with what is scripted."""

    def __init__(self, world: World, api: str, overlay: Overlay = lambda path: None) -> None:
        self.world = world
        self.api = api
        self.shapes = Shapes(api)
        self.pulls = Pulls(world, self.shapes)
        self._overlay = overlay

    def reply(self, request: Request, path: str) -> Reply:
        """The answer to a request; `path` is its path below the address of the interface."""
        if request.method not in ("GET", "HEAD"):
            return self._error(403, "Resource not accessible")
        if path == "/rate_limit":
            return self._ok(request, _limits())
        found = re.match(r"^/(?:repos/([^/]+)/([^/]+)|repositories/([0-9]+))(/.*)?$", path)
        if not found:
            return self._error(404, "Not Found")
        rest = (found[4] or "").rstrip("/")
        if found[3]:
            return self._in(request, self.world.by_id(int(found[3])), rest)
        name = f"{unquote(found[1])}/{unquote(found[2])}"
        moved = None if self.world.find(name) else self.world.moved(name)
        return self._moved(moved, rest, request) if moved else self._in(request, self.world.find(name), rest)

    def _in(self, request: Request, repo: Repository | None, rest: str) -> Reply:
        for pattern, name in _ROUTES if repo else []:
            if found := pattern.match(rest):
                reply: Reply = getattr(self, name)(request, repo, *map(unquote, found.groups()))
                return reply
        return self._error(404, "Not Found")

    def _moved(self, repo: Repository, rest: str, request: Request) -> Reply:
        url = f"{self.api}/repositories/{repo.id}{rest}" + (f"?{request.query}" if request.query else "")
        told = {
            "message": "Moved Permanently",
            "url": url,
            "documentation_url": f"{DOCS}/guides/best-practices",
        }
        return json_reply(301, told, {"Location": url})

    def _ok(self, request: Request, value: Any, headers: Mapping[str, str] | None = None) -> Reply:
        reply = json_reply(200, value, {**_standard(), **(headers or {})})
        tag = f'W/"{hashlib.sha256(reply.body).hexdigest()}"'
        told = {**reply.headers, "ETag": tag}
        if tag in request.headers.get("if-none-match", ""):
            return Reply(304, b"", told)
        return Reply(200, reply.body, told)

    def _error(self, status: int, message: str) -> Reply:
        told = {"message": message, "documentation_url": DOCS, "status": str(status)}
        return json_reply(status, told, _standard())

    def _page(
        self, request: Request, repo: Repository, rest: str, rows: Sequence[Any], make: Any = None
    ) -> Reply:
        """One page of rows, with GitHub's Link header: it names the repository by its number."""
        query = dict(parse_qsl(request.query))
        size = min(max(_int(query.get("per_page"), 30), 1), 100)
        page, last = max(_int(query.get("page"), 1), 1), max(1, -(-len(rows) // size))
        shown = [make(row) if make else row for row in rows[(page - 1) * size : page * size]]
        url = f"{self.api}/repositories/{repo.id}{rest}"
        near = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
        wanted = [
            one
            for one in near
            if (one in ("next", "last") and page < last) or (one in ("prev", "first") and page > 1)
        ]
        links = [f'<{url}?{urlencode({**query, "page": near[one]})}>; rel="{one}"' for one in wanted]
        return self._ok(request, shown, {"Link": ", ".join(links)} if links else {})

    def _repo(self, request: Request, repo: Repository) -> Reply:
        return self._ok(request, self.shapes.repository(repo, full=True))

    def _pulls(self, request: Request, repo: Repository) -> Reply:
        query = dict(parse_qsl(request.query))
        rows = [row for number in repo.pull_numbers() if _listed(row := self._row(repo, number), query)]
        if query.get("direction") == "asc":
            rows.reverse()
        return self._page(request, repo, "/pulls", rows)

    def _row(self, repo: Repository, number: int) -> dict[str, Any]:
        row = self.pulls.simple(repo, number)
        told = self._overlay(f"/repos/{repo.full_name}/pulls/{number}") or {}
        return row | {key: value for key, value in told.items() if key in row or key == "stack"}

    def _pull(self, request: Request, repo: Repository, number: str) -> Reply:
        if int(number) not in repo.pull_numbers():
            return self._error(404, "Not Found")
        return self._ok(request, self.pulls.single(repo, int(number)))

    def _issue(self, request: Request, repo: Repository, number: str) -> Reply:
        return self._pull(request, repo, number)

    def _merged(self, request: Request, repo: Repository, number: str) -> Reply:
        known = int(number) in repo.pull_numbers()
        merged = known and self.pulls.simple(repo, int(number))["merged_at"]
        return Reply(204) if merged else self._error(404, "Not Found")

    def _events(self, request: Request, repo: Repository, number: str) -> Reply:
        rows = repo.pull_facts(int(number)).get("timeline", [])
        return self._page(request, repo, f"/issues/{number}/timeline", rows)

    def _commits(self, request: Request, repo: Repository, number: str) -> Reply:
        return self._page(request, repo, f"/pulls/{number}/commits", self.pulls.commits(repo, int(number)))

    def _files(self, request: Request, repo: Repository, number: str) -> Reply:
        return self._page(request, repo, f"/pulls/{number}/files", self.pulls.files(repo, int(number)))

    def _branches(self, request: Request, repo: Repository) -> Reply:
        rows = [(ref.removeprefix("refs/heads/"), sha) for ref, sha in repo.bare.refs("refs/heads/").items()]
        return self._page(request, repo, "/branches", rows, lambda row: self.shapes.short_branch(repo, *row))

    def _branch(self, request: Request, repo: Repository, name: str) -> Reply:
        sha = repo.branch(name)
        return (
            self._ok(request, self.shapes.branch(repo, name, sha))
            if sha
            else self._error(404, "Branch not found")
        )

    def _ref(self, request: Request, repo: Repository, name: str) -> Reply:
        sha = repo.bare.refs(f"refs/{name}").get(f"refs/{name}")
        return (
            self._ok(request, self.shapes.ref(repo, f"refs/{name}", sha))
            if sha
            else self._error(404, "Not Found")
        )

    def _matching(self, request: Request, repo: Repository, prefix: str) -> Reply:
        refs = [pair for pair in repo.bare.refs("refs/").items() if pair[0].startswith(f"refs/{prefix}")]
        return self._ok(request, [self.shapes.ref(repo, *pair) for pair in refs])

    def _commit(self, request: Request, repo: Repository, revision: str) -> Reply:
        sha = repo.bare.commit(revision)
        if sha is None:
            return self._error(422, f"No commit found for SHA: {revision}")
        return self._ok(request, self.shapes.commit(repo, sha))

    def _pulls_of(self, request: Request, repo: Repository, sha: str) -> Reply:
        rows = [self._row(repo, one) for one in repo.pull_numbers() if self._holds(repo, one, sha)]
        return self._page(request, repo, f"/commits/{sha}/pulls", rows)

    def _holds(self, repo: Repository, number: int, sha: str) -> bool:
        return any(one["sha"] == sha for one in self.pulls.commits(repo, number))

    def _compare(self, request: Request, repo: Repository, ends: str) -> Reply:
        base, _, head = ends.partition("...")
        left, right = (repo.bare.commit(one.rpartition(":")[2]) for one in (base, head))
        merge_base = repo.bare.git("merge-base", left or "", right or "")[1].strip()
        if not (left and right and merge_base):
            return self._error(404, "Not Found")
        ahead, behind = repo.bare.range(right, f"^{left}"), repo.bare.count(left, f"^{right}")
        status = {(False, False): "identical", (True, False): "ahead", (False, True): "behind"}
        page, url = (
            f"{self.shapes.web}/{repo.full_name}/compare/{ends}",
            f"{self.api}/repos/{repo.full_name}/compare",
        )
        return self._ok(
            request,
            {
                "url": f"{url}/{ends}",
                "html_url": page,
                "permalink_url": page,
                "diff_url": f"{page}.diff",
                "patch_url": f"{page}.patch",
                "base_commit": self.shapes.commit(repo, left),
                "merge_base_commit": self.shapes.commit(repo, merge_base),
                "status": status.get((bool(ahead), bool(behind)), "diverged"),
                "ahead_by": len(ahead),
                "behind_by": behind,
                "total_commits": len(ahead),
                "commits": [self.shapes.commit(repo, one) for one in ahead[:250]],
                "files": [self.shapes.file(repo, right, *one) for one in repo.bare.changes(left, right)],
            },
        )


def _listed(row: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    state = query.get("state", "open")
    return (
        state in ("all", row["state"])
        and query.get("base", row["base"]["ref"]) == row["base"]["ref"]
        and query.get("head", row["head"].get("label")) == row["head"].get("label")
    )


def _int(text: str | None, default: int) -> int:
    return int(text) if text and text.isdigit() else default


def _standard() -> dict[str, str]:
    reset = str(int(time.time()) + 3600)
    return {
        "X-GitHub-Media-Type": "github.v3; format=json",
        "X-RateLimit-Limit": "5000",
        "X-RateLimit-Remaining": "4999",
        "X-RateLimit-Used": "1",
        "X-RateLimit-Reset": reset,
        "X-RateLimit-Resource": "core",
        "Cache-Control": "private, max-age=60, s-maxage=60",
        "X-GitHub-Request-Id": "0000:000000:0000000:0000000:00000000",
    }


def _limits() -> dict[str, Any]:
    core = {"limit": 5000, "remaining": 4999, "used": 1, "reset": int(time.time()) + 3600}
    return {"resources": {"core": core, "search": core}, "rate": core}
