"""An HTTP answer as data, and the faults that a server may put on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Reply:
    """Status, headers and body. `file` is a body on disk; `truncate` and `reset` count bytes of the body."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None
    offset: int = 0
    truncate: int | None = None
    delay_ms: float = 0
    reset: int | None = None

    @property
    def size(self) -> int:
        """Length of the body in bytes."""
        return self.file.stat().st_size - self.offset if self.file else len(self.body)


def json_reply(status: int, value: Any, headers: Mapping[str, str] | None = None) -> Reply:
    """A JSON answer."""
    told = {"Content-Type": "application/json; charset=utf-8"} | dict(headers or {})
    return Reply(status, json.dumps(value, ensure_ascii=False).encode(), told)


def scripted(answer: Mapping[str, Any], unscripted: Reply | None, work: Path) -> Reply:
    """The answer of a script: its own content, or its faults and headers on the unscripted answer."""
    own = {"status", "body", "body_from"} & set(answer)
    reply = _content(answer, work) if own or unscripted is None else unscripted
    reset = answer.get("reset")
    return replace(
        reply,
        headers={**reply.headers, **answer.get("headers", {})},
        truncate=answer.get("truncate"),
        delay_ms=answer.get("delay_ms", 0),
        reset=None if reset in (None, False) else 0 if reset is True else int(reset),
    )


def _content(answer: Mapping[str, Any], work: Path) -> Reply:
    status = answer.get("status", 200)
    if "body_from" in answer:
        return Reply(status, file=_inside(work, answer["body_from"]))
    body = answer.get("body", {} if status < 400 else {"message": "scripted", "status": str(status)})
    if isinstance(body, str):
        return Reply(status, body.encode(), {"Content-Type": "application/json; charset=utf-8"})
    return Reply(status) if status == 304 else json_reply(status, body)


def _inside(work: Path, name: str) -> Path:
    path = (work / name).resolve()
    if not path.is_relative_to(work.resolve()) or not path.is_file():
        raise ValueError(f"body_from names no file of the work folder: {name}")
    return path
