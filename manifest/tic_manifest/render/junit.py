"""JUnit XML: a test case for every check, and for every finding that no check speaks for.

fail is a failure; inconclusive and not run are errors; out of scope is skipped with the word "unverified".
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from tic_manifest.model.verdict import Check, Finding, Report, State, Status
from tic_manifest.render import view
from tic_manifest.render.escape import printable

_NOT_XML = re.compile("[^\t\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, *, color: bool = False) -> str:
    """One suite named after the command; it is green only where the outcome is pass."""
    suite = ET.Element("testsuite", name=_xml(f"tic-manifest {report.command}"))
    _properties(suite, report)
    for row in report.checks:
        _check(suite, report, row)
    for said in _loose(report):
        _problem(_case(suite, said.code, said.subject), said.status, said.what, [said])
    if report.exit_code and not suite.findall("testcase/failure") + suite.findall("testcase/error"):
        _problem(_case(suite, "outcome", report.command), Status.INCONCLUSIVE, view.nothing(report), [])
    root = ET.Element("testsuites", name="tic-manifest")
    for counted in (root, suite):
        _count(counted, suite)
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _properties(suite: ET.Element, report: Report) -> None:
    rows = [("outcome", report.outcome.value), ("exitCode", str(report.exit_code))]
    rows += [("partial", str(report.partial).lower()), *(("subject", one) for one in report.subjects)]
    rows += [(name, line) for name, lines in view.extras(report) for line in lines]
    holder = ET.SubElement(suite, "properties")
    for name, value in rows:
        ET.SubElement(holder, "property", name=name, value=_xml(value))


def _count(element: ET.Element, suite: ET.Element) -> None:
    element.set("tests", str(len(suite.findall("testcase"))))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(name, str(len(suite.findall(f"testcase/{tag}"))))


def _check(suite: ET.Element, report: Report, row: Check) -> None:
    case = _case(suite, row.id, row.subject)
    if row.state is State.OUT_OF_SCOPE:
        reason = f"{view.UNVERIFIED}: {row.reason}" if row.reason else view.UNVERIFIED
        ET.SubElement(case, "skipped", message=_xml(reason))
    elif row.status is not Status.PASS:
        said = [one for one in view.problems(report) if view.speaks_for(one, row)]
        what = row.reason or "; ".join(dict.fromkeys(one.what for one in said)) or view.as_finding(row).what
        _problem(case, row.status, what, said)


def _loose(report: Report) -> list[Finding]:
    """Problems that stand in no test case of a check."""
    rows = view.undecided(report)
    return [one for one in view.problems(report) if not any(view.speaks_for(one, row) for row in rows)]


def _case(suite: ET.Element, name: str, subject: str) -> ET.Element:
    classname = f"tic-manifest.{subject}" if subject else "tic-manifest"
    return ET.SubElement(suite, "testcase", classname=_xml(classname), name=_xml(name))


def _problem(case: ET.Element, status: Status, what: str, said: list[Finding]) -> None:
    tag = "failure" if status is Status.FAIL else "error"
    kind = said[0].code if said else status.value
    message = f"{view.STATUS_WORDS[status]}: {what}"
    element = ET.SubElement(case, tag, type=_xml(kind), message=_xml(message))
    element.text = "\n".join(_xml(line) for one in said for line in _lines(one))


def _lines(said: Finding) -> list[str]:
    rows = [f"{name}: {view.value_text(value)}" for name, value in view.fields(said)]
    return [f"{view.word_of(said)} {said.code} {said.subject}: {said.what}", *(f"  {row}" for row in rows)]


def _xml(text: str) -> str:
    return _NOT_XML.sub(lambda one: f"\\u{ord(one[0]):04x}", printable(text))
