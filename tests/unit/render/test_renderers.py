"""Every format says the outcome, loses no problem, and lets no text from evidence act."""

from __future__ import annotations

import html.parser
import json
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tic_manifest.model.verdict import Check, Finding, Outcome, Report, State, Status, report
from tic_manifest.render import RENDERERS, github, renderer, view

DIGEST = "sha256:" + "0123456789abcdef" * 4
COMMIT = "89abcdef01" * 4
EVIL = (
    "a|b `x` \x1b[31mred\r\n::error::injected\n<img src=x onerror=alert(1)> </code></td> ]]> & \"q\" 'q' "
    "@octocat #12 ##[error]no ##vso[task] [t](https://evil.test) {{ 7*7 }} {% x %} %0A \x00\x7f\x85\u202e\u2028\ufffe"
)


def failing(**fields: object) -> Finding:
    return Finding.model_validate(
        {"code": "USAGE", "status": Status.FAIL, "subject": "vllm", "what": "wrong", **fields}
    )


def hostile() -> Report:
    said = [
        failing(
            what=EVIL, subject=EVIL, expected=EVIL, actual=[EVIL, DIGEST], evidence={EVIL: EVIL}, remedy=EVIL
        ),
        failing(code="NETWORK", status=Status.INCONCLUSIVE, evidence={"nested": {"a": [1, None, EVIL]}}),
        failing(code="NETWORK", status=Status.PASS, note=True, what=EVIL),
    ]
    rows = [
        Check(id="usage", status=Status.FAIL, subject=EVIL, reason=EVIL),
        Check(id="quality", status=Status.NOT_RUN, reason="no GPU"),
        Check(id="waived", status=Status.FAIL, state=State.OUT_OF_SCOPE, reason=EVIL),
        Check(id="fine", status=Status.PASS),
    ]
    return report("gate", rows, said, subjects=[EVIL])


def made(outcome: Outcome) -> Report:
    fail = ([Check(id="c", status=Status.FAIL, subject="vllm")], [failing()])
    return {
        Outcome.PASS: report("gate", [Check(id="c", status=Status.PASS)], []),
        Outcome.FAIL: report("gate", *fail),
        Outcome.INCONCLUSIVE: report("gate", [], []),
        Outcome.REFUSED: report("gate", fail[0], [failing(refused=True, status=Status.INCONCLUSIVE)]),
    }[outcome]


@pytest.mark.parametrize("name", RENDERERS)
def test_every_renderer_ends_with_a_newline_and_is_pure(name: str) -> None:
    first, again = (renderer(name)(hostile()) for _ in range(2))
    assert first == again
    assert first.endswith("\n")
    assert not first.endswith("\n\n")


@pytest.mark.parametrize("name", RENDERERS)
def test_no_control_or_direction_character_survives(name: str) -> None:
    text = renderer(name)(hostile())
    assert not re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]", text)


@pytest.mark.parametrize("name", [one for one in RENDERERS if one != "json"])
def test_digests_and_commits_are_whole(name: str) -> None:
    long = [f"{DIGEST} {COMMIT}"] * 40
    text = renderer(name)(report("gate", [], [failing(expected=DIGEST, actual=" ".join(long))]))
    assert text.count(DIGEST) >= 1
    assert not re.search(r"sha256:[0-9a-f]{1,63}(?![0-9a-f])", text)


def test_text_puts_the_outcome_first_then_failing_findings_then_notes_then_checks() -> None:
    lines = renderer("text")(hostile()).splitlines()
    assert lines[0] == "gate: fail (exit 1)"
    places = [next(i for i, one in enumerate(lines) if one.startswith(start)) for start in
              ("fail  USAGE", "inconclusive  NETWORK", "notes", "checks")]  # fmt: skip
    assert places == sorted(places)
    assert any(one.startswith("  to do: ") for one in lines)
    assert [one.split()[:3] for one in lines if "waived" in one] == [["unverified", "out", "of"]]


def test_text_is_coloured_only_when_asked() -> None:
    assert "\x1b" not in renderer("text")(hostile())
    painted = renderer("text")(hostile(), color=True)
    assert re.findall(r"\x1b\[[0-9;]*m", painted)
    assert set(re.findall(r"\x1b\[[0-9;]*m", painted)) <= {f"\x1b[{one}m" for one in (0, 31, 32, 33, 36)}
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == renderer("text")(hostile())


@pytest.mark.parametrize("name", ["text", "markdown"])
def test_no_line_of_a_log_is_a_command_to_a_runner(name: str) -> None:
    for line in renderer(name)(hostile()).splitlines():
        assert not line.lstrip().startswith("::")
    assert "##[" not in renderer("text")(hostile())
    assert "##vso[" not in renderer("text")(hostile())


def test_json_is_the_object_of_the_contract() -> None:
    data = json.loads(renderer("json")(hostile()))
    keys = {"schemaVersion", "command", "outcome", "exitCode", "partial", "subjects", "findings", "checks"}
    assert set(data) == keys
    assert {"code", "status", "subject", "expected", "actual", "evidence", "remedy"} <= set(
        data["findings"][0]
    )
    assert data["findings"][0]["actual"] == [EVIL, DIGEST]
    assert [one["note"] for one in data["findings"]] == [False, False, True]
    assert data["checks"][1] == {
        "id": "quality", "state": "required", "status": "not_run", "subject": "", "reason": "no GPU",
    }  # fmt: skip


def test_markdown_tables_keep_their_columns() -> None:
    text = renderer("markdown")(hostile())
    for line in (one for one in text.splitlines() if one.startswith("|")):
        assert line.count("|") in (3, 4, 6), line
    assert "<img" not in text
    assert "@octocat" not in re.sub(r"`[^`]*`", "", text)
    assert "](" not in text


class _Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_is_one_balanced_page_that_loads_nothing() -> None:
    text = renderer("html")(hostile())
    tags = _Tags()
    tags.feed(text)
    assert tags.open == []
    assert not tags.seen & {"img", "script", "link", "iframe", "a", "svg"}
    assert not tags.attributes & {"src", "href", "onerror", "style"}
    assert "{{ 7*7 }}" in text


COMMAND = re.compile(r"::(error|warning|notice) ([^:]*)::(.*)")


def test_annotations_are_one_line_each_and_never_more_than_are_shown() -> None:
    said = [failing(what=EVIL, subject=f"{i}", code=code, status=status) for i in range(14) for code, status in
            (("USAGE", Status.FAIL), ("NETWORK", Status.INCONCLUSIVE))]  # fmt: skip
    rows = [Check(id="usage", status=Status.FAIL), Check(id="network", status=Status.INCONCLUSIVE)]
    lines = renderer("github")(report("gate", rows, said)).splitlines()
    found = [COMMAND.fullmatch(line) for line in lines[:-1]]
    kinds = [one[1] for one in found if one]
    assert {kind: kinds.count(kind) for kind in kinds} == {"error": 10, "warning": 10}
    assert "5 more" in lines[9]
    assert lines[-1] == "tic-manifest gate: fail (exit 1)"
    assert all("," not in one[2] or one[2].startswith("file=") for one in found if one)


def test_an_annotation_names_a_file_only_inside_the_repository() -> None:
    inside = failing(evidence={"file": "images/recipes/cpu.yaml", "line": 7})
    assert view.place(inside) == ("images/recipes/cpu.yaml", 7)
    for file in ("/etc/passwd", "../x", "a/../../b", "C:\\x", "a\nb", "https://x.test/", "", 7, None):
        assert view.place(failing(evidence={"file": file})) is None


def test_the_job_summary_holds_what_annotations_leave_out_and_stays_within_its_size() -> None:
    said = [failing(subject=f"s{i}") for i in range(40)]
    assert github.summary(report("gate", [], said)).count("### fail") == 40
    big = [failing(subject=f"s{i}", actual="x" * 10_000) for i in range(200)]
    text = github.summary(report("gate", [], big))
    assert len(text.encode()) <= github.SUMMARY_BYTES
    left = re.search(r"(\d+) more findings", text)
    assert left
    assert int(left[1]) + text.count("### fail") == 200


@pytest.mark.parametrize("room", [0, 10, 400, 2_000, 20_000])
def test_the_job_summary_never_exceeds_what_is_left(room: int) -> None:
    said = [failing(subject=f"s{i}", actual="x" * 500) for i in range(30)]
    text = github.summary(report("gate", [], said), room)
    assert len(text.encode()) <= room
    assert not text or "inconclusive" in text


def test_junit_words() -> None:
    suite = ET.fromstring(renderer("junit")(hostile())).find("testsuite")
    assert suite is not None
    cases = {case.get("name"): [child.tag for child in case] for case in suite.findall("testcase")}
    assert cases == {
        "usage": ["failure"],
        "quality": ["error"],
        "waived": ["skipped"],
        "fine": [],
        "NETWORK": ["error"],
    }
    assert suite.find("testcase/skipped").get("message", "").startswith("unverified")  # type: ignore[union-attr]
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["5", "1", "2", "1"]


def test_sarif_has_what_code_scanning_needs() -> None:
    run = json.loads(renderer("sarif")(hostile()))["runs"][0]
    rules = [one["id"] for one in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["message"]["text"]
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"(?!/)[A-Za-z0-9._~%/-]+", uri)
        assert re.fullmatch(r"[0-9a-f]{64}:\d+", result["partialFingerprints"]["primaryLocationLineHash"])
    assert [one["level"] for one in run["results"]] == ["error", "warning", "warning", "note"]


def test_sarif_fingerprints_are_stable_while_evidence_moves_and_differ_within_a_run() -> None:
    def prints(*actual: str) -> list[str]:
        said = [failing(actual=one) for one in actual]
        run = json.loads(renderer("sarif")(report("gate", [], said)))["runs"][0]
        return [one["partialFingerprints"]["primaryLocationLineHash"] for one in run["results"]]

    assert prints("a", "b") == prints("c", "d")
    assert len(set(prints("a", "b"))) == 2


def test_sarif_counts_what_it_leaves_out() -> None:
    said = [failing(subject=f"s{i}") for i in range(5003)]
    run = json.loads(renderer("sarif")(report("gate", [], said)))["runs"][0]
    assert len(run["results"]) == 5000
    assert "3 more results" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def blocked(name: str, text: str) -> bool:
    """Whether a reader of this format alone sees that the outcome is no pass."""
    if name == "junit":
        root = ET.fromstring(text)
        return int(root.get("failures", 0)) + int(root.get("errors", 0)) > 0
    if name == "sarif":
        levels = [one["level"] for one in json.loads(text)["runs"][0]["results"]]
        return bool({"error", "warning"} & set(levels))
    if name == "json":
        return bool(json.loads(text)["outcome"] != "pass")
    if name == "github":
        return bool(re.search("^::(error|warning) ", text, re.M))
    return not re.search(r"tic-manifest gate: (<span class=\"pass\">)?pass|^gate: pass", text)


CHECKS = st.builds(
    Check,
    id=st.sampled_from(["usage", "network", "c"]),
    state=st.sampled_from(State),
    status=st.sampled_from(Status),
    subject=st.sampled_from(["", "vllm", "verl"]),
    reason=st.sampled_from(["", "why"]),
)
FINDINGS = st.builds(
    Finding,
    code=st.sampled_from(["USAGE", "NETWORK"]),
    status=st.sampled_from([Status.FAIL, Status.INCONCLUSIVE, Status.NOT_RUN]),
    subject=st.sampled_from(["vllm", "verl", ""]),
    what=st.just("w"),
    refused=st.booleans(),
)


@given(checks=st.lists(CHECKS, max_size=4), findings=st.lists(FINDINGS, max_size=4))
@settings(max_examples=150, deadline=None)
def test_no_format_looks_green_where_the_outcome_is_no_pass(
    checks: list[Check], findings: list[Finding]
) -> None:
    judged = report("gate", checks, findings)
    for name in RENDERERS:
        text = renderer(name)(judged)
        if judged.outcome is not Outcome.PASS:
            assert blocked(name, text), (name, text)
        elif not findings:
            assert not blocked(name, text), (name, text)


@pytest.mark.parametrize("name", RENDERERS)
@pytest.mark.parametrize("outcome", Outcome)
def test_the_outcome_is_said_in_every_format(name: str, outcome: Outcome) -> None:
    assert outcome.value in renderer(name)(made(outcome))
