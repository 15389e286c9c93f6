"""A local HTTP server whose answers are Reply values, with truncation, delay and reset."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO

from scenarios.reply import Reply

PIECE = 1 << 16


@dataclass(frozen=True)
class Request:
    """One request. `target` is path and query as sent; the body is whole."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """What follows the question mark."""
        return self.target.partition("?")[2]


@dataclass(frozen=True)
class Stream:
    """An answer of unknown length that another process writes."""

    status: int
    headers: Mapping[str, str]
    source: IO[bytes]
    done: Callable[[], None] = field(default=lambda: None)


Answer = Reply | Stream


def time_scale() -> float:
    """TIC_TIME_SCALE, one where it is not set."""
    return float(os.environ.get("TIC_TIME_SCALE", "1"))


class _Server6(ThreadingHTTPServer):
    address_family = socket.AF_INET6


class Server:
    """Answers on a free loopback port (or the one given) from its start until `close`."""

    def __init__(
        self, answer: Callable[[Request], Answer], *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.log: list[str] = []
        handler = type("Handler", (_Handler,), {"answer": staticmethod(answer), "log": self.log})
        self._server = (_Server6 if ":" in host else ThreadingHTTPServer)((host, port), handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.address = f"{f'[{host}]' if ':' in host else host}:{self._server.server_address[1]}"
        self.url = f"http://{self.address}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer nothing more; the port is free afterwards."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "local", ""
    disable_nagle_algorithm = True
    answer: Callable[[Request], Answer]
    log: list[str]

    def _any(self) -> None:
        body = self._read_body()
        request = Request(
            self.command, self.path, {key.lower(): value for key, value in self.headers.items()}, body
        )
        try:
            answer = self.answer(request)
        except Exception as error:
            answer = Reply(500, f"local server: {error!r}".encode())
        self.log.append(f"{self.command} {self.path} {answer.status}")
        try:
            self._send_stream(answer) if isinstance(answer, Stream) else self._send_reply(answer)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _any

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(iter(self._chunk, b""))
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().split(b";")[0], 16)
        data = self.rfile.read(size)
        self.rfile.readline()
        return data

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        # a scripted Date stands alone: two of them are none
        self.send_response_only(status)
        if not any(key.lower() == "date" for key in headers):
            self.send_header("Date", self.date_time_string())
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()

    def _send_reply(self, reply: Reply) -> None:
        if reply.delay_ms:
            time.sleep(reply.delay_ms / 1000 * time_scale())
        if reply.reset == 0:
            self._reset()
            return
        told = dict(reply.headers)
        if not any(key.lower() == "content-length" for key in told) and reply.status not in (204, 304):
            told["Content-Length"] = str(reply.size)
        self._head(reply.status, told)
        if self.command != "HEAD":
            self._body(reply)

    def _body(self, reply: Reply) -> None:
        cut = min(one for one in (reply.truncate, reply.reset, reply.size) if one is not None)
        if reply.file:
            self._copy(reply, cut)
        else:
            self.wfile.write(reply.body[:cut])
        self.wfile.flush()
        if reply.reset is not None:
            self._reset()
        elif cut < reply.size:
            self.close_connection = True

    def _copy(self, reply: Reply, left: int) -> None:
        assert reply.file
        with reply.file.open("rb") as stream:
            stream.seek(reply.offset)
            while left > 0 and (piece := stream.read(min(left, PIECE))):
                self.wfile.write(piece)
                left -= len(piece)

    def _reset(self) -> None:
        """End the connection with RST instead of FIN."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def _send_stream(self, stream: Stream) -> None:
        try:
            self._head(stream.status, {**stream.headers, "Connection": "close"})
            while piece := stream.source.read(PIECE):
                self.wfile.write(piece)
        finally:
            self.close_connection = True
            stream.done()

    def log_message(self, format: str, *args: object) -> None:
        """Requests are kept in `log`, not printed."""
