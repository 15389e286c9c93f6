"""Moving one head, and making a lock from what an earlier one resolved."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from tic_manifest.adapters.store import FileStore
from tic_manifest.errors import PersonError, UnavailableError
from tic_manifest.formats.canonical import canonical_bytes
from tic_manifest.formats.lock import LoadedLock, read_lock, recipe_data, recipe_digest
from tic_manifest.formats.recipe import read_recipe
from tic_manifest.model.lock import DebianRoot, Lock, LockedFile, LockedPullRequest, LockedPython
from tic_manifest.model.recipe import Recipe
from tic_manifest.stages.gate_repin import repinned
from tic_manifest.stages.lock_check import check_lock
from tic_manifest.stages.lock_offline import relock
from tic_manifest.stages.materials import materials_of
from tic_manifest.stages.repin import repin

OLD, NEW, BASE = "1" * 40, "2" * 40, "3" * 40
TEXT = f"""schema: tic/recipe/v1
name: example
base: {{debian: {{suite: bookworm, packages: [python3]}}}}
forge: {{api: "https://forge.invalid/api/v3"}}
python: {{version: "3.11"}}
pull_requests:
  alpha:
    url: https://forge.invalid/d/alpha/pull/1
    target: {{owner: d, branch: main}}
    base: "{BASE}"
    head: "{OLD}"  # stays a comment
"""
FILES = {"Dockerfile.unified": b"one", "images/agent/probe_agent.py": b"agent"}
PACKAGE = b"a package"
PULL = LockedPullRequest(
    name="alpha", row="alpha", url="https://forge.invalid/d/alpha/pull/1", number=1, git="g", owner="d", repo="alpha",
    branch="main", base=BASE, base_tree="4" * 40, head=OLD, head_tree="5" * 40, merge_base=BASE, merge_tree=None,
)  # fmt: skip


def recipe(text: str = TEXT) -> Recipe:
    return read_recipe(text.encode(), "r.yaml")


class Git:
    def __init__(self, live: str | None) -> None:
        self.live = live

    def remote_refs(self, patterns: Sequence[str]) -> dict[str, str]:
        return {pattern: self.live for pattern in patterns if self.live}

    def fetch(self, commits: Sequence[str], refs: Sequence[str] = ()) -> None:
        assert None not in commits

    def range_diff(self, old: tuple[str, str], new: tuple[str, str]) -> tuple[str, ...]:
        return (f"1: {old[1]} ! 1: {new[1]} words",)


def test_only_the_head_changes_in_the_text() -> None:
    found = repin(recipe(), "alpha", Git(NEW))
    assert (found.old, found.new) == (OLD, NEW)
    assert found.range_diff == (f"1: {OLD} ! 1: {NEW} words",)
    assert repinned(TEXT.encode(), "r.yaml", (found,)).decode() == TEXT.replace(OLD, NEW)


@pytest.mark.parametrize("live", [OLD, BASE])
def test_an_empty_range_is_not_compared(live: str) -> None:
    assert repin(recipe(), "alpha", Git(live)).range_diff == ()


@pytest.mark.parametrize(("name", "live", "code"), [("beta", NEW, "USAGE"), ("alpha", None, "PIN_NOT_IN_PR")])
def test_what_cannot_be_moved(name: str, live: str | None, code: str) -> None:
    with pytest.raises(PersonError) as caught:
        repin(recipe(), name, Git(live))
    assert caught.value.code == code


def earlier(tmp_path: Path) -> tuple[LoadedLock, FileStore]:
    store = FileStore(tmp_path)
    digest = store.put(io.BytesIO(PACKAGE)).removeprefix("sha256:")
    package = LockedFile(name="p", version="1", file="p_1_amd64.deb", sha256=digest, size=len(PACKAGE))
    root = DebianRoot(suite="bookworm", architecture="amd64", packages=(package,))
    lock = Lock(
        schema_="tic/lock/v1", recipe_digest=recipe_digest(recipe()), recipe=recipe_data(recipe()),
        pull_requests=(PULL,), base=root, builder=root, python=LockedPython(version="3.11", runtime=(), build=()),
        materials=materials_of(FILES),
    )  # fmt: skip
    return read_lock(canonical_bytes(lock), "lock.json"), store


def test_offline_takes_over_what_was_resolved(tmp_path: Path) -> None:
    loaded, store = earlier(tmp_path)
    (tmp_path / "git/alpha.git").mkdir(parents=True)
    changed = recipe(TEXT + "policy: {forge_mergeable: advisory}\n")
    files = FILES | {"Dockerfile.unified": b"two"}
    assert {one.subject for one in check_lock(loaded, changed, files).findings} == {
        "recipe",
        "Dockerfile.unified",
    }
    lock = relock(changed, files, loaded, store, tmp_path / "git")
    assert lock.pull_requests == loaded.lock.pull_requests
    assert (lock.base, lock.python) == (loaded.lock.base, loaded.lock.python)
    again = read_lock(canonical_bytes(lock), "lock.json")
    assert check_lock(again, changed, files).findings == ()
    assert again.digest != loaded.digest


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('version: "3.11"', 'version: "3.12"', "python changed"),
        ("packages: [python3]", "packages: [python3, git]", "base changed"),
        (OLD, NEW, "pull_requests.alpha changed"),
        ("name: example", "name: example\nplatform: linux/arm64", "platform changed"),
    ],
)
def test_offline_names_what_it_would_have_to_ask(tmp_path: Path, old: str, new: str, named: str) -> None:
    loaded, store = earlier(tmp_path)
    with pytest.raises(UnavailableError) as caught:
        relock(recipe(TEXT.replace(old, new)), FILES, loaded, store, tmp_path / "git")
    assert caught.value.code == "NETWORK"
    assert named in caught.value.actual


def test_offline_names_what_is_not_in_the_store(tmp_path: Path) -> None:
    loaded, _ = earlier(tmp_path / "one")
    with pytest.raises(UnavailableError) as caught:
        relock(recipe(), FILES, loaded, FileStore(tmp_path / "two"), tmp_path / "git")
    assert "p_1_amd64.deb is not in the store" in caught.value.actual


def test_a_lock_that_follows_has_no_finding(tmp_path: Path) -> None:
    loaded, _ = earlier(tmp_path)
    assert check_lock(loaded, recipe(), FILES).exit_code == 0
