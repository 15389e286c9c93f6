"""Whether a run is what `expect.json` says. Every difference is a line of text; no line means it passed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Seen:
    """What a run left: exit status, output, the bytes of the JSON report, the work folder."""

    status: int | None
    stdout: str
    stderr: str
    raw: bytes
    work: Path

    @property
    def report(self) -> Mapping[str, Any] | None:
        """The JSON report; None where there is none."""
        try:
            value = json.loads(self.raw)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


def differences(expect: Mapping[str, Any], seen: Seen) -> list[str]:
    """Every point in which a run differs from what is expected."""
    return [*_exit(expect, seen), *_report(expect, seen), *_texts(expect, seen), *_files(expect, seen)]


def matches(pattern: str, code: str) -> bool:
    """A trailing `*` is a prefix; a code without a variant is its whole family; else the code itself."""
    if pattern.endswith("*"):
        return code.startswith(pattern[:-1])
    return code == pattern or ("/" not in pattern and code.startswith(pattern + "/"))


def _exit(expect: Mapping[str, Any], seen: Seen) -> Iterable[str]:
    allowed = expect["exit"] if isinstance(expect["exit"], list) else [expect["exit"]]
    if seen.status not in allowed:
        yield f"exit: expected {' or '.join(map(str, allowed))}, was {seen.status}"
    if seen.report is not None and seen.report.get("exitCode") != seen.status:
        yield f"report: exitCode {seen.report.get('exitCode')} but the process ended with {seen.status}"


def _report(expect: Mapping[str, Any], seen: Seen) -> Iterable[str]:
    asked = [key for key in ("outcome", "must", "must_not", "subjects") if key in expect]
    if asked and seen.report is None:
        yield f"no JSON report to find {', '.join(asked)} in"
        return
    report = seen.report or {}
    findings = [one for one in report.get("findings", []) if isinstance(one, dict)]
    codes = [str(one.get("code")) for one in findings]
    if "outcome" in expect and report.get("outcome") != expect["outcome"]:
        yield f"outcome: expected {expect['outcome']}, was {report.get('outcome')}"
    for pattern in expect.get("must", []):
        if not any(matches(pattern, code) for code in codes):
            yield f"must: no {pattern} among {_list(codes)}"
    for pattern in expect.get("must_not", []):
        if hits := [code for code in codes if matches(pattern, code)]:
            yield f"must_not: {pattern} is there: {_list(hits)}"
    yield from _subjects(expect.get("subjects", {}), findings)


def _subjects(expected: Mapping[str, Any], findings: list[dict[str, Any]]) -> Iterable[str]:
    for pattern, wanted in expected.items():
        found = {str(one.get("subject")) for one in findings if matches(pattern, str(one.get("code")))}
        for subject in wanted if isinstance(wanted, list) else [wanted]:
            if subject not in found:
                yield f"subjects: {pattern} is not said of {subject} but of {_list(sorted(found))}"


def _texts(expect: Mapping[str, Any], seen: Seen) -> Iterable[str]:
    said = f"{seen.stdout}\n{seen.stderr}"
    yield from (f"contains: output lacks {text!r}" for text in expect.get("contains", []) if text not in said)
    yield from (
        f"not_contains: output has {text!r}" for text in expect.get("not_contains", []) if text in said
    )


def _files(expect: Mapping[str, Any], seen: Seen) -> Iterable[str]:
    for name, text in expect.get("files", {}).items():
        path = seen.work / name
        if not path.is_file():
            yield f"files: {name} is not there"
        elif text not in path.read_text(errors="replace"):
            yield f"files: {name} lacks {text!r}"
    for name in expect.get("absent", []):
        if (seen.work / name).exists() or (seen.work / name).is_symlink():
            yield f"absent: {name} is there"


def _list(codes: Iterable[str]) -> str:
    return ", ".join(codes) or "none"
