"""Files that a person names: regular, bounded, and told apart by what they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tic_manifest.cli.wiring import read_person_file
from tic_manifest.errors import PersonError
from tic_manifest.formats.lock import is_lock
from tic_manifest.formats.policy import read_policy


def gate(target: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the gate, which must not wait."""
    command = [
        sys.executable,
        "-m",
        "tic_manifest",
        *options,
        "gate",
        str(target),
        "--work",
        f"{target}.work",
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "recipe.yaml")
    done = gate(tmp_path / "recipe.yaml")
    assert done.returncode == 2
    assert "no regular file" in done.stderr


def test_a_probe_does_not_wait_for_its_recipe_either(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "recipe.yaml")
    argv = ["probe", "--pid", str(os.getpid()), "--recipe", str(tmp_path / "recipe.yaml")]
    command = [sys.executable, "-m", "tic_manifest", *argv]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "no regular file" in done.stderr


@pytest.mark.parametrize("name", ["/dev/zero", "."])
def test_what_is_no_file_is_not_read(name: str) -> None:
    with pytest.raises(PersonError) as caught:
        read_person_file(Path(name))
    assert caught.value.code == "USAGE"


def test_a_file_has_a_largest_size(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 101)
    assert len(read_person_file(path, 101)) == 101
    with pytest.raises(PersonError):
        read_person_file(path, 100)


LOCK = {"recipe": {"schema": "tic/recipe/v1"}, "recipe_digest": "sha256:0", "schema": "tic/lock/v1"}


@pytest.mark.parametrize(
    ("text", "lock"),
    [
        (json.dumps(LOCK), True),
        (json.dumps(LOCK, separators=(",", ":"), sort_keys=True), True),
        (json.dumps(LOCK, indent=2), True),
        (json.dumps({**LOCK, "schema": "tic/lock/v9"}), True),
        (json.dumps({**LOCK, "schema": "other"}), True),
        (json.dumps({key: value for key, value in LOCK.items() if key != "schema"}), True),
        (json.dumps(LOCK, separators=(",", ":"), sort_keys=True)[:30], True),
        (json.dumps({"schema": "tic/recipe/v1", "name": "r"}), False),
        (json.dumps({"schema": "tic/recipe/v1", "recipe": 1}), False),
        (json.dumps({"name": "r"}), False),
        ("{schema: tic/recipe/v1, name: r}", False),
        ("schema: tic/recipe/v1\n", False),
        ("", False),
        ("[" * 100_000, False),
        ('{"a":' * 100_000, True),
    ],
)  # fmt: skip
def test_a_damaged_lock_is_no_recipe(text: str, lock: bool) -> None:
    assert is_lock(text.encode()) is lock


def test_a_damaged_lock_is_refused_as_a_document_of_a_machine(tmp_path: Path) -> None:
    path = tmp_path / "lock.json"
    path.write_text(json.dumps(LOCK, separators=(",", ":"), sort_keys=True)[:60])
    assert gate(path).returncode == 4


@pytest.mark.parametrize(
    "text", ["- 1", "nonsense: 1", "depth: deep", "depth: content\ndepth: files", "a: [", "\0"]
)
def test_a_wrong_policy_has_its_own_code(text: str) -> None:
    with pytest.raises(PersonError) as caught:
        read_policy(text.encode(), "policy.yaml")
    assert caught.value.code == "POLICY"
