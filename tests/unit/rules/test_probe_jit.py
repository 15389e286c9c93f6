"""The JIT ledger judged: certain, by times alone, on disk only."""

from __future__ import annotations

import json
from typing import Any

import pytest
from observations import A, B, clean_report
from tic_manifest.model.host import HostPolicy
from tic_manifest.model.probe import ProbeReport
from tic_manifest.model.verdict import Status
from tic_manifest.rules.probe import judge_observation

SO, CU = "/site/flashinfer/data/aot/page/page.so", "/site/flashinfer/data/csrc/page.cu"


def entry(**more: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "family": "triton", "kernel": "add", "key": "K", "specialization": {}, "inputs": {"ttir": A},
        "artifact": "/c/K/add.cubin", "sha256": A, "code_sha256": A, "compiler": "triton 3.9.0", "origin": "left_over",
        "loaded": True, "foreign": [], "stale": [], "error": None,
    }  # fmt: skip
    return row | more


def again(verdict: str) -> dict[str, Any]:
    return {"verdict": verdict, "reason": None, "by": "x", "sha256": B, "code_sha256": B}


def judged(row: dict[str, Any]) -> tuple[str, list[tuple[str, Status, bool]]]:
    data = clean_report()
    family = {"family": "cuda_driver", "state": "unread", "reason": "opaque", "entries": 0, "files": 3}
    data["jit"].update(ledger=[row], families=[family])
    checks, findings = judge_observation(ProbeReport.model_validate_json(json.dumps(data)))
    (check,) = [one for one in checks if one.id.endswith(".jit")]
    return check.reason or "", [(f.code, f.status, f.note) for f in findings]


F, U, P = Status.FAIL, Status.INCONCLUSIVE, Status.PASS
TIMES = ["/x.cpp is newer than the artifact"]
TABLE = [
    ("ordinary", entry(), []),
    ("made again", entry(rederived=again("same")), []),
    ("not made again", entry(rederived=again("not_run")), []),
    ("other code", entry(rederived=again("differs")), [("JIT_MISMATCH", F, False)]),
    ("foreign, held", entry(foreign=["x"]), [("JIT_FOREIGN", F, False)]),
    ("foreign, not held", entry(foreign=["x"], loaded=False), [("JIT_FOREIGN", P, True)]),
    ("foreign, unknown", entry(foreign=["x"], loaded=None), [("JIT_FOREIGN", U, False)]),
    ("by times", entry(stale=TIMES), [("JIT_STALE", U, False)]),
    ("by times, but the same", entry(stale=TIMES, rederived=again("same")), []),
    ("by times, not held", entry(stale=TIMES, loaded=False), []),
    ("an edit", entry(family="cpp_extension", stale=TIMES, rederived=again("differs")), [("JIT_STALE", F, False)]),
    ("two versions", entry(stale=["version 1 of the module is mapped beside it"]), [("JIT_STALE", F, False)]),
    ("edit beside AOT", entry(artifact=SO, records={SO: "match", CU: "differs"}), [("EDIT_NO_EFFECT", F, False), ("RECORD_HASH", F, False)]),
    ("edit, built after", entry(artifact="/c/page.so", records={CU: "differs"}), [("RECORD_HASH", F, False)]),
    ("AOT, not held", entry(artifact=SO, records={SO: "match", CU: "differs"}, loaded=False), []),
    ("compiled now", entry(origin="this_run"), [("JIT_REBUILT_AT_RUN", P, True)]),
]  # fmt: skip


@pytest.mark.parametrize(("row", "expected"), [t[1:] for t in TABLE], ids=[t[0] for t in TABLE])
def test_what_an_entry_says(row: dict[str, Any], expected: list[tuple[str, Status, bool]]) -> None:
    reason, found = judged(row)
    assert found == expected
    assert "1 ledger entries" in reason and "not read: cuda_driver: opaque" in reason


def test_a_policy_may_forbid_what_is_compiled_at_run() -> None:
    data = clean_report()
    data["jit"].update(ledger=[entry(origin="this_run")])
    policy = HostPolicy(jit_at_runtime="forbid")
    checks, (found,) = judge_observation(ProbeReport.model_validate_json(json.dumps(data)), policy)
    assert (found.code, found.status, found.note) == ("JIT_REBUILT_AT_RUN", F, False)
    assert [one.status for one in checks if one.id.endswith(".jit")] == [F]


def test_a_specialization_in_one_line() -> None:
    shape = {
        "arguments": ["x", "n", "SIZE"], "signature": {"SIZE": "constexpr", "n": "i64", "x": "*fp32"},
        "constants": {"SIZE": 128}, "attributes": {"x": [["tt.divisibility", 16]], "n": []},
    }  # fmt: skip
    data = clean_report()
    data["jit"].update(ledger=[entry(origin="this_run", specialization=shape)])
    _, (note,) = judge_observation(ProbeReport.model_validate_json(json.dumps(data)))
    assert note.actual == "1 specializations: add(x *fp32/16, n i64, SIZE=128)"
