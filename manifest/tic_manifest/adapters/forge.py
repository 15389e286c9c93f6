"""A GitHub REST interface, read only: redirects, pages, rate limits and refusals told apart.

Implements `ports.Forge`. Sources: docs.github.com/rest (pulls, repos, git refs), rules/pr-gate.md F35-F41.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import quote

from tic_manifest.adapters.forge_http import Exchange, RawAnswer, origin
from tic_manifest.adapters.forge_map import ForgeMap
from tic_manifest.errors import RefusedError, UnavailableError
from tic_manifest.formats.strict_json import load_json
from tic_manifest.formats.urls import join_url
from tic_manifest.model.base import Digest, GitCommit

RETRIES = 3
"""How often a broken answer is asked for again."""

WAIT_BUDGET = 180.0
"""Seconds that one run may wait for rate limits, all waits together (before scaling)."""

PHASE = "X-Tic-Phase"
"""Request header: `open` (first reads), `poll`, `close` (closing re-read). Real forges ignore it."""

_HEADERS = {
    "Accept": "application/vnd.github+json",
    "User-Agent": "tic-manifest",
    "X-GitHub-Api-Version": "2022-11-28",
}
_NEXT = re.compile(r'<([^<>]+)>\s*;[^,]*\brel="?next"?')
_COMMIT = re.compile(r"^[0-9a-f]{40}$")
_BROKEN = {"BAD_RESPONSE", "TIMEOUT", "NETWORK"}


@dataclass(frozen=True)
class Page:
    """The data of one answer, and where the next page is."""

    status: int
    data: Any
    next: str = ""


@dataclass
class GitHubForge:
    """The forge at `api`, the URL as the recipe names it.

    `pause` waits that many seconds (the caller scales it; a replay does not wait).
    """

    api: str
    exchange: Exchange
    forge_map: ForgeMap = field(default_factory=lambda: ForgeMap({}))
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.time
    _phase: str = "open"
    _etags: dict[str, tuple[str, RawAnswer]] = field(default_factory=dict)
    _waited: float = 0.0
    _gave_up: bool = False
    """A question used up its retries: the verdict stays open, so the others are asked once."""
    _heard: Any = field(default_factory=hashlib.sha256)

    def repository(self, owner: str, repo: str) -> Mapping[str, Any]:
        """`GET /repos/{owner}/{repo}`, renames followed. Raises UnavailableError."""
        return self._object(f"/repos/{quote(owner, safe='')}/{quote(repo, safe='')}")

    def pull_request(self, owner: str, repo: str, number: int) -> Mapping[str, Any]:
        """`GET /repos/{owner}/{repo}/pulls/{number}`, never conditional: the read starts the merge test."""
        return self._object(f"/repos/{quote(owner, safe='')}/{quote(repo, safe='')}/pulls/{number:d}")

    def open_pull_requests(self, owner: str, repo: str) -> list[Mapping[str, Any]]:
        """Every open pull request of a repository, all pages, as listed. Raises UnavailableError."""
        path = f"/repos/{quote(owner, safe='')}/{quote(repo, safe='')}/pulls"
        url, seen, rows = self._url(f"{path}?state=open&per_page=100&sort=created&direction=asc"), set(), []
        while url:
            if url in seen:
                raise _bad("a page of the list names itself as the next")
            seen.add(url)
            page = self._page(url, conditional=True)
            if not isinstance(page.data, list) or not all(isinstance(one, dict) for one in page.data):
                raise _bad("a list page that is no list of objects")
            rows += page.data
            url = page.next
        return rows

    def branch_head(self, owner: str, repo: str, branch: str) -> GitCommit | None:
        """`GET …/git/ref/heads/{branch}`; None where the repository answers and the branch is gone."""
        where = f"/repos/{quote(owner, safe='')}/{quote(repo, safe='')}"
        try:
            data = self._object(f"{where}/git/ref/heads/{quote(branch, safe='/')}")
        except UnavailableError as error:
            if error.code != "NO_ACCESS" or "404" not in error.actual:
                raise
            self._object(where)
            return None
        commit = data.get("object", {}).get("sha") if isinstance(data.get("object"), dict) else None
        if not isinstance(commit, str) or not _COMMIT.match(commit):
            raise _bad("a ref without a commit")
        return commit

    def enter(self, phase: Literal["open", "poll", "close"]) -> None:
        """Say what the next questions are; a forge's log, or a scripted forge, can tell them apart by it."""
        self._phase = phase

    def commit_login(self, owner: str, repo: str, commit: GitCommit) -> str:
        """`GET …/commits/{sha}`: the author's account, "" where the forge shows none."""
        path = f"/repos/{quote(owner, safe='')}/{quote(repo, safe='')}/commits/{commit}"
        try:
            author = self._object(path).get("author")
        except UnavailableError:
            return ""
        login = author.get("login") if isinstance(author, dict) else None
        return login if isinstance(login, str) else ""

    def force_pushed(self, owner: str, repo: str, number: int) -> list[GitCommit]:
        """`GET …/issues/{number}/timeline`, first page: commits of force-push events; [] where not shown."""
        path = (
            f"/repos/{quote(owner, safe='')}/{quote(repo, safe='')}/issues/{number:d}/timeline?per_page=100"
        )
        try:
            rows = self._page(self._url(path), conditional=False).data
        except UnavailableError:
            return []
        events = [one for one in rows if isinstance(one, dict)] if isinstance(rows, list) else []
        pushed = (one.get("commit_id") for one in events if one.get("event") == "head_ref_force_pushed")
        return [oid for oid in pushed if isinstance(oid, str)]

    def answers(self) -> Digest:
        """Digest of status and body of every answer so far, in the order they came."""
        return str("sha256:" + self._heard.hexdigest())

    # one answer

    def _object(self, path: str) -> Mapping[str, Any]:
        page = self._page(self._url(path), conditional=False)
        if not isinstance(page.data, dict):
            raise _bad("an answer that is no object")
        return page.data

    def _url(self, path: str) -> str:
        return self.forge_map.there(self.api.rstrip("/")) + path

    def _page(self, url: str, *, conditional: bool) -> Page:
        for attempt in range(RETRIES + 1):
            try:
                return self._once(url, conditional=conditional)
            except UnavailableError as error:
                if error.code not in _BROKEN:
                    raise
                if self._gave_up or attempt == RETRIES:
                    self._gave_up = True
                    raise
                self.pause(float(2**attempt))
        raise AssertionError("unreachable")

    def _once(self, url: str, *, conditional: bool) -> Page:
        answer = self._followed(url, conditional=conditional)
        while _is_limited(answer):
            self._wait(answer)
            answer = self._followed(url, conditional=conditional)
        if answer.status in {401, 403, 404, 410, 451}:
            raise _no_access(answer.status)
        if answer.status != 200:
            raise _bad(f"HTTP status {answer.status}")
        return Page(200, _data(answer), self._next(url, answer))

    def _followed(self, url: str, *, conditional: bool) -> RawAnswer:
        for _ in range(6):
            answer = self._asked(url, conditional=conditional)
            if answer.status not in {301, 302, 307, 308}:
                return answer
            url = self._same_forge(join_url(url, answer.headers.get("location", "")))
        raise _bad("more than five redirects")

    def _asked(self, url: str, *, conditional: bool) -> RawAnswer:
        known = self._etags.get(url) if conditional else None
        headers = {**_HEADERS, PHASE: self._phase, **({"If-None-Match": known[0]} if known else {})}
        answer = self.exchange.get(url, headers)
        self._heard.update(b"%d %d\n" % (answer.status, len(answer.body)) + answer.body)
        if answer.status == 304 and known:
            return known[1]
        if conditional and answer.status == 200 and "etag" in answer.headers:
            self._etags[url] = (answer.headers["etag"], answer)
        return answer

    def _next(self, url: str, answer: RawAnswer) -> str:
        found = _NEXT.search(answer.headers.get("link", ""))
        return self._same_forge(join_url(url, found[1])) if found else ""

    def _same_forge(self, url: str | None) -> str:
        if url is None:
            raise _bad("the forge points at no URL")
        there = self.forge_map.there(url)
        if origin(there) != origin(self._url("")):
            raise _bad("the forge points at another host")
        return there

    def _wait(self, answer: RawAnswer) -> None:
        seconds = _seconds_to_wait(answer, self.clock())
        if self._waited + seconds > WAIT_BUDGET:
            raise UnavailableError(
                "RATE_LIMITED",
                "the forge's rate limit is used up",
                actual=f"it asks to wait {seconds:.0f} s",
                remedy=f"run the same command again {_reset_words(answer)}",
            )
        self._waited += seconds
        self.pause(seconds)


def _is_limited(answer: RawAnswer) -> bool:
    if answer.status not in {403, 429}:
        return False
    text = answer.body[:4096].decode("utf-8", "replace").lower()
    spent = answer.headers.get("x-ratelimit-remaining", "").strip() == "0"
    return answer.status == 429 or spent or "retry-after" in answer.headers or "rate limit" in text


def _seconds_to_wait(answer: RawAnswer, now: float) -> float:
    """Retry-After; else the reset by the forge's own clock; else a minute (docs.github.com, rate limits)."""
    after = answer.headers.get("retry-after", "").strip()
    if after.isdigit():
        return max(1.0, float(after))
    reset = answer.headers.get("x-ratelimit-reset", "").strip()
    if reset.isdigit() and answer.headers.get("x-ratelimit-remaining", "").strip() == "0":
        return max(1.0, float(reset) - _server_time(answer, now))
    return 60.0


def _server_time(answer: RawAnswer, now: float) -> float:
    try:
        return parsedate_to_datetime(answer.headers["date"]).timestamp()
    except (KeyError, ValueError, TypeError):
        return now


def _reset_words(answer: RawAnswer) -> str:
    reset = answer.headers.get("x-ratelimit-reset", "").strip()
    if reset.isdigit() and len(reset) < 12:
        return "after " + time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(reset)))
    return "in an hour"


def _data(answer: RawAnswer) -> Any:
    try:
        return load_json(answer.body, "answer of the forge")
    except RefusedError as error:
        if error.code == "JSON_DUPLICATE_KEY":
            raise
        raise _bad("a body that is no JSON document") from error


def _no_access(status: int) -> UnavailableError:
    return UnavailableError(
        "NO_ACCESS",
        "the forge does not show this",
        actual=f"HTTP status {status}",
        remedy="check the name in the recipe, and that GITHUB_TOKEN, or gh's login, may read it",
    )


def _bad(actual: str) -> UnavailableError:
    return UnavailableError(
        "BAD_RESPONSE",
        "the forge's answer cannot be used",
        actual=actual,
        remedy="run the same command again",
    )
