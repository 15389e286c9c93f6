"""A local checkout: every kind of dirt, and a hostile configuration that must not run (rules/pr-gate.md F29-F31)."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest
from tic_manifest.adapters.worktree import Worktree
from tic_manifest.errors import PersonError
from tic_manifest.model.gate import LocalFacts

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from git_repos import checkout, commit, git, mirror, runner


def look(tmp: Path, place: Path, pinned: str) -> LocalFacts:
    """Facts of a checkout whose pinned commit the forge has."""
    one = mirror(tmp, place)
    one.fetch([pinned])
    return Worktree(runner(), place, "vllm").facts(pinned, one, [pinned])


def kinds(seen: LocalFacts) -> dict[str, tuple[str, ...]]:
    return {kind: paths for kind, paths, _ in seen.dirty}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    root = checkout(tmp_path / "r")
    commit(root, {"a.txt": "a\n", "b.txt": "b\n", ".gitignore": "*.log\n"})
    return root


def pinned(place: Path) -> str:
    return git(place, "rev-parse", "HEAD")


def test_clean(tmp_path: Path, place: Path) -> None:
    seen = look(tmp_path, place, pinned(place))
    assert (seen.head, seen.dirty, seen.unpushed, seen.submodules) == (pinned(place), (), (), ())


def test_kinds(tmp_path: Path, place: Path) -> None:
    pin = pinned(place)
    (place / "a.txt").write_text("staged\n")
    git(place, "add", "a.txt")
    (place / "b.txt").write_text("unstaged\n")
    (place / "new.txt").write_text("new\n")
    (place / "x.log").write_text("log\n")
    assert kinds(look(tmp_path, place, pin)) == {
        "staged": ("a.txt",), "unstaged": ("b.txt",), "untracked": ("new.txt",), "ignored": ("x.log",),
    }  # fmt: skip


def test_excluded_file_is_seen(tmp_path: Path, place: Path) -> None:
    (place / ".git/info").mkdir(exist_ok=True)
    (place / ".git/info/exclude").write_text("secret.py\n")
    (place / "secret.py").write_text("x\n")
    assert kinds(look(tmp_path, place, pinned(place))) == {"ignored": ("secret.py",)}


@pytest.mark.parametrize("bit", ["--skip-worktree", "--assume-unchanged"])
def test_hidden_bits(tmp_path: Path, place: Path, bit: str) -> None:
    git(place, "update-index", bit, "a.txt")
    (place / "a.txt").write_text("hidden\n")
    assert kinds(look(tmp_path, place, pinned(place))) == {"hidden_bit": ("a.txt",)}


def test_mode(tmp_path: Path, place: Path) -> None:
    git(place, "config", "core.fileMode", "false")
    (place / "a.txt").chmod(0o755)
    assert kinds(look(tmp_path, place, pinned(place))) == {"mode": ("a.txt",)}


def test_replace(tmp_path: Path, place: Path) -> None:
    blob = git(place, "rev-parse", "HEAD:a.txt")
    git(place, "replace", blob, git(place, "rev-parse", "HEAD:b.txt"))
    assert kinds(look(tmp_path, place, pinned(place))) == {"replace": (blob,)}


def test_unpushed(tmp_path: Path, place: Path) -> None:
    pin = pinned(place)
    top = commit(place, {"a.txt": "more\n"}, date=1_700_000_001)
    one = mirror(tmp_path, place)
    one.fetch([pin])
    seen = Worktree(runner(), place, "vllm").facts(pin, one, [pin])
    assert (seen.head, seen.unpushed, seen.dirty) == (top, (top,), ())


def test_smudged_lfs_file_is_clean(tmp_path: Path, place: Path) -> None:
    body = b"big\n" * 1000
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{hashlib.sha256(body).hexdigest()}\nsize {len(body)}\n"
    pin = commit(place, {"big.bin": pointer})
    (place / "big.bin").write_bytes(body)
    assert look(tmp_path, place, pin).dirty == ()
    (place / "big.bin").write_bytes(body + b"x")
    assert kinds(Worktree(runner(), place, "v").facts(pin, mirror(tmp_path, place), [pin])) == {
        "unstaged": ("big.bin",)
    }


def test_linked_worktree_and_packed_refs(tmp_path: Path, place: Path) -> None:
    pin = pinned(place)
    git(place, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    git(place, "pack-refs", "--all")
    assert look(tmp_path, tmp_path / "linked", pin).head == pin


def test_hostile_configuration_runs_nothing(tmp_path: Path, place: Path) -> None:
    pin, touched = pinned(place), tmp_path / "touched"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {touched}\ncat\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.process", "diff.x.textconv", "core.sshCommand"):
        git(place, "config", key, str(program))
    (place / ".git/info").mkdir(exist_ok=True)
    (place / ".git/info/attributes").write_text("* filter=x diff=x\n")
    (place / "a.txt").write_text("dirty\n")
    assert kinds(look(tmp_path, place, pin)) == {"unstaged": ("a.txt",)}
    assert not touched.exists()


def test_submodule(tmp_path: Path, place: Path) -> None:
    inner = checkout(tmp_path / "inner")
    oid = commit(inner, {"x": "1\n"})
    (place / ".gitmodules").write_text('[submodule "s"]\n\tpath = s\n\turl = ../inner\n\tignore = all\n')
    git(place, "-c", "protocol.file.allow=always", "clone", "-q", str(inner), "s")
    git(place, "add", ".gitmodules", "s")
    git(place, "commit", "-q", "-m", "submodule")
    pin = pinned(place)
    assert look(tmp_path, place, pin).submodules == ()
    (place / "s/x").write_text("2\n")
    assert Worktree(runner(), place, "v").facts(pin, mirror(tmp_path, place), [pin]).submodules == (
        ("SUBMODULE_DIRTY", "s"),
    )
    git(place / "s", "commit", "-q", "-a", "-m", "more", date=1_700_000_009)
    assert Worktree(runner(), place, "v").facts(pin, mirror(tmp_path, place), [pin]).submodules == (
        ("SUBMODULE_DRIFT", "s"),
    )
    assert oid


def test_link_to_a_folder_is_a_link(tmp_path: Path, place: Path) -> None:
    (place / "d").mkdir()
    (place / "d/e").write_text("e\n")
    os.symlink("d", place / "link")
    pin = commit(place, {})
    assert look(tmp_path, place, pin).dirty == ()


def test_no_checkout(tmp_path: Path, place: Path) -> None:
    one = mirror(tmp_path, place)
    with pytest.raises(PersonError):
        Worktree(runner(), tmp_path, "v").facts(pinned(place), one, [])
