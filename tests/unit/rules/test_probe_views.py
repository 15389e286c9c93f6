"""The environment in four views, views from inside and outside beside each other, and what came between them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from observations import SITE, B, Json, clean_report, file, mapped
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.probe import ProbeReport
from tic_manifest.model.verdict import Check, Finding, Status
from tic_manifest.rules.probe import judge_observation

Rows = dict[str, str]


def judge(change: Callable[[Json], object]) -> tuple[dict[str, Check], list[Finding]]:
    data = copy.deepcopy(clean_report())
    change(data)
    value = read_model(json.dumps(data).encode(), ProbeReport, "probe.json")
    checks, findings = judge_observation(value)
    return {check.id.rpartition(".")[2]: check for check in checks}, findings


def process(data: Json) -> Json:
    one: Json = data["snapshots"][0]["processes"][0]
    return one


def rows(values: Rows) -> list[Json]:
    return [{"name": name, "value": value} for name, value in values.items()]


def views(exec_: Rows, python: Rows, libc: Rows | None = None) -> Callable[[Json], object]:
    """The environment of the judged process in its three recorded views."""

    def change(data: Json) -> None:
        process(data)["environ"] = rows(exec_)
        data["inside"][0]["environ"] = rows(python)
        data["inside"][0]["environ_libc"] = rows(python if libc is None else libc)

    return change


PRE = {"LD_LIBRARY_PATH": "/x"}
OMP = {"OMP_NUM_THREADS": "2"}
DIFFER: list[tuple[str, Callable[[Json], object], str, list[str], Any]] = [
    ("unset after start, read at the start", views(PRE, {}), "LD_LIBRARY_PATH", ["no effect"], "/x"),
    ("set after start, read at the start", views({}, PRE), "LD_LIBRARY_PATH", ["no effect"], None),
    ("putenv that Python does not see", views({}, {}, OMP), "OMP_NUM_THREADS", ["python-libc", "late"], "2"),
    ("a Python copy that libc does not see", views(OMP, {"OMP_NUM_THREADS": "4"}, OMP), "OMP_NUM_THREADS",
     ["python-libc"], "2"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "name", "kinds", "effective"), [d[1:] for d in DIFFER], ids=[d[0] for d in DIFFER]
)
def test_views_that_differ_are_a_note(
    change: Callable[[Json], object], name: str, kinds: list[str], effective: str | None
) -> None:
    checks, findings = judge(change)
    assert [(f.code, f.note, f.subject) for f in findings] == [("ENV_VIEWS_DIFFER", True, name)]
    assert findings[0].evidence["differs"] == kinds
    assert isinstance(findings[0].actual, dict)
    assert findings[0].actual["effective"] == effective
    assert checks["environment"].status is Status.PASS


def test_what_a_program_sets_after_its_start_is_one_note() -> None:
    _, findings = judge(views({}, {"OMP_NUM_THREADS": "2", "KMP_BLOCKTIME": "1"}))
    assert [(f.subject, f.actual) for f in findings] == [
        ("set after start", {"KMP_BLOCKTIME": "1", "OMP_NUM_THREADS": "2"})
    ]


def test_equal_views_say_nothing() -> None:
    assert judge(views(OMP, OMP))[1] == []


def test_a_title_written_over_the_environment_is_no_change_of_it() -> None:
    def change(data: Json) -> None:
        views({}, {**OMP, **PRE})(data)
        process(data).update(exe="/usr/bin/python3.11", argv=["VLLM::Worker"])

    assert judge(change)[1] == []


def test_a_secret_stays_withheld_in_every_view() -> None:
    def change(data: Json) -> None:
        data["inside"][0]["environ_libc"] = [{"name": "MY_TOKEN", "secret": True}]

    _, findings = judge(change)
    assert [f.actual for f in findings] == [
        {"exec": None, "python": None, "libc": "withheld", "effective": "withheld"}
    ]


def objects(*paths: str) -> Callable[[Json], object]:
    return lambda data: data["inside"][0]["link_map"].update(objects=list(paths), links_followed=True)


def extension(path: str, **more: Any) -> Callable[[Json], object]:
    row = {"name": "demo._C", "file": path, "on_disk": True, "owners": data_owners(), **more}
    return lambda data: data["inside"][0]["modules"].append(row)


def data_owners() -> list[Json]:
    owners: list[Json] = copy.deepcopy(clean_report()["files"][0]["owners"])
    return owners


def linker(outside: int) -> Callable[[Json], object]:
    return lambda data: process(data).update(linker={"adds": outside, "subs": 0, "count": outside})


DISAGREE: list[tuple[str, Callable[[Json], object], str, Any, Any]] = [
    ("an object that no map has", objects("/x/ghost.so"), "/x/ghost.so", "loaded, says the dynamic linker", "not mapped"),
    ("a file name that lies", extension("/x/_C.so", sha256=B), "demo._C", "/x/_C.so", "not mapped"),
    ("another program", lambda d: (d["inside"][0].update(python={"program": "/opt/python3.12"}),
                                   process(d).update(exe="/usr/bin/python3.11")),
     "program", "/opt/python3.12", "/usr/bin/python3.11"),
    ("fewer objects than there were", linker(3), "objects added", 9, 3),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "subject", "inside", "outside"), [d[1:] for d in DISAGREE], ids=[d[0] for d in DISAGREE]
)
def test_views_that_disagree_fail_with_both_values(
    change: Callable[[Json], object], subject: str, inside: Any, outside: Any
) -> None:
    checks, findings = judge(change)
    assert [(f.code, f.status, f.subject) for f in findings] == [("VIEWS_DISAGREE", Status.FAIL, subject)]
    assert findings[0].actual == {"inside": inside, "outside": outside}
    assert checks["views"].status is Status.FAIL


def test_names_with_links_in_them_are_not_compared() -> None:
    change = objects("/lib/x86_64-linux-gnu/libz.so.1")
    assert [f.code for f in judge(change)[1]] == ["VIEWS_DISAGREE"]
    assert judge(lambda data: (change(data), data["inside"][0]["link_map"].pop("links_followed")))[1] == []


@pytest.mark.parametrize(
    "change",
    [
        objects("", "linux-vdso.so.1", f"{SITE}/demo/_C.abi3.so"),
        extension(f"{SITE}/demo/_C.abi3.so", sha256=B),
        extension("/link/_C.abi3.so", sha256="a" * 64),
        linker(9),
    ],
)
def test_views_that_agree_say_nothing(change: Callable[[Json], object]) -> None:
    checks, findings = judge(change)
    assert (findings, checks["views"].status) == ([], Status.PASS)


def test_a_process_seen_once_is_not_run() -> None:
    assert judge(lambda data: data.update(inside=[]))[0]["views"].status is Status.NOT_RUN


def later(data: Json) -> None:
    """A start, and an end that maps a library, a JIT artifact and executable memory more."""
    start = copy.deepcopy(data["snapshots"][0])
    start["label"], start["processes"][0]["holder"] = "start", None
    end = copy.deepcopy(data["snapshots"][0])
    end["label"] = "done"
    data["files"] += [
        file("/usr/lib/libnew.so", data["files"][1]["owners"][0]),
        file("/t/k.so", {"kind": "jit"}),
    ]
    end["processes"][0]["mapped"] += [mapped(2), mapped(3)]
    end["processes"][0]["maps"]["anonymous_executable"].update(count=1, bytes=4096)
    data["snapshots"] = [start, *data["snapshots"], end]


def test_what_appeared_between_snapshots_is_a_note() -> None:
    checks, findings = judge(later)
    assert [(f.code, f.note, f.subject) for f in findings] == [("APPEARED_BETWEEN", True, "ready to done")]
    assert findings[0].actual == {"libraries": 1, "jit_artifacts": 1, "anonymous_executable_bytes": 4096}
    assert findings[0].evidence["libraries"] == ["/usr/lib/libnew.so"]
    assert checks["snapshots"].reason == "from outside: start, ready, done; from inside: ready"


def test_modules_that_appeared_between_two_views_are_a_note() -> None:
    def change(data: Json) -> None:
        first = copy.deepcopy(data["inside"][0])
        first.update(label="start", modules=[], module_count=0)
        data["inside"][0]["modules_appeared"] = ["late"]
        data["inside"].insert(0, first)

    _, findings = judge(change)
    assert [(f.code, f.subject, f.actual) for f in findings] == [
        ("APPEARED_BETWEEN", "start to ready", {"modules": 1})
    ]


def test_a_start_alone_is_no_observation() -> None:
    checks, findings = judge(lambda data: data["snapshots"][0].update(label="start"))
    assert checks["ownership"].status is Status.NOT_RUN
    assert any("never reached its ready mark" in str(f.actual) for f in findings)
