"""SARIF 2.1.0, the part of it that GitHub code scanning reads.

Source: OASIS SARIF 2.1.0 and GitHub's "SARIF support for code scanning": every result has a message, a
physical location and a `primaryLocationLineHash`; at most 5,000 results of a run are kept, so the rest is
counted in a notification and never dropped in silence.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from tic_manifest import __version__
from tic_manifest.model.codes import lookup
from tic_manifest.model.verdict import Finding, Report, Status
from tic_manifest.render import view
from tic_manifest.render.escape import printable

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MAX_RESULTS = 5000
_SAID = ("expected", "actual", "to do")
_LEVELS = {Status.FAIL: "error", Status.PASS: "note"}


def render(report: Report, *, color: bool = False) -> str:
    """One run; findings and undecided checks are results, notes are results of level `note`."""
    said = [*view.everything(report), *view.notes(report)]
    kept, left = said[:MAX_RESULTS], len(said[MAX_RESULTS:])
    rules = sorted({_rule_id(one) for one in kept})
    driver = {"name": "tic-manifest", "version": __version__, "rules": [_rule(one) for one in rules]}
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"tic-manifest/{printable(report.command)}/"},
        "invocations": [_invocation(report, left)],
        "results": list(_results(report, kept, rules)),
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _invocation(report: Report, left: int) -> dict[str, Any]:
    outcome = report.outcome.value
    made: dict[str, Any] = {"executionSuccessful": outcome in ("pass", "fail"), "exitCode": report.exit_code}
    made["properties"] = {"outcome": outcome, "partial": report.partial}
    if left:
        text = f"{left} more results were left out: code scanning keeps {MAX_RESULTS}; see --output json"
        made["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    return made


def _rule_id(said: Finding) -> str:
    """The code, its variant included; the pseudo-code `check/ID` of a check is a rule of its own."""
    return printable(said.code)


def _rule(rule_id: str) -> dict[str, Any]:
    meaning, remedy = _words(rule_id)
    text = f"{meaning}. To do: {remedy}. tic-manifest explain {rule_id}" if remedy else f"{meaning}."
    return {
        "id": rule_id,
        "shortDescription": {"text": meaning[:1024]},
        "fullDescription": {"text": meaning[:1024]},
        "help": {"text": text},
        "properties": {"tags": ["delivery"], "precision": "very-high"},
    }


def _words(rule_id: str) -> tuple[str, str]:
    try:
        family = lookup(rule_id)
    except KeyError:
        return f"{rule_id} is not decided", ""
    return family.variants.get(rule_id.partition("/")[2]) or family.meaning, family.remedy


def _results(report: Report, kept: Iterable[Finding], rules: list[str]) -> Iterable[dict[str, Any]]:
    """Results with stable fingerprints; findings alike in code and subject are told apart by their number."""
    seen: dict[str, int] = {}
    for said in kept:
        key = _fingerprint(report, said)
        seen[key] = seen.get(key, 0) + 1
        yield _result(report, said, rules, f"{key}:{seen[key]}")


def _fingerprint(report: Report, said: Finding) -> str:
    """Not of values that move from run to run: the same gap stays one alert while its evidence changes."""
    parts = json.dumps([report.command, said.code, said.subject, said.evidence.get("file")])
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()


def _result(report: Report, said: Finding, rules: list[str], fingerprint: str) -> dict[str, Any]:
    rule = _rule_id(said)
    return {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": "error" if said.refused else _LEVELS.get(said.status, "warning"),
        "message": {"text": _message(said)},
        "locations": [_location(report, said)],
        "partialFingerprints": {"primaryLocationLineHash": fingerprint},
        "properties": {
            "status": said.status.value,
            "refused": said.refused,
            "evidence": view.plain(dict(said.evidence)),
        },
    }


def _message(said: Finding) -> str:
    """What, expected, actual, to do; evidence is in the properties.

    Braces are doubled and brackets that would start a link escaped (SARIF 3.11.5, 3.11.6).
    """
    rows = [f"{name}: {view.value_text(value)}" for name, value in view.fields(said) if name in _SAID]
    text = "\n".join([f"{view.word_of(said)}: {printable(said.what or said.code)}", *rows])
    text = text.replace("{", "{{").replace("}", "}}")
    return re.sub(r"\[(?=[^\[\]]*\]\()", r"\\[", text)


def _location(report: Report, said: Finding) -> dict[str, Any]:
    """The file that the evidence names; else a name of our own, the same in every run."""
    file, line = view.place(said) or (f"tic-manifest/{report.command}/{said.subject or 'all'}", 1)
    uri = quote(printable(file), safe="/")
    logical = {"name": printable(said.subject or report.command), "kind": "module"}
    physical = {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}
    return {"physicalLocation": physical, "logicalLocations": [logical]}
