"""The hardened git adapter on real repositories: nothing of the user's configuration, nothing executed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tic_manifest.adapters.git_objects import tree_id
from tic_manifest.adapters.git_remote import remote_error
from tic_manifest.errors import RefusedError, UnavailableError
from tic_manifest.formats.tree_listing import read_listing

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from git_repos import checkout, commit, git, mirror, runner

MISSING = "2" * 40


def test_export_is_the_tree_whatever_attributes_say(tmp_path: Path) -> None:
    source = checkout(tmp_path / "r")
    attributes = "* text eol=crlf\nsecret.txt export-ignore\nid.txt export-subst ident\n"
    files = {
        ".gitattributes": attributes,
        "secret.txt": "s\n",
        "id.txt": "$Format:%H$ $Id$\n",
        "d/e.txt": "e\n",
    }
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    os.symlink("d/e.txt", source / "link")
    head = commit(source, dict(files))
    one = mirror(tmp_path, source)
    one.fetch([head])
    before = os.umask(0o077)
    try:
        assert one.export(head, tmp_path / "out") == git(source, "rev-parse", "HEAD^{tree}")
    finally:
        os.umask(before)
    assert (tmp_path / "out/id.txt").read_text() == "$Format:%H$ $Id$\n"
    assert (tmp_path / "out/run.sh").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "out/d").stat().st_mode & 0o777 == 0o755
    assert os.readlink(tmp_path / "out/link") == "d/e.txt"


def test_export_refuses_a_path_that_leaves_its_root(tmp_path: Path) -> None:
    source = checkout(tmp_path / "r")
    blob = git(source, "hash-object", "-w", "--stdin", stdin=b"x")
    inner = git(source, "mktree", stdin=f"100644 blob {blob}\tx\n".encode())
    raw = b"40000 ..\0" + bytes.fromhex(inner)
    outer = git(source, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=raw)
    head = git(source, "commit-tree", "-m", "bad", outer)
    git(source, "update-ref", "refs/heads/main", head)
    one = mirror(tmp_path, source)
    one.fetch([head])
    with pytest.raises(RefusedError) as caught:
        one.export(head, tmp_path / "deep" / "out")
    assert caught.value.code == "AMBIGUOUS_PATH"
    assert not (tmp_path / "deep" / "x").exists()


def test_a_link_cannot_be_written_through(tmp_path: Path) -> None:
    source = checkout(tmp_path / "r")
    link = git(source, "hash-object", "-w", "--stdin", stdin=str(tmp_path).encode())
    blob = git(source, "hash-object", "-w", "--stdin", stdin=b"owned")
    inner = git(source, "mktree", stdin=f"100644 blob {blob}\towned\n".encode())
    raw = b"120000 a\0" + bytes.fromhex(link) + b"40000 a\0" + bytes.fromhex(inner)
    outer = git(source, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=raw)
    head = git(source, "commit-tree", "-m", "bad", outer)
    git(source, "update-ref", "refs/heads/main", head)
    one = mirror(tmp_path, source)
    one.fetch([head])
    with pytest.raises(RefusedError):
        one.export(head, tmp_path / "out")
    assert not (tmp_path / "owned").exists()


def test_merge(tmp_path: Path) -> None:
    source = checkout(tmp_path / "r")
    fork = commit(source, {"a": "1\n", "b": "1\n"})
    base = commit(source, {"a": "2\n"})
    git(source, "checkout", "-q", "-b", "feat", fork)
    clean = commit(source, {"b": "2\n"})
    dirty = commit(source, {"a": "3\n"})
    git(source, "checkout", "-q", "--orphan", "alone")
    orphan = commit(source, {"z": "1\n"})
    one = mirror(tmp_path, source)
    one.fetch([base, dirty, orphan])
    assert one.merge(base, clean).conflicts == ()
    assert one.merge(base, dirty).conflicts == ("a",)
    assert one.merge_tree(base, dirty) is None
    assert one.merge_bases(base, orphan) == ()
    with pytest.raises(UnavailableError) as caught:
        one.merge(base, MISSING)
    assert caught.value.code == "OBJECTS_MISSING"


def test_a_missing_parent_is_no_answer(tmp_path: Path) -> None:
    source = checkout(tmp_path / "r")
    first = commit(source, {"a": "1\n"}, date=1_700_000_001)
    second = commit(source, {"a": "2\n"}, date=1_700_000_002)
    other = commit(checkout(tmp_path / "o"), {"x": "1\n"})
    one = mirror(tmp_path, source)
    one.fetch([second])
    mirror(tmp_path, tmp_path / "o").fetch([other])
    for pack in (tmp_path / "mirror.git" / "objects" / "pack").glob("*.pack"):
        loose = pack.rename(tmp_path / pack.name)
        git(tmp_path / "mirror.git", "unpack-objects", "-q", stdin=loose.read_bytes())
    for index in (tmp_path / "mirror.git" / "objects" / "pack").glob("*"):
        index.unlink()
    (tmp_path / "mirror.git" / "objects" / first[:2] / first[2:]).unlink()
    for question in (lambda: one.merge_bases(second, other), lambda: one.is_ancestor(other, second)):
        with pytest.raises(UnavailableError) as caught:
            question()
        assert caught.value.code == "OBJECTS_MISSING"


def test_a_commit_that_nobody_has(tmp_path: Path) -> None:
    source = checkout(tmp_path / "r")
    commit(source, {"a": "1\n"})
    with pytest.raises(RefusedError) as caught:
        mirror(tmp_path, source).fetch([MISSING])
    assert caught.value.code == "PIN_UNFETCHABLE"
    assert "file://" not in "\n".join(caught.value.lines())


def test_nothing_of_the_user_is_read_or_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = checkout(tmp_path / "r")
    head = commit(source, {"a": "1\n"})
    touched = tmp_path / "touched"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {touched}\n")
    program.chmod(0o755)
    config = f"[core]\n\tsshCommand = {program}\n\tfsmonitor = {program}\n\thooksPath = {tmp_path}\n"
    config += f'[url "https://evil.invalid/"]\n\tinsteadOf = file://\n[credential]\n\thelper = {program}\n'
    (tmp_path / ".gitconfig").write_text(config)
    for name, value in {
        "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "GIT_CONFIG_GLOBAL": str(tmp_path / ".gitconfig"),
        "GIT_DIR": "/nowhere", "GIT_EXTERNAL_DIFF": str(program), "GIT_SSH_COMMAND": str(program),
        "GIT_ASKPASS": str(program), "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(program), "GIT_REPLACE_REF_BASE": "refs/x", "GIT_OBJECT_DIRECTORY": "/nowhere",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    one = mirror(tmp_path, source)
    one.fetch([head])
    assert one.tree_of(head)
    assert not touched.exists()


def test_replace_objects_are_not_followed(tmp_path: Path) -> None:
    source = checkout(tmp_path / "r")
    first = commit(source, {"a": "1\n"}, "one")
    second = commit(source, {"a": "2\n"}, "two")
    one = mirror(tmp_path, source)
    one.fetch([second])
    before = one.tree_of(second)
    git(tmp_path / "mirror.git", "replace", second, first)
    assert one.tree_of(second) == before


def test_submodules_and_paths(tmp_path: Path) -> None:
    source = checkout(tmp_path / "r")
    base = commit(source, {".gitmodules": '[submodule "x"]\n\tpath = sub\n\turl = ../s.git\n'})
    link = "160000," + "1" * 40 + ",sub"
    git(source, "update-index", "--add", "--cacheinfo", link)
    git(source, "commit", "-q", "-m", "link")
    head = git(source, "rev-parse", "HEAD")
    one = mirror(tmp_path, source)
    one.fetch([head])
    assert [(s.path, s.url, s.commit) for s in one.submodules(head)] == [("sub", "../s.git", "1" * 40)]
    assert one.changed_paths(base, head) == ("sub",)
    assert one.export(head, tmp_path / "out") == one.tree_of(head)
    listing = read_listing(one.listing(head), head, "listing")
    assert (listing.tree, listing.submodules()) == (one.tree_of(head), {"sub": "1" * 40})
    with pytest.raises(UnavailableError):
        one.listing(MISSING)


def test_remote_words() -> None:
    shown = "https://forge.invalid/o/r.git"
    words = {
        "fatal: remote error: upload-pack: not our ref 1111": "PIN_UNFETCHABLE",
        "fatal: unable to access 'x': The requested URL returned error: 403": "NO_ACCESS",
        "fatal: could not read Username for 'x': terminal prompts disabled": "NO_ACCESS",
        "fatal: unable to access 'x': The requested URL returned error: 503": "NETWORK",
        "fatal: unable to access 'x': Could not resolve host: y": "NETWORK",
        "fatal: unable to access 'x': Operation too slow": "TIMEOUT",
        "warning: rejected x because shallow roots are not allowed to be updated": "SHALLOW",
        "fatal: mismatched algorithms: client sha1; server sha256": "RECIPE",
        "error: something new": "OBJECTS_MISSING",
    }
    assert {text: remote_error(text, shown).code for text in words} == words


def test_secrets_do_not_reach_git(tmp_path: Path) -> None:
    one = runner(GITHUB_TOKEN="canary-1", MY_PASSWORD="canary-2", GIT_FOO="x")
    assert {"GITHUB_TOKEN", "MY_PASSWORD", "GIT_FOO"} <= set(one._unset)
    assert not any("canary" in value for value in one._env.values())


def test_tree_id_orders_folders_as_git_does(tmp_path: Path) -> None:
    source = checkout(tmp_path / "r")
    commit(source, {"a.b": "1", "a/b": "2", "a0": "3"})
    rows = [line.split() for line in git(source, "ls-tree", "-r", "HEAD").splitlines()]
    entries = [(row[0], row[2], row[3].encode()) for row in rows]
    assert tree_id(entries) == git(source, "rev-parse", "HEAD^{tree}")
