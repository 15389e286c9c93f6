"""Observations judged: every code with its counterexample, and nothing unseen that passes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from observations import DEBIAN, DIFFERS, MATCH, SITE, A, Json, clean_report, file, mapped
from tic_manifest.errors import RefusedError
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.probe import ProbeReport
from tic_manifest.model.verdict import Check, Finding, Status
from tic_manifest.rules.probe import judge_observation
from tic_manifest.rules.probe_view import View, loaded_of


def process(report: Json) -> Json:
    """The one process of the one snapshot."""
    one: Json = report["snapshots"][0]["processes"][0]
    return one


def judge(change: Callable[[Json], object] = lambda report: None) -> tuple[dict[str, Check], list[Finding]]:
    """The clean report with one change, judged; checks by their last name."""
    report = copy.deepcopy(clean_report())
    change(report)
    value = read_model(json.dumps(report).encode(), ProbeReport, "probe.json")
    checks, findings = judge_observation(value)
    return {check.id.rpartition(".")[2]: check for check in checks}, findings


def test_a_clean_observation_passes_every_check_and_says_figures() -> None:
    checks, findings = judge()
    assert findings == []
    assert {check.status for check in checks.values()} == {Status.PASS}
    assert checks["ownership"].reason.startswith("16384 of 16384 mapped bytes (100.0000 %) have an owner")
    assert checks["holder"].reason == "pid 7 by memory: VLLM::Worker < VLLM::EngineCore"
    assert checks["executing"].reason.startswith("2 of 2 executable mappings equal their files, 8192 bytes")


def set_owner(number: int, *owners: Json) -> Callable[[Json], object]:
    return lambda r: r["files"][number].update(owners=list(owners))


def add_file(row: Json, **more: Any) -> Callable[[Json], object]:
    def change(report: Json) -> None:
        report["files"].append(row)
        process(report)["mapped"].append(mapped(len(report["files"]) - 1, **more))

    return change


def add_import(**row: Any) -> Callable[[Json], object]:
    base = {"module": "demo._C", "importer": "demo.platform", "file": "/x.py", "line": 3, "where": "function"}
    return lambda r: r["imports"][0]["broken"].append({**base, **row})


def set_variable(report: Json, row: Json) -> None:
    """A variable that the process has from its start on."""
    process(report)["environ"].append(row)
    report["inside"][0]["environ"].append(row)


RAY = "/tmp/ray/session_1/runtime_resources/working_dir_files/_ray_pkg_0123456789abcdef"


def shadow(path: str, **more: Any) -> Callable[[Json], object]:
    row = {"file": path, "also": [f"{SITE}/demo.py"], **more}
    return lambda r: r["inside"][0]["modules"][0].update(row)


MISSING = [{"library": "libnuma.so.1", "needed_by": "/x/_C.abi3.so"}]
TABLE: list[tuple[str, Callable[[Json], object], str, str, Status, str]] = [
    ("orphan", set_owner(0), "ownership", "UNOWNED_FILE", Status.FAIL, f"{SITE}/demo/_C.abi3.so"),
    ("unowned module", lambda r: r["inside"][0]["modules"][0].update(owners=[]), "ownership", "UNOWNED_FILE",
     Status.FAIL, f"{SITE}/demo.py"),
    ("edited library", set_owner(0, DIFFERS), "content", "RECORD_HASH", Status.FAIL, f"{SITE}/demo/_C.abi3.so"),
    ("edited Debian file", set_owner(1, {**DEBIAN, "record": "differs"}), "content", "RECORD_HASH", Status.FAIL,
     "/usr/lib/libc.so.6"),
    ("patched memory", lambda r: process(r)["mapped"].__setitem__(0, mapped(0, "differs")), "executing",
     "MAPPED_NOT_DISK", Status.FAIL, f"{SITE}/demo/_C.abi3.so"),
    ("bind mount over", lambda r: process(r)["mapped"].__setitem__(0, mapped(0, identity="differs")), "executing",
     "MAPPED_NOT_DISK", Status.FAIL, f"{SITE}/demo/_C.abi3.so"),
    ("deleted", lambda r: process(r)["mapped"].__setitem__(0, mapped(0, identity="deleted")), "executing",
     "MAPPED_DELETED", Status.FAIL, f"{SITE}/demo/_C.abi3.so"),
    ("mount", lambda r: r["mounts"].append({**r["mounts"][0], "mount_point": SITE}), "overlays",
     "MOUNT_COVERS_SOURCE", Status.FAIL, SITE),
    ("editable", lambda r: r["distributions"][0].update(editable="direct_url"), "overlays", "PKG_STILL_EDITABLE",
     Status.FAIL, "demo"),
    ("pth", lambda r: r["pth"].append({"path": "/x/zz.pth", "owners": [], "code_lines": ["import os"]}), "overlays",
     "PTH_UNOWNED", Status.FAIL, "/x/zz.pth"),
    ("preload variable", lambda r: set_variable(r, {"name": "LD_PRELOAD", "value": "/x/evil.so"}),
     "overlays", "PRELOAD", Status.FAIL, "LD_PRELOAD"),
    ("preload file", lambda r: r["preload"].update(file="/x/evil.so\n"), "overlays", "PRELOAD", Status.FAIL,
     "/etc/ld.so.preload"),
    ("library missing", add_import(missing=MISSING), "imports", "PKG_SILENT_FALLBACK", Status.INCONCLUSIVE,
     "demo._C"),
    ("import failed", add_import(where="module", path="/x/there.py"), "imports", "PKG_SILENT_FALLBACK",
     Status.INCONCLUSIVE, "demo._C"),
    ("same soname twice", add_file(file("/x/libc.so.6", MATCH, soname="libc.so.6")), "libraries", "LIB_DUP",
     Status.FAIL, "libc.so.6"),
    ("died", lambda r: r["worker"].update(outcome="signaled", exit={**r["worker"]["exit"], "code": None, "status": -11,
     "signal": "SIGSEGV"}), "worker", "WORKER_EXIT", Status.INCONCLUSIVE, "rollout"),
    ("no holder", lambda r: r.update(holders=[]), "holder", "HOLDER_MISSING", Status.INCONCLUSIVE, "rollout"),
    ("unloaded", lambda r: r["inside"][0]["link_map"].update(subs=1), "ledger", "LEDGER_INCOMPLETE",
     Status.INCONCLUSIVE, "rollout"),
    ("not compared", lambda r: process(r)["mapped"].__setitem__(0, mapped(0, "unverifiable")), "ledger",
     "LEDGER_INCOMPLETE", Status.INCONCLUSIVE, "rollout"),
    ("not hashed", lambda r: r["files"][1].update(sha256=None, hash_reason="time limit"), "ledger", "LEDGER_INCOMPLETE",
     Status.INCONCLUSIVE, "rollout"),
    ("maps cut", lambda r: process(r)["maps"].update(truncated=True), "ledger", "LEDGER_INCOMPLETE",
     Status.INCONCLUSIVE, "rollout"),
    ("maps unread", lambda r: process(r).update(maps={"error": "PermissionError"}), "ledger", "LEDGER_INCOMPLETE",
     Status.INCONCLUSIVE, "rollout"),
    ("agent note", lambda r: r["notes"].append("inside-x.json: broken"), "ledger", "LEDGER_INCOMPLETE",
     Status.INCONCLUSIVE, "rollout"),
    ("scan failed", lambda r: r.update(imports=[*r["imports"], {"error": "x"}]), "ledger", "LEDGER_INCOMPLETE",
     Status.INCONCLUSIVE, "rollout"),
    ("path shadow", shadow("/dev/demo.py", owners=[{"kind": "input"}]), "overlays", "PKG_PATH_SHADOW", Status.FAIL,
     "demo"),
    ("folder shadow", lambda r: (shadow("/cwd/demo/__init__.py", owners=[{"kind": "input"}])(r),
     process(r).update(cwd="/cwd")), "overlays", "PKG_CWD_SHADOW", Status.FAIL, "demo"),
    ("namespace shadow", shadow("/a/ns/demo.py", name="ns.demo"), "overlays", "PKG_NAMESPACE_SHADOW", Status.FAIL,
     "ns.demo"),
    ("Ray", lambda r: r["inside"][0].update(python={"path": [RAY + "/src"]}), "overlays", "RAY_WORKING_DIR",
     Status.FAIL, RAY),
    ("byte code", shadow(f"{SITE}/demo.py", also=[], code="differs"), "content", "CODE_NOT_SOURCE", Status.FAIL,
     "demo"),
    ("byte code of a release", shadow(f"{SITE}/demo.py", also=[], code="unsure"), "content", "CODE_NOT_SOURCE",
     Status.INCONCLUSIVE, "demo"),
    ("archive", shadow("/x/a.zip/demo.py", also=[], on_disk=False, archive="/x/a.zip", owners=[]), "ownership",
     "UNOWNED_FILE", Status.FAIL, "/x/a.zip"),
    ("written later", lambda r: (process(r).update(started_ns=10**18), r["files"][0].update(mtime_ns=10**18 + 10**9)),
     "executing", "MAPPED_CHANGED_SINCE", Status.INCONCLUSIVE, f"{SITE}/demo/_C.abi3.so"),
    ("no inside view", lambda r: r.update(inside=[]), "ledger", "LEDGER_INCOMPLETE", Status.INCONCLUSIVE, "rollout"),
]  # fmt: skip


@pytest.mark.parametrize(("other", "code"), [(None, "LIB_ABI"), ("/x/libtop.so", "LIB_SYMBOL_VERSION")])
def test_a_symbol_that_nobody_defines_is_named_with_the_library_that_asks(
    other: str | None, code: str
) -> None:
    lacks = {
        "symbol": "_Z1fv",
        "version": "V2",
        "needed_by": "/x/liblow.so",
        "other_version_in": other,
        "words": "f()",
    }
    checks, findings = judge(add_import(path="/x/_C.so", undefined=[lacks]))
    assert [(f.code, f.status, f.subject) for f in findings] == [
        ("PKG_SILENT_FALLBACK", Status.INCONCLUSIVE, "demo._C"), (code, Status.FAIL, "/x/liblow.so")
    ]  # fmt: skip
    assert findings[0].actual == "/x/liblow.so lacks f()@V2"
    assert findings[1].evidence["undefined"] == ["f()@V2"]
    assert checks["libraries"].status is Status.FAIL


@pytest.mark.parametrize(
    ("change", "check", "code", "status", "subject"), [t[1:] for t in TABLE], ids=[t[0] for t in TABLE]
)
def test_a_fault_is_said_by_its_code(
    change: Callable[[Json], object], check: str, code: str, status: Status, subject: str
) -> None:
    checks, findings = judge(change)
    assert (code, status, subject) in {(f.code, f.status, f.subject) for f in findings}
    assert checks[check].status is status
    assert {f.code for f in findings} == {code}


NOTES = [
    ("owned preload", lambda r: set_variable(r, {"name": "LD_PRELOAD", "value": "/x/_C.abi3.so"}), "PRELOAD"),
    ("untried extension", lambda r: r["imports"][0]["unloadable"].append(
        {"path": "/x", "module": "demo._D", "distribution": 0, "missing": MISSING, "tried": False}), "PKG_SILENT_FALLBACK"),
    ("vendored OpenMP", lambda r: [add_file(file(f"/{n}/lib{n}", MATCH))(r) for n in ("gomp-6a29c32d.so.1", "gomp.so.1")],
     "LIB_FAMILY_MIXED"),
    ("compiled now", lambda r: r["jit"]["artifacts"].append(
        {"path": "/t/a.so", "family": "inductor", "size": 1, "mtime_ns": 1, "origin": "this_run", "mapped": True}),
     "JIT_REBUILT_AT_RUN"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "code"), [n[1:] for n in NOTES], ids=[n[0] for n in NOTES])
def test_what_is_worth_saying_blocks_nothing(change: Callable[[Json], object], code: str) -> None:
    checks, findings = judge(change)
    assert [(f.code, f.note) for f in findings] == [(code, True)]
    assert {check.status for check in checks.values()} == {Status.PASS}


@pytest.mark.parametrize(
    "pair",
    [
        ("/a/libgomp.so.1", "/b/libiomp5.so"),
        ("/a/libnccl.so.2", "/b/libnccl.so.2"),
        ("/a/libcudnn.so.9", "/b/libcudnn_ops.so.9"),
    ],
)
def test_a_family_from_two_places_fails(pair: tuple[str, str]) -> None:
    _, findings = judge(lambda r: [add_file(file(path, MATCH))(r) for path in pair])
    assert [(f.code, f.status) for f in findings] == [("LIB_FAMILY_MIXED", Status.FAIL)]
    assert findings[0].actual == sorted(pair)


def test_two_cuda_majors_fail() -> None:
    names = ("libcudart.so.12", "libcublas.so.13")
    _, findings = judge(lambda r: [add_file(file(f"/cuda/{n}", MATCH, soname=n))(r) for n in names])
    assert [(f.code, f.status) for f in findings] == [("LIB_CUDA_MAJOR_MIX", Status.FAIL)]


def test_a_second_owner_with_the_right_bytes_excuses_the_first() -> None:
    assert judge(set_owner(0, DIFFERS, {**MATCH, "name": "other"}))[1] == []


def test_shared_memory_needs_no_owner() -> None:
    row = file("/memfd:x", {"kind": "runtime"}, runtime=True, sha256=None)
    assert judge(add_file(row, exec_bytes=0, verdict="not_executable"))[1] == []


def test_files_of_processes_that_hold_nothing_are_not_judged() -> None:
    def change(report: Json) -> None:
        report["files"].append(file("/x/other.so"))
        other = copy.deepcopy(process(report)) | {"pid": 8, "start_ticks": 80, "mapped": [mapped(2)]}
        report["snapshots"][0]["processes"].append(other)

    assert judge(change)[1] == []


def test_a_worker_that_never_reached_its_mark_passes_nothing_but_what_was_seen() -> None:
    def change(report: Json) -> None:
        report["snapshots"][0].update(label="last_seen")
        process(report).update(mapped=[], maps=None, exited=True)
        report.update(inside=[], imports=[], holders=[])
        report["worker"].update(ready=False, outcome="ready_timeout")

    checks, findings = judge(change)
    assert {name for name, check in checks.items() if check.status is Status.PASS} == set()
    assert checks["executing"].status is Status.NOT_RUN
    (said,) = [f for f in findings if f.code == "WORKER_EXIT"]
    assert said.actual == "ready_timeout after 9 s"
    assert said.evidence["stderr"] == ["last"]


def test_more_findings_than_a_reader_can_use_are_counted() -> None:
    def change(report: Json) -> None:
        row = report["inside"][0]["modules"][0]
        report["inside"][0]["modules"] = [
            {**row, "file": f"{SITE}/m{i}.py", "owners": []} for i in range(300)
        ]

    _, findings = judge(change)
    assert len(findings) == 200
    assert findings[-1].evidence["not_listed"] == 100


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda r: r.update(verdict="pass"), "SCHEMA"),
        (lambda r: r.update(schema="tic/probe-agent/v2"), "SCHEMA_VERSION"),
        (lambda r: r["files"][0].update(sha256="abc"), "SCHEMA"),
        (lambda r: r["files"][0].update(Path="/x"), "JSON_CASE_VARIANT"),
        (lambda r: r.pop("ownership"), "SCHEMA"),
    ],
)
def test_a_malformed_observation_is_refused(change: Callable[[Json], object], code: str) -> None:
    with pytest.raises(RefusedError) as caught:
        judge(change)
    assert caught.value.code == code


def test_a_file_number_outside_the_table_is_refused() -> None:
    with pytest.raises(RefusedError):
        judge(lambda r: process(r)["mapped"].append(mapped(99)))


def test_what_ran_of_a_wheel_is_counted() -> None:
    report = clean_report()
    report["inside"][0]["modules"].append(
        {"name": "x", "file": f"{SITE}/x.py", "on_disk": True, "owners": [DIFFERS]}
    )
    view = View(read_model(json.dumps(report).encode(), ProbeReport, "probe.json"))
    loaded = loaded_of(view, "demo-1.0-cp311-abi3-linux_x86_64.whl")
    assert (loaded.modules, loaded.native) == (2, ((f"{SITE}/demo/_C.abi3.so", A),))
    assert loaded.differing == (f"{SITE}/x.py",)
    assert loaded_of(view, "other-1.0-py3-none-any.whl").files == 0


def test_a_shipped_module_that_shadows_another_shipped_one_is_no_overlay() -> None:
    checks, findings = judge(shadow(f"{SITE}/demo.py", also=["/usr/lib/python3/dist-packages/demo.py"]))
    assert (findings, checks["overlays"].status) == ([], Status.PASS)
    assert "1 module names that two places answer to" in checks["overlays"].reason


def test_what_a_linker_removed_counts_where_no_view_says_it() -> None:
    def change(report: Json) -> None:
        report.update(mode="snapshot", inside=[])
        process(report)["linker"] = {"adds": 3, "subs": 2, "count": 1}

    _, findings = judge(change)
    assert [f.actual for f in findings] == ["2 native objects were unloaded before the process was read"]


def test_a_library_that_another_order_would_load_from_elsewhere_is_a_note() -> None:
    row = {"library": "libnccl.so.2", "needed_by": "/x/libuser.so", "mapped": "/a/libnccl.so.2", "mapped_sha256": A,
           "search": "/b/libnccl.so.2", "search_sha256": "b" * 64}  # fmt: skip
    checks, findings = judge(lambda r: r["imports"][0].update(order=[row, row]))
    assert [(f.code, f.note, f.subject) for f in findings] == [("LIB_ORDER_DEPENDENT", True, "libnccl.so.2")]
    assert findings[0].actual == {
        "mapped": f"/a/libnccl.so.2 sha256:{A}",
        "search": f"/b/libnccl.so.2 sha256:{'b' * 64}",
    }
    assert checks["libraries"].status is Status.PASS
