"""How an image starts, against its base and what is declared."""

from __future__ import annotations

import json

import deliveries as d
import pytest
from tic_manifest.errors import RefusedError
from tic_manifest.formats.canonical import canonical_bytes, digest_of
from tic_manifest.formats.lock import read_lock
from tic_manifest.model.lock import ImageRoot
from tic_manifest.model.oci import ImageConfig
from tic_manifest.rules.dossier import read_dossier
from tic_manifest.rules.source_evidence import BASE_CONFIG, MADE_HERE, read_sources
from tic_manifest.rules.start import check_start, row_of

BASE = ImageConfig(
    architecture="amd64", os="linux", env=("PATH=/usr/bin:/opt/cuda/bin", "CUDA=13"), entrypoint=("/init",),
    cmd=("bash",), user="1000", working_dir="/work",
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, ""),
        ({"env": ("PATH=/opt/venv/bin:/opt/cuda/bin", "CUDA=13", "HF_HUB_OFFLINE=1")}, ""),
        ({"user": "0"}, "ENV_INJECTION/start"),
        ({"entrypoint": ("/tmp/init",)}, "ENV_INJECTION/start"),
        ({"entrypoint": ()}, "ENV_INJECTION/start"),
        ({"cmd": ("sh",)}, "ENV_INJECTION/start"),
        ({"working_dir": ""}, "ENV_INJECTION/start"),
        ({"env": (*BASE.env, "EVIL=1")}, "ENV_INJECTION/undeclared"),
        ({"env": ("CUDA=12",)}, "ENV_INJECTION/undeclared"),
        ({"env": ("HF_HUB_OFFLINE=0",)}, "ENV_INJECTION/undeclared"),
        ({"env": ("PATH=/srv/bin:/usr/bin",)}, "ENV_INJECTION/undeclared"),
        ({"env": ("PATH=:/usr/bin",)}, "ENV_INJECTION/undeclared"),
    ],
)
def test_what_differs_is_named(change: dict[str, object], code: str) -> None:
    config = BASE.model_copy(update=change)
    found = check_start(config, BASE, {"HF_HUB_OFFLINE": "1"}, "config")
    assert [one.code for one in found] == ([code] if code else [])
    assert row_of(found, "image").status == ("fail" if code else "pass")


def test_a_root_made_here_says_nothing_about_starting() -> None:
    config = ImageConfig(architecture="amd64", os="linux", env=("PATH=/opt/venv/bin:/bin",), working_dir="/")
    assert check_start(config, MADE_HERE, {}, "config") == []
    assert row_of(None, "image").status == "not_run"


def test_the_config_of_the_base_is_that_of_the_lock() -> None:
    raw = json.dumps(
        {
            "architecture": "amd64", "os": "linux", "config": {"User": "7"},
            "rootfs": {"type": "layers", "diff_ids": []},
        }
    ).encode()  # fmt: skip
    root = ImageRoot(
        reference="r",
        index_digest=None,
        platform_digest=d.digest("p"),
        config_digest=digest_of(raw),
        layers=(),
    )
    lock = read_lock(canonical_bytes(d.lock().lock.model_copy(update={"base": root})), "lock.json")
    files = {"lock.json": lock.raw}
    assert read_sources(read_dossier(files)).base is None
    base = read_sources(read_dossier(files | {BASE_CONFIG: raw})).base
    assert base is not None
    assert base.user == "7"
    with pytest.raises(RefusedError) as told:
        read_sources(read_dossier(files | {BASE_CONFIG: raw + b" "}))
    assert told.value.code == "BLOB_DIGEST"
