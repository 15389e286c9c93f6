"""Versions of wheels that name no commit, and those that the lock names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tic_manifest.model.receipt import BuiltWheel
from tic_manifest.rules.dossier import read_dossier
from tic_manifest.rules.version import check_version

sys.path.insert(0, str(Path(__file__).parents[1]))
import deliveries as d


@pytest.mark.parametrize(
    ("file", "env", "code"),
    [
        ("alpha-1.2.3-py3-none-any.whl", {}, None),
        ("alpha-0.13.0-py3-none-any.whl", {}, None),
        ("alpha-1.2.dev3+gabcdef0-py3-none-any.whl", {}, None),
        ("alpha-0.1.0.dev7+gabcdef0-py3-none-any.whl", {}, None),
        ("alpha-0.1.dev0-py3-none-any.whl", {}, "VERSION_UNPROVEN"),
        ("alpha-0.1.dev1+gabcdef0-1-cp311-cp311-linux_x86_64.whl", {}, "VERSION_UNPROVEN"),
        ("alpha-0.0.0-py3-none-any.whl", {}, "VERSION_UNPROVEN"),
        ("alpha-0+unknown-py3-none-any.whl", {}, "VERSION_UNPROVEN"),
        ("UNKNOWN-0.0.0-py3-none-any.whl", {}, "VERSION_UNPROVEN"),
        ("alpha-0.0.0-py3-none-any.whl", {"PBR_VERSION": "0.0.0"}, None),
        ("alpha-0.0.0-py3-none-any.whl", {"PBR_VERSION": "0.0.1"}, "VERSION_UNPROVEN"),
        ("alpha-0.0.0-py3-none-any.whl", {"OTHER": "0.0.0"}, "VERSION_UNPROVEN"),
        ("alpha-1.2.dev3+gabcdef0.d20260101-py3-none-any.whl", {}, "LOCAL_DIRTY/context"),
        ("alpha-1.2+d20260101-py3-none-any.whl", {}, "LOCAL_DIRTY/context"),
        ("alpha-1.2+cpu.d20260101.x-py3-none-any.whl", {}, "LOCAL_DIRTY/context"),
        ("alpha-1.2+cud20260101x-py3-none-any.whl", {}, None),
        ("no wheel at all", {}, None),
    ],
)
def test_versions(file: str, env: dict[str, str], code: str | None) -> None:
    loaded = d.lock()
    asked = loaded.recipe.pull_requests["alpha"]
    asked = asked.model_copy(update={"build": asked.build.model_copy(update={"env": env})})
    wheel = BuiltWheel(name="alpha", tree="d" * 40, file=file, digest=d.digest("wheel"), size=3)
    found = check_version(read_dossier(d.evidence(loaded)), asked, wheel)
    assert [one.code for one in found] == ([code] if code else [])
    if code == "LOCAL_DIRTY/context":
        assert "not known" in str(found[0].actual), "no list is made up where no listing travels"
