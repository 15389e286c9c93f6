"""An edit applies exactly once or not at all; a change that changes nothing is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from edits import (
    EXECUTABLE,
    LINK,
    PLAIN,
    Edit,
    EditError,
    Entry,
    Tree,
    add_files,
    apply,
    apply_edit,
    fill,
    load_edits,
    read_files,
)


def tree(**files: bytes) -> Tree:
    return {name.replace("__", "/"): Entry(PLAIN, data) for name, data in files.items()}


def test_an_edit_replaces_the_one_place_and_keeps_the_mode() -> None:
    given = {"tool": Entry(EXECUTABLE, b"one two three")}
    apply_edit(given, Edit("tool", "two", "2"))
    assert given["tool"] == Entry(EXECUTABLE, b"one 2 three")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        pytest.param(Edit("a", "x", "y"), "0 times", id="absent"),
        pytest.param(Edit("a", "o", "y"), "2 times", id="twice"),
        pytest.param(Edit("a", "", "y"), "0 times", id="empty"),
        pytest.param(Edit("b", "o", "y"), "no such file", id="no file"),
        pytest.param(Edit("../a", "o", "y"), "no such file", id="outside"),
        pytest.param(Edit("link", "o", "y"), "no such file", id="link"),
        pytest.param(Edit("a", "two\n", "y"), "0 times", id="other line end"),
    ],
)
def test_an_edit_that_does_not_apply_once_is_refused_and_changes_nothing(edit: Edit, words: str) -> None:
    given = {"a": Entry(PLAIN, b"one two"), "link": Entry(LINK, b"o")}
    before = dict(given)
    with pytest.raises(EditError, match=words):
        apply_edit(given, edit)
    assert given == before


def test_a_file_that_is_there_already_is_not_added() -> None:
    with pytest.raises(EditError, match="write an edit instead"):
        add_files(tree(a=b"1"), tree(a=b"2"))


def test_a_change_is_edits_then_files_and_leaves_its_input_alone(tmp_path: Path) -> None:
    (tmp_path / "edits.toml").write_text("[[edit]]\npath='a'\nold='''\none\n'''\nnew='''\nuno\n'''\n")
    (tmp_path / "files" / "sub").mkdir(parents=True)
    (tmp_path / "files" / "sub" / "new").write_text("head {{head:first}}\n")
    before = tree(a=b"one\ntwo\n")
    after = apply(before, tmp_path, {"head:first": "1" * 40})
    assert after == {**tree(a=b"uno\ntwo\n"), "sub/new": Entry(PLAIN, b"head " + b"1" * 40 + b"\n")}
    assert before == tree(a=b"one\ntwo\n")


def test_an_empty_change_and_an_unknown_head_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EditError, match="changes nothing"):
        apply(tree(a=b"1"), tmp_path, {})
    with pytest.raises(EditError, match="not known yet"):
        fill(tree(a=b"{{head:later}}"), {"head:first": "1" * 40})


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_modes_do_not_depend_on_umask(tmp_path: Path, umask: int) -> None:
    old = os.umask(umask)
    try:
        (tmp_path / "plain").write_bytes(b"1")
        (tmp_path / "tool").write_bytes(b"2")
        (tmp_path / "tool").chmod(0o755 & ~umask)
    finally:
        os.umask(old)
    assert {path: entry.mode for path, entry in read_files(tmp_path).items()} == {
        "plain": PLAIN,
        "tool": EXECUTABLE,
    }


def test_a_link_among_our_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/hostname")
    with pytest.raises(EditError, match="link"):
        read_files(tmp_path)


@pytest.mark.parametrize(
    "text", ["[[edit]]\npath='a'\nold='b'\n", "[[edit]]\npath='a'\nold='b'\nnew='c'\nmode='x'\n"]
)
def test_a_table_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "edits.toml").write_text(text)
    with pytest.raises(EditError, match="keys path, old and new"):
        load_edits(tmp_path / "edits.toml")
