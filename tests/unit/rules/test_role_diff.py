"""Trainer beside rollout: what was planted is named, numerics first, and nothing else is."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from observations import MATCH, SITE, A, B, Json, clean_report, file, mapped
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.probe import ProbeReport
from tic_manifest.model.recipe import RolePolicy
from tic_manifest.model.verdict import Check, Finding, Status
from tic_manifest.rules.probe_view import View
from tic_manifest.rules.role_diff import differences, judge_roles
from tic_manifest.rules.role_side import plain_name, side_of

Change = Callable[[Json], object]


def nothing(_: Json) -> None:
    """Leave it as it is."""


def report(role: str, change: Change = nothing) -> ProbeReport:
    data = copy.deepcopy(clean_report())
    data["role"] = role
    change(data)
    return read_model(json.dumps(data).encode(), ProbeReport, "probe.json")


def judge(
    left: Change = nothing, right: Change = nothing, policy: RolePolicy | None = None
) -> tuple[list[Check], list[Finding]]:
    reports = {"probe_rollout": report("rollout", left), "probe_trainer": report("trainer", right)}
    return judge_roles(reports, policy or RolePolicy(), ["rollout", "trainer"])


def process(data: Json) -> Json:
    one: Json = data["snapshots"][0]["processes"][0]
    return one


def add(path: str, *owners: Json, **more: Any) -> Change:
    def change(data: Json) -> None:
        data["files"].append(file(path, *owners, **more))
        process(data)["mapped"].append(mapped(len(data["files"]) - 1))

    return change


def variable(name: str, value: str) -> Change:
    row = {"name": name, "value": value}
    return lambda data: (process(data)["environ"].append(row), data["inside"][0]["environ"].append(row))


def both(*changes: Change) -> Change:
    return lambda data: [change(data) for change in changes]


def distribution(name: str, version: str, sha256: str = A, site: str = SITE) -> Change:
    owner = {**MATCH, "name": name, "version": version}
    module = {
        "name": name,
        "file": f"{site}/{name}/__init__.py",
        "on_disk": True,
        "sha256": sha256,
        "owners": [owner],
    }
    return lambda data: data["inside"][0]["modules"].append(module)


def test_equal_roles_differ_in_nothing() -> None:
    checks, findings = judge()
    assert findings == []
    assert [(c.id, c.status) for c in checks] == [("probe.roles", Status.PASS)]


GOMP = {**MATCH, "name": "torch", "version": "2.13.0"}
IOMP = {**MATCH, "name": "intel-openmp", "version": "2024.2.1"}
GCC = {"path": "/usr/bin/g++-12", "seen_running": 1, "configured_as": [], "owners": []}
KERNEL = {"path": "/t/a.so", "family": "inductor", "size": 1, "mtime_ns": 1, "origin": "this_run", "mapped": True,
          "kernels": ["cpp_fused_add_0"]}  # fmt: skip
FAILS: list[tuple[str, Change, Change, str]] = [
    ("another torch in another venv", distribution("torch", "2.12.0", A),
     distribution("torch", "2.13.0", B, "/opt/other/lib/python3.11/site-packages"), "torch"),
    ("one version, other bytes", distribution("torch", "2.13.0", A), distribution("torch", "2.13.0", B), "torch"),
    ("another OpenMP", add(f"{SITE}/torch/lib/libgomp.so.1", GOMP),
     add("/opt/venv/lib/libiomp5.so", IOMP, sha256=B), "OpenMP"),
    ("a further OpenMP", add(f"{SITE}/torch/lib/libgomp.so.1", GOMP),
     both(add(f"{SITE}/torch/lib/libgomp.so.1", GOMP), add("/opt/venv/lib/libiomp5.so", IOMP, sha256=B)), "OpenMP"),
    ("another libc", nothing, lambda data: data["files"][1].update(sha256=B), "libc"),
    ("another interpreter", lambda data: data["inside"][0].update(python={"version": "3.11.2"}),
     lambda data: data["inside"][0].update(python={"version": "3.12.1"}), "python"),
    ("another assembler", lambda data: data["jit"]["compilers"].append({**GCC, "sha256": A}),
     lambda data: data["jit"]["compilers"].append({**GCC, "sha256": B}), "g++-12"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "subject"), [t[1:] for t in FAILS], ids=[t[0] for t in FAILS])
def test_other_code_in_the_two_processes_fails(left: Change, right: Change, subject: str) -> None:
    checks, findings = judge(left, right)
    assert [(f.code, f.status, f.subject) for f in findings] == [("PROCESS_DIVERGENCE", Status.FAIL, subject)]
    assert checks[0].status is Status.FAIL
    assert isinstance(findings[0].actual, dict) and set(findings[0].actual) == {"rollout", "trainer"}


@pytest.mark.parametrize(("left", "right", "subject"), [t[1:] for t in FAILS], ids=[t[0] for t in FAILS])
def test_what_a_role_declares_is_a_note(left: Change, right: Change, subject: str) -> None:
    checks, findings = judge(left, right, RolePolicy(declared={"trainer": (subject,)}))
    assert [(f.subject, f.note, f.evidence["declared_by"]) for f in findings] == [
        (subject, True, ["trainer"])
    ]
    assert checks[0].status is Status.PASS


def entry(code: str, compiler: str = "ptxas 12.8", **specialization: Any) -> Json:
    """A specialization of a Triton kernel in the ledger."""
    empty: Json = {"inputs": {}, "artifact": None, "sha256": None, "origin": "this_run", "loaded": True, "foreign": [],
                   "stale": [], "error": None, "key": None}  # fmt: skip
    return {**empty, "family": "triton", "kernel": "add", "code_sha256": code, "compiler": compiler,
            "specialization": specialization}  # fmt: skip


NOTES: list[tuple[str, Change, Change, str]] = [
    ("a variable", variable("OMP_NUM_THREADS", "2"), variable("OMP_NUM_THREADS", "1"), "OMP_NUM_THREADS"),
    ("a variable on one side", nothing, variable("ATEN_CPU_CAPABILITY", "default"), "ATEN_CPU_CAPABILITY"),
    ("a kernel", lambda d: d["jit"]["artifacts"].append({**KERNEL, "code": {"text_sha256": A, "comment": []}}),
     lambda d: d["jit"]["artifacts"].append({**KERNEL, "code": {"text_sha256": B, "comment": []}}),
     "inductor cpp_fused_add_0"),
    ("a specialization of the ledger", lambda d: d["jit"].setdefault("ledger", []).append(entry(A)),
     lambda d: d["jit"].setdefault("ledger", []).append(entry(B)), "triton add"),
    ("a binding", lambda d: d["inside"][0].update(symbols=[{"name": "cos", "object": "/usr/lib/libc.so.6"}]),
     lambda d: d["inside"][0].update(symbols=[{"name": "cos", "object": "/x/libpre.so"}]), "cos"),
    ("a processor", lambda d: d.update(host={"cpu": {"model name": "one"}}),
     lambda d: d.update(host={"cpu": {"model name": "two"}}), "model name"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "subject"), [n[1:] for n in NOTES], ids=[n[0] for n in NOTES])
def test_what_may_change_a_score_is_a_note(left: Change, right: Change, subject: str) -> None:
    checks, findings = judge(left, right)
    assert [(f.code, f.note, f.subject) for f in findings] == [("PROCESS_DIVERGENCE", True, subject)]
    assert checks[0].status is Status.PASS


def test_the_policy_can_forbid_another_environment() -> None:
    change = variable("OMP_NUM_THREADS", "1")
    checks, findings = judge(nothing, change, RolePolicy(environment="fail"))
    assert ([f.status for f in findings], checks[0].status) == ([Status.FAIL], Status.FAIL)
    allowed = RolePolicy(environment="fail", declared={"trainer": ("OMP_NUM_THREADS",)})
    assert judge(nothing, change, allowed)[0][0].status is Status.PASS


SILENT: list[tuple[str, Change, Change]] = [
    ("another installation of the same wheel", distribution("torch", "2.13.0", A),
     distribution("torch", "2.13.0", A, "/opt/other/lib/python3.11/site-packages")),
    ("a package that one role uses", distribution("vllm", "1.0"), distribution("megatron", "1.0")),
    ("an OpenMP that a package of one role bundles",
     add(f"{SITE}/sentencepiece.libs/libgomp-6a29c32d.so.1.0.0", {**MATCH, "name": "sentencepiece"}, sha256=B), nothing),
    ("a folder of this run", variable("TORCHINDUCTOR_CACHE_DIR", "/a"), variable("TORCHINDUCTOR_CACHE_DIR", "/b")),
    ("a variable of a framework that one role uses", variable("VLLM_USE_V1", "1"), nothing),
    ("a variable that computes nothing", variable("HOME", "/a"), variable("HOME", "/b")),
    ("an Inductor library with other paths in it",
     lambda d: d["jit"]["artifacts"].append({**KERNEL, "sha256": A, "code": {"text_sha256": A, "comment": []}}),
     lambda d: d["jit"]["artifacts"].append({**KERNEL, "sha256": B, "code": {"text_sha256": A, "comment": []}})),
    ("another specialization of the same kernel", lambda d: d["jit"].setdefault("ledger", []).append(entry(A, n="i32")),
     lambda d: d["jit"].setdefault("ledger", []).append(entry(B, n="i64"))),
    ("a compiler that one role ran", lambda d: d["jit"]["compilers"].append({**GCC, "sha256": A}), nothing),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), [s[1:] for s in SILENT], ids=[s[0] for s in SILENT])
def test_nothing_false_is_named(left: Change, right: Change) -> None:
    assert judge(left, right)[1] == []


def test_another_assembler_of_the_ledger_fails() -> None:
    checks, findings = judge(
        lambda d: d["jit"].setdefault("ledger", []).append(entry(A, "ptxas 12.8")),
        lambda d: d["jit"].setdefault("ledger", []).append(entry(A, "ptxas 12.9")),
    )
    assert [(f.subject, f.status) for f in findings] == [("compiler of triton", Status.FAIL)]
    assert checks[0].status is Status.FAIL


def test_numerics_come_first() -> None:
    left = both(distribution("demo2", "1"), variable("VLLM_X", "1"), distribution("vllm", "1"))
    right = both(distribution("demo2", "2"), variable("VLLM_X", "2"), distribution("vllm", "1"),
                 variable("OMP_NUM_THREADS", "1"))  # fmt: skip
    sides = [
        side_of(role, View(report(role, change))) for role, change in (("rollout", left), ("trainer", right))
    ]
    found = differences(*sides)
    assert [one.name for one in found] == ["OMP_NUM_THREADS", "demo2", "VLLM_X"]


def test_an_unseen_role_is_not_run_and_a_single_role_is_no_check() -> None:
    seen = {"probe_rollout": report("rollout")}
    checks, findings = judge_roles(seen, RolePolicy(), ["rollout", "trainer"])
    assert ([(c.id, c.status) for c in checks], findings) == ([("probe.roles", Status.NOT_RUN)], [])
    assert judge_roles(seen, RolePolicy(), ["rollout"]) == ([], [])


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/x/libgomp-a34b3233.so.1", "libgomp.so.1"),
        ("/x/libscipy_openblas64_-fdde5778.so", "libscipy_openblas64_.so"),
        ("/x/libquadmath-96973f99-934c22de.so.0.0.0", "libquadmath.so.0.0.0"),
        ("/x/libiomp5.so", "libiomp5.so"),
    ],
)
def test_names_that_auditwheel_gave_are_taken_back(path: str, name: str) -> None:
    assert plain_name(path) == name
