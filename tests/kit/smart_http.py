"""A git server over smart HTTP for tests: partial clones on or off, a password, refusals after so many fetches."""

from __future__ import annotations

import base64
import gzip
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from scenarios import githttp
from scenarios.httpd import Answer, Request, Server
from scenarios.reply import Reply

GITHUB = {"uploadpack.allowFilter": "true", "uploadpack.allowAnySHA1InWant": "true"}
NO_FILTER = {"uploadpack.allowFilter": "false", "uploadpack.allowAnySHA1InWant": "true"}
TIPS_ALONE = {
    "uploadpack.allowFilter": "true", "uploadpack.allowAnySHA1InWant": "false", "protocol.version": "0",
}  # fmt: skip


@dataclass
class GitServer:
    """Serves the repositories below `root` as `URL/o/NAME.git`; close it."""

    root: Path
    settings: Mapping[str, str] = field(default_factory=lambda: GITHUB)
    password: str = ""
    fetches_left: int = 1 << 30
    heard: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._server = Server(self._answer)
        self.url = self._server.url

    def close(self) -> None:
        """Stop."""
        self._server.close()

    def wanted(self) -> int:
        """How many fetches were asked for."""
        return sum(b"command=fetch" in _body(one) or b"want " in _body(one)[:200] for one in self.heard)

    def _answer(self, request: Request) -> Answer:
        self.heard.append(request)
        if self.password and request.headers.get("authorization") != self._basic():
            return Reply(401, b"who are you?\n", {"WWW-Authenticate": 'Basic realm="git"'})
        if request.method == "POST" and b"command=ls-refs" not in _body(request):
            self.fetches_left -= 1
            if self.fetches_left < 0:
                return Reply(503, b"not now\n", {"Content-Type": "text/plain"})
        return githttp.serve(request, self._find, self.settings)

    def _basic(self) -> str:
        return "Basic " + base64.b64encode(f"me:{self.password}".encode()).decode()

    def _find(self, name: str) -> Path | None:
        path = self.root / f"{name.rpartition('/')[2]}.git"
        return path if path.is_dir() else None


def _body(request: Request) -> bytes:
    packed = request.headers.get("content-encoding") == "gzip"
    return gzip.decompress(request.body) if packed else request.body
