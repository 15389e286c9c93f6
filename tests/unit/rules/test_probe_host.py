"""Files of the host in a worker: allowed by name and bytes, shown by a mount, or a fail; the compat driver."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from observations import DEBIAN, A, B, Json, clean_report, file, mapped
from pydantic import ValidationError
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.host import HostFile, HostPolicy
from tic_manifest.model.probe import ProbeReport
from tic_manifest.model.verdict import Check, Finding, Status
from tic_manifest.rules.probe import judge_observation

DRIVER = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06"
COMPAT = "/usr/local/cuda-13.0/compat/libcuda.so.580.65.06"
ALLOWED = HostPolicy(host_injected=(HostFile(name="libcuda.so.*"),))


def judge(
    path: str, policy: HostPolicy, *owners: Json, mount: str | None = None
) -> tuple[dict[str, Check], list[Finding]]:
    """The clean report whose process maps one library more, maybe below a mount of its own."""
    data = copy.deepcopy(clean_report())
    process: Json = data["snapshots"][0]["processes"][0]
    data["files"].append(file(path, *owners, soname="libcuda.so.1"))
    process["mapped"].append(mapped(2))
    if mount is not None:
        row: dict[str, Any] = {**data["mounts"][0], "mount_point": mount, "fstype": "ext4"}
        process["mounts"].append({k: v for k, v in row.items() if k not in ("covers", "examples")})
        data["mounts"].append({**row, "covers": int(path.startswith(mount)), "examples": []})
    checks, findings = judge_observation(read_model(json.dumps(data).encode(), ProbeReport, "x"), policy)
    return {check.id.rpartition(".")[2]: check for check in checks}, findings


@pytest.mark.parametrize("mount", [DRIVER, "/usr/lib/x86_64-linux-gnu"])
def test_an_allowed_file_of_the_host_is_a_note_with_hash_version_and_mount(mount: str) -> None:
    checks, findings = judge(DRIVER, ALLOWED, mount=mount)
    assert [(f.code, f.note, f.subject) for f in findings] == [("HOST_INJECTED", True, DRIVER)]
    assert findings[0].actual == {"class": "host-injected", "sha256": A, "version": "580.65.06"}
    assert isinstance(findings[0].evidence["mount"], dict)
    assert findings[0].evidence["mount"]["mount_point"] == mount
    assert {check.status for check in checks.values()} == {Status.PASS}
    assert "0 of 3 mapped files" in checks["ownership"].reason


@pytest.mark.parametrize(
    ("policy", "mount", "codes"),
    [
        (HostPolicy(), DRIVER, {"UNOWNED_FILE", "MOUNT_COVERS_SOURCE"}),
        (HostPolicy(host_injected=(HostFile(name="libnvidia-*"),)), DRIVER, {"UNOWNED_FILE", "MOUNT_COVERS_SOURCE"}),
        (HostPolicy(host_injected=(HostFile(name="libcuda.so.*", sha256=B),)), DRIVER,
         {"UNOWNED_FILE", "MOUNT_COVERS_SOURCE"}),
        (ALLOWED, None, {"UNOWNED_FILE"}),
        (ALLOWED, "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06.d", {"UNOWNED_FILE"}),
    ],
    ids=["no policy", "another name", "other bytes", "no mount", "another mount"],
)  # fmt: skip
def test_anything_else_that_nobody_ships_fails(
    policy: HostPolicy, mount: str | None, codes: set[str]
) -> None:
    checks, findings = judge(DRIVER, policy, mount=mount)
    assert {f.code for f in findings} == codes
    assert checks["ownership"].status is Status.FAIL


def test_the_bytes_that_the_policy_names_are_allowed() -> None:
    policy = HostPolicy(host_injected=(HostFile(name="libcuda.so.*", sha256=A),))
    assert [f.code for f in judge(DRIVER, policy, mount=DRIVER)[1]] == ["HOST_INJECTED"]


def test_the_compat_driver_fails_and_names_the_copy_of_the_host() -> None:
    checks, findings = judge(COMPAT, ALLOWED, DEBIAN, mount=DRIVER)
    assert [(f.code, f.status, f.subject) for f in findings] == [("COMPAT_DRIVER", Status.FAIL, COMPAT)]
    assert findings[0].evidence["host_copies"] == [DRIVER]
    assert checks["libraries"].status is Status.FAIL


def test_a_policy_can_take_the_compat_driver() -> None:
    checks, findings = judge(COMPAT, HostPolicy(compat_driver="note"), DEBIAN)
    assert [(f.code, f.note) for f in findings] == [("COMPAT_DRIVER", True)]
    assert checks["libraries"].status is Status.PASS


@pytest.mark.parametrize("path", [DRIVER, "/opt/compat/libfoo.so.1", "/opt/compatible/libcuda.so.1"])
def test_other_files_are_no_compat_driver(path: str) -> None:
    assert judge(path, ALLOWED, DEBIAN)[1] == []


@pytest.mark.parametrize("name", ["", "../libcuda.so.1", "[a-z]*", "lib?.so"])
def test_a_pattern_is_a_file_name_with_stars(name: str) -> None:
    with pytest.raises(ValidationError):
        HostFile(name=name)
