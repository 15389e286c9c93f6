"""Scripted answers: `api.json` and `registry.json`, served in order by method, path and query."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

PHASES = ("open", "poll", "close")
ANSWER_KEYS = frozenset({"status", "headers", "body", "body_from", "until", "truncate", "delay_ms", "reset"})

Query = tuple[tuple[str, str], ...]


@dataclass
class _Row:
    """Answers of one key, and how far the client has come."""

    answers: list[dict[str, Any]]
    at: int = 0
    phase: int = 0
    reads: int = 0
    null_served: bool = False


class Script:
    """Answers by key. A key with a query wins over its path alone; the last answer repeats.

    An answer with neither `status`, `body` nor `body_from` puts its faults on the unscripted answer. A key
    may end in `*`: it stands for every path that begins so, and yields to any other key.
    """

    def __init__(self, data: Mapping[str, Any] | None) -> None:
        self._lock = threading.Lock()
        self._rows = {_key(key): _Row(_answers(key, value)) for key, value in (data or {}).items()}

    def take(
        self, method: str, target: str, phase: str | None, *, consume: bool = True
    ) -> dict[str, Any] | None:
        """The answer that is due, and the next one from then on; None where nothing is scripted.

        `consume=False` reads the answer and leaves it due.
        """
        with self._lock:
            row = self._find(method, target)
            if row is None:
                return None
            row.phase = _phase(row, phase)
            row.reads += 1
            row.at = _due(row, row.phase)
            answer = row.answers[row.at]
            if consume and "until" not in answer and row.at < len(row.answers) - 1:
                row.at += 1
            return answer

    def peek(self, method: str, target: str, phase: str | None) -> dict[str, Any] | None:
        """The answer that would be due, with nothing counted."""
        with self._lock:
            row = self._find(method, target)
            if row is None:
                return None
            return row.answers[_due(row, row.phase if phase not in PHASES else PHASES.index(phase))]

    def head(self, target: str) -> dict[str, Any] | None:
        """What a HEAD request gets where only GET is scripted: its answer, left due; no fault alone."""
        told = self.peek("GET", target, None)
        return told if told and whole(told) else None

    def remember(self, method: str, target: str, *, null: bool) -> None:
        """Whether the last answer of a key said `mergeable: null`: the next read of it is then a poll."""
        with self._lock:
            row = self._find(method, target)
            if row:
                row.null_served = null

    def bodies(self) -> Iterator[tuple[str, str, Any]]:
        """Method, path and body of every scripted answer."""
        for (method, path, _), row in self._rows.items():
            for answer in row.answers:
                yield method, path, answer.get("body")

    def _find(self, method: str, target: str) -> _Row | None:
        _, path, query = _key(f"{method} {target}")
        for wanted in (query or (), None):
            if (method, path, wanted) in self._rows:
                return self._rows[(method, path, wanted)]
        stars = [key for key in self._rows if key[0] == method and _starts(path, key[1])]
        return self._rows[max(stars, key=lambda key: len(key[1]))] if stars else None


def whole(answer: Mapping[str, Any]) -> bool:
    """Whether a scripted answer has content of its own, not only faults and headers."""
    return bool({"status", "body", "body_from"} & set(answer))


def _starts(path: str, pattern: str) -> bool:
    return pattern.endswith("*") and path.startswith(pattern[:-1])


def _answers(key: str, value: Any) -> list[dict[str, Any]]:
    answers = value if isinstance(value, list) else [value]
    if not answers or not all(isinstance(one, dict) for one in answers):
        raise ValueError(f"{key}: answers are a list of objects")
    for one in answers:
        if set(one) - ANSWER_KEYS or one.get("until", "open") not in PHASES:
            raise ValueError(f"{key}: an answer has unknown keys or an unknown `until`: {sorted(one)}")
    return answers


def _key(text: str) -> tuple[str, str, Query | None]:
    """Method, path with one spelling of its escapes, and the sorted query (None where there is none)."""
    method, _, target = text.partition(" ")
    parts = urlsplit(target)
    path = "/".join(quote(unquote(part), safe="*:@!$&'()+,;=~") for part in parts.path.split("/"))
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    query = tuple(sorted(pair for pair in pairs if pair != ("page", "1")))
    return method.upper(), path, query if parts.query else None


def _due(row: _Row, phase: int) -> int:
    at = row.at
    while at < len(row.answers) - 1 and _expired(row.answers[at], phase):
        at += 1
    return at


def _expired(answer: Mapping[str, Any], phase: int) -> bool:
    return "until" in answer and phase > PHASES.index(answer["until"])


def _phase(row: _Row, phase: str | None) -> int:
    """Where the client is. It says so in a header; else guessed: first read, after a null, anything later.

    After the closing re-read comes a phase of its own, in which even `"until": "close"` is over.
    """
    if phase in PHASES:
        told = PHASES.index(phase)
        return 3 if row.phase >= 2 and told < 2 else told
    if row.reads == 0:
        return 0
    return 1 if row.null_served else 2
