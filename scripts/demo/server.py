"""The demo forge's server: GitHub-shaped answers and git's smart HTTP, on loopback, read only."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

from answers import NAME, NOT_FOUND, Answer, answer
from repository import ISOLATED

MAX_REQUEST = 64 << 20
GIT_PATH = re.compile(rf"/({NAME})/({NAME}?)(?:\.git)?/(info/refs|git-upload-pack)")


class Handler(BaseHTTPRequestHandler):
    """GET for the interface, GET and POST for git."""

    protocol_version = "HTTP/1.1"
    server_version = "demo-forge"
    root: Path

    def do_GET(self) -> None:
        """Answer the interface, or the first half of a fetch."""
        path, _, query = self.path.partition("?")
        if path.startswith("/api/v3/"):
            self._json(answer(self.root, self.path.removeprefix("/api/v3")))
        elif path.endswith("/info/refs") and query == "service=git-upload-pack":
            self._git(path, query)
        else:
            self._json(NOT_FOUND)

    def do_POST(self) -> None:
        """The second half of a fetch; nothing can be pushed."""
        path, _, query = self.path.partition("?")
        if path.endswith("/git-upload-pack") and not query:
            self._git(path, query)
        else:
            self.close_connection = True
            self._json(Answer(403, {"message": "this forge is read only"}))

    def _json(self, given: Answer) -> None:
        body = json.dumps(given.body, sort_keys=True).encode()
        self.send_response(given.status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _git(self, path: str, query: str) -> None:
        found = GIT_PATH.fullmatch(path)
        place = self.root / found[1] / f"{found[2]}.git" if found else None
        self.close_connection = True
        if found is None or place is None or not (place / "HEAD").is_file():
            self._json(NOT_FOUND)
            return
        environment = self._cgi(f"/{found[1]}/{found[2]}.git/{found[3]}", query)
        command = ["git", "http-backend"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        ) as backend:
            feeder = threading.Thread(target=self._feed, args=(backend.stdin,))
            feeder.start()
            self._relay(backend.stdout)
            feeder.join()

    def _cgi(self, path: str, query: str) -> dict[str, str]:
        """The environment of RFC 3875 as git-http-backend reads it."""
        given = {
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": self.client_address[0],
        }
        own = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        return {**ISOLATED, **own, **given}

    def _feed(self, stdin: IO[bytes] | None) -> None:
        assert stdin is not None
        try:
            for block in self._request_body():
                stdin.write(block)
            stdin.close()
        except (BrokenPipeError, ConnectionError, ValueError):
            stdin.close()

    def _request_body(self) -> Iterator[bytes]:
        """The body by length or in chunks (git sends large ones in chunks), bounded."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            total = 0
            while (size := int(self.rfile.readline(32).split(b";")[0], 16)) > 0:
                total += size
                if total > MAX_REQUEST:
                    raise ValueError("request too large")
                yield self.rfile.read(size)
                self.rfile.readline(4)
            return
        yield self.rfile.read(min(int(self.headers.get("Content-Length") or 0), MAX_REQUEST))

    def _relay(self, stdout: IO[bytes] | None) -> None:
        """Turn the CGI answer into an HTTP answer that ends with the connection."""
        assert stdout is not None
        headers: list[tuple[str, str]] = []
        while line := stdout.readline(1 << 16).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers.append((name, value.strip()))
        status = next((int(v.split()[0]) for n, v in headers if n.lower() == "status"), 200)
        self.send_response(status)
        for name, value in headers:
            if name.lower() != "status":
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        while block := stdout.read(1 << 16):
            self.wfile.write(block)


def serve(root: Path, port: int, ready: Path) -> None:
    """Serve until SIGTERM; `ready` gets {"pid", "port"} once the socket listens."""
    handler = type("RootHandler", (Handler,), {"root": root})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    part = ready.with_name(ready.name + ".part")
    state: dict[str, Any] = {"pid": os.getpid(), "port": server.server_address[1]}
    part.write_text(json.dumps(state))
    part.replace(ready)
    server.serve_forever(poll_interval=0.2)


def main(argv: list[str]) -> int:
    """server.py --root DIR --ready FILE [--port N]"""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--ready", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    args = parser.parse_args(argv)
    serve(args.root.resolve(), args.port, args.ready)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
