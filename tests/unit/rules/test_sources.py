"""Installed files against wheels and heads: each way in which they differ, and each that is allowed."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from sourced import SITE, Head, Wheel, git_id, lock_of
from sourced_image import (
    BUILT,
    HEAD,
    LOCKED,
    PLAIN,
    edited,
    files_of,
    layer,
    pairs,
    said,
    sources_of,
    tree_of,
)
from tic_manifest.errors import RefusedError
from tic_manifest.formats.packed import pack
from tic_manifest.formats.wheel_records import records_bytes
from tic_manifest.model.files import FileEntry, FileKind, LayerTree
from tic_manifest.model.verdict import Status
from tic_manifest.rules.dossier import read_dossier
from tic_manifest.rules.installers import entry_scripts
from tic_manifest.rules.source_evidence import WHEELS, listing_name, read_sources
from tic_manifest.rules.sources import check_sources, row_of, with_blob_id
from tic_manifest.rules.tree import lay_over


def test_an_image_as_locked_and_as_the_head_says_has_nothing_wrong() -> None:
    sources = sources_of()
    assert said(tree_of(), sources) == []
    assert row_of(check_sources(tree_of(), sources, "image"), sources, "image").status is Status.PASS


def test_a_record_rewritten_for_an_edited_file_is_not_the_wheels() -> None:
    later = edited("other/__init__.py", b"z = 4\n", LOCKED)
    found = said(tree_of(later), sources_of())
    assert pairs(found) == {("WHEEL_HASH", "fail", "other/__init__.py")}
    assert found[0].evidence["layer"] == 2
    assert found[0].evidence["earlierLayer"] == 1
    assert found[0].expected == hashlib.sha256(b"z = 3\n").hexdigest()


def test_an_edited_file_of_a_built_wheel_is_neither_the_wheels_nor_the_heads() -> None:
    found = said(tree_of(edited("alpha/core.py", b"y = 3\n")), sources_of())
    assert pairs(found) == {
        ("WHEEL_HASH", "fail", "alpha/core.py"),
        ("TREE_MISMATCH", "fail", "alpha/core.py"),
    }
    mismatch = next(one for one in found if one.code == "TREE_MISMATCH")
    assert (mismatch.expected, mismatch.actual) == (git_id(b"y = 2\n"), git_id(b"y = 3\n"))
    assert mismatch.evidence["layer"] == 2


def test_a_wheel_built_from_a_patched_tree_is_not_the_heads() -> None:
    patched = Wheel(files={**PLAIN, "alpha/core.py": b"y = 9\n"})
    found = said(tree_of(built=patched), sources_of(built=patched))
    assert pairs(found) == {("TREE_MISMATCH", "fail", "alpha/core.py")}


def test_a_removed_row_is_not_the_wheels() -> None:
    less = {f"{SITE}/{LOCKED.info}/RECORD": f"{LOCKED.info}/RECORD,,\n".encode()}
    assert pairs(said(tree_of(less), sources_of())) == {("WHEEL_HASH", "fail", "other/__init__.py")}


def test_another_version_is_not_the_wheel() -> None:
    newer = replace(LOCKED, version="2").installed()
    gone = LayerTree(number=2, hidden={f"{SITE}/{LOCKED.info}"})
    tree = lay_over([layer(1, {**BUILT.installed(), **LOCKED.installed()}), gone, layer(3, newer)])
    assert {(one.code, one.actual) for one in said(tree, sources_of())} == {
        ("WHEEL_HASH", "other_thing-2.dist-info")
    }


def test_a_wheel_that_is_not_installed_is_missing() -> None:
    tree = lay_over([layer(1, BUILT.installed())])
    assert pairs(said(tree, sources_of())) == {("RECORD_MISSING", "fail", LOCKED.file)}


def test_a_distribution_of_no_wheel_is_foreign() -> None:
    foreign = Wheel(name="foreign", files={"foreign.py": b""}).installed()
    found = said(tree_of(foreign), sources_of())
    assert {(one.code, one.actual) for one in found} == {("WHEEL_HASH", "foreign-1.dist-info")}


ENTRY = "[console_scripts]\nrun = alpha.cli:main\n"
SCRIPT = b"""#!/opt/venv/bin/python
import sys
from alpha.cli import main
if __name__ == '__main__':
    sys.argv[0] = sys.argv[0].removesuffix('.exe')
    sys.exit(main())
"""


@pytest.mark.parametrize(
    ("added", "wanted"),
    [
        ({"alpha-1.dist-info/INSTALLER": b"pip\n", "alpha-1.dist-info/REQUESTED": b""}, set()),
        ({"alpha-1.dist-info/direct_url.json": b"{}", "alpha-1.dist-info/uv_cache.json": b"{}"}, set()),
        ({"../../../bin/run": SCRIPT}, set()),
        ({"../../../bin/run": b"#!/bin/sh\n"}, {("UNOWNED_FILE", "inconclusive", "opt/venv/bin/run")}),
        ({"../../../bin/walk": SCRIPT}, {("UNOWNED_FILE", "fail", "opt/venv/bin/walk")}),
        ({"alpha/more.py": b""}, {("UNOWNED_FILE", "fail", "alpha/more.py")}),
        ({"alpha-1.dist-info/more.json": b""}, {("UNOWNED_FILE", "fail", "alpha-1.dist-info/more.json")}),
        ({"other-1.dist-info/INSTALLER": b""}, {("UNOWNED_FILE", "fail", "other-1.dist-info/INSTALLER")}),
    ],
)  # fmt: skip
def test_rows_beside_the_wheels_come_from_a_closed_set(
    added: dict[str, bytes], wanted: set[tuple[str, str, str]]
) -> None:
    built = replace(BUILT, entry_points=ENTRY)
    installed = {path: data for path, data in built.installed(added).items() if ".." not in path}
    installed |= {
        "opt/venv/bin/" + path.rpartition("/")[2]: data for path, data in added.items() if ".." in path
    }
    tree = lay_over([layer(1, {**installed, **LOCKED.installed()})])
    assert pairs(said(tree, sources_of(built=built))) == wanted


def test_scripts_of_entry_points_stay_in_their_folder() -> None:
    from tic_manifest.rules.installers import Place

    place = Place.of(f"{SITE}/alpha-1.dist-info/RECORD")
    text = "[console_scripts]\n../evil = a:b\na/b = a:b\nrun = a.b:c.d [extra]\nodd\n[other]\nx = a:b\n"
    assert set(entry_scripts(place, text)) == {"opt/venv/bin/run"}
    for odd in (
        "no section",
        "[console_scripts]\nrun\n more",
        "[console_scripts]\n# run = a:b",
        "[\n]\nx = a:b",
    ):
        assert entry_scripts(place, odd) == {}


def test_a_script_of_the_wheel_may_have_its_first_line_rewritten_and_nothing_else() -> None:
    text = "#!python\nprint(1)\n"
    row = "alpha-1.data/scripts/go"
    built = replace(BUILT, files={**PLAIN, row: text.encode()}, scripts={row: text})
    head = Head(files={**PLAIN, "tools/go": b"#!/usr/bin/env python3\nprint(1)\n"})
    for data, codes in (
        (b"#!/opt/venv/bin/python3\nprint(1)\n", set()),
        (b"#!/opt/venv/bin/python3\nprint(2)\n", {"WHEEL_HASH"}),
        (b"#!/tmp/python3\nprint(1)\n", {"WHEEL_HASH"}),
    ):
        installed = replace(BUILT, files=PLAIN).installed({"../../../bin/go": data})
        installed = {path: one for path, one in installed.items() if ".." not in path}
        tree = lay_over([layer(1, {**installed, "opt/venv/bin/go": data, **LOCKED.installed()})])
        found = said(tree, sources_of(head, built))
        assert {one.code for one in found} == codes, data


def test_bytecode_is_never_proved() -> None:
    known, unknown = f"{SITE}/alpha/__pycache__/core.cpython-311.pyc", f"{SITE}/alpha/more.pyc"
    found = said(tree_of({known: b"code", unknown: b"code"}), sources_of())
    assert pairs(found) == {
        ("UNOWNED_FILE", "inconclusive", known.removeprefix(f"{SITE}/")),
        ("UNOWNED_FILE", "fail", unknown.removeprefix(f"{SITE}/")),
    }


@pytest.mark.parametrize("mode", [0o4755, 0o2755])
def test_a_file_that_runs_with_other_rights_is_not_the_wheels(mode: int) -> None:
    late = layer(2, {f"{SITE}/other/__init__.py": b"z = 3\n"}, mode)
    tree = lay_over([layer(1, {**BUILT.installed(), **LOCKED.installed()}), late])
    assert pairs(said(tree, sources_of())) == {("WHEEL_HASH", "fail", "other/__init__.py")}


def test_a_file_that_became_executable_is_not_the_heads() -> None:
    late = layer(2, {f"{SITE}/alpha/core.py": b"y = 2\n"}, 0o755)
    tree = lay_over([layer(1, {**BUILT.installed(), **LOCKED.installed()}), late])
    assert pairs(said(tree, sources_of())) == {("TREE_MISMATCH", "fail", "alpha/core.py")}
    program = replace(HEAD, programs=["alpha/core.py"])
    assert said(tree, sources_of(program)) == []
    assert said(tree_of(), sources_of(program)) == []  # build backends drop the bit


def test_a_link_in_place_of_a_file_is_not_the_wheels() -> None:
    path = f"{SITE}/alpha/core.py"
    late = LayerTree(number=2, entries={path: FileEntry(FileKind.LINK, 2, target="/tmp/core.py")})
    tree = lay_over([layer(1, {**BUILT.installed(), **LOCKED.installed()}), late])
    assert pairs(said(tree, sources_of())) == {("WHEEL_HASH", "fail", "alpha/core.py")}


# --- layouts, generated files, native code


@pytest.mark.parametrize(
    ("prefix", "more"),
    [("src/", ""), ("py/", "    subdirectory: py\n"), ("py/src/", "    subdirectory: py\n")],
)
def test_layouts_that_are_mapped(prefix: str, more: str) -> None:
    head = Head(files={f"{prefix}{path}": data for path, data in PLAIN.items()})
    assert said(tree_of(), sources_of(head, more=more)) == []


def test_a_layout_that_is_not_mapped_does_not_pass() -> None:
    head = Head(files={f"lib/{path}": data for path, data in PLAIN.items()})
    assert {one.code for one in said(tree_of(), sources_of(head))} == {"TREE_MISMATCH"}


def test_an_undeclared_generated_file_does_not_pass() -> None:
    built = Wheel(files={**PLAIN, "alpha/_version.py": b"v = 1\n"})
    found = said(tree_of(built=built), sources_of(built=built))
    assert pairs(found) == {("TREE_MISMATCH", "fail", "alpha/_version.py")}
    assert (found[0].expected, found[0].actual) == (None, git_id(b"v = 1\n"))
    more = "    build: {generated: [alpha/_version.py]}\n"
    everything = check_sources(tree_of(built=built), sources_of(built=built, more=more), "image")
    assert [one for one in everything if not one.note] == []
    assert ["alpha/_version.py"] in [
        one.actual for one in everything if one.evidence.get("kind") == "generated"
    ]


def test_a_generated_file_that_the_head_has_too_is_listed_once() -> None:
    head = Head(files={**PLAIN, "alpha/_version.py": b"v = 0\n"})
    built = Wheel(files={**PLAIN, "alpha/_version.py": b"v = 1\n"})
    more = "    build: {generated: [alpha/_version.py]}\n"
    found = check_sources(tree_of(built=built), sources_of(head, built, more), "image")
    listed = [one.evidence["kind"] for one in found if one.code == "NOT_IN_TREE"]
    assert listed == ["generated"]


def test_native_code_is_compiled_from_sources_of_the_head_or_fails() -> None:
    built = Wheel(files={**PLAIN, "alpha/_C.abi3.so": b"\x7fELF"})
    found = said(tree_of(built=built), sources_of(built=built))
    assert pairs(found) == {("NATIVE_NOT_FROM_SOURCE", "fail", "alpha/_C.abi3.so")}
    head = Head(files={**PLAIN, "csrc/a.cpp": b"int a;"})
    notes = check_sources(tree_of(built=built), sources_of(head, built), "image")
    assert [one.actual for one in notes if one.evidence.get("kind") == "compiled"] == [["alpha/_C.abi3.so"]]
    assert all(one.note for one in notes)


@pytest.mark.parametrize(
    ("commit", "held", "codes"),
    [
        ("a" * 40, b"\x7fELF", set()),
        ("unknown", b"\x7fELF", {("NATIVE_NOT_FROM_SOURCE", "inconclusive")}),
        ("9" * 40, b"\x7fELF", {("NATIVE_NOT_FROM_SOURCE", "fail")}),
        ("a" * 40, b"other", {("NATIVE_NOT_FROM_SOURCE", "fail")}),
    ],
)
def test_native_code_of_a_precompiled_wheel_is_traced_to_it(
    commit: str, held: bytes, codes: set[tuple[str, str]]
) -> None:
    built = Wheel(files={**PLAIN, "alpha/_C.abi3.so": b"\x7fELF"})
    given = Wheel(name="alpha_cpu", files={"alpha/_C.abi3.so": held})
    head = Head(files={**PLAIN, "csrc/a.cpp": b"int a;"})
    more = f"    precompiled: {{wheel: {given.file}, sha256: {given.sha256}, commit: {commit}}}\n"
    files = files_of(head, built, more, None, given)
    found = said(tree_of(built=built), read_sources(read_dossier(files)))
    assert {(one.code, str(one.status)) for one in found} == codes


def test_licences_are_files_of_the_head_wherever_the_wheel_puts_them() -> None:
    built = Wheel(
        files={**PLAIN, "alpha-1.dist-info/licenses/LICENSE": b"free", "alpha-1.dist-info/WHEEL": b""}
    )
    assert said(tree_of(built=built), sources_of(Head(files={**PLAIN, "LICENSE": b"free"}), built)) == []
    found = said(tree_of(built=built), sources_of(Head(files={**PLAIN, "LICENSE": b"other"}), built))
    assert {one.code for one in found} == {"TREE_MISMATCH"}


def test_a_link_of_the_head_stands_for_the_file_that_it_names() -> None:
    head = Head(files={"alpha/__init__.py": b"x = 1\n", "lib/core.py": b"y = 2\n"}, symlinks={"alpha/core.py": "../lib/core.py"})  # fmt: skip
    assert said(tree_of(), sources_of(head)) == []
    other = replace(head, symlinks={"alpha/core.py": "../lib/other.py"})
    assert {one.code for one in said(tree_of(), sources_of(other))} == {"TREE_MISMATCH"}


def test_sources_that_the_wheel_leaves_out_are_listed() -> None:
    head = Head(files={**PLAIN, "alpha/extra.py": b"", "tests/test_alpha.py": b""})
    notes = [one for one in check_sources(tree_of(), sources_of(head), "image") if one.note]
    assert [one.actual for one in notes if one.evidence.get("kind") == "left out"] == [["alpha/extra.py"]]


# --- submodules, and the lock against the listing


def test_a_lock_that_names_another_commit_of_a_submodule_drifts() -> None:
    head = replace(HEAD, links={"lib/sub": "1" * 40})
    assert said(tree_of(), sources_of(head)) == []
    lock = lock_of(replace(head, links={}), [LOCKED])
    wrong = lock_of(head, [LOCKED], submodules=())
    found = said(tree_of(), sources_of(head, lock=wrong))
    assert [(one.code, one.expected, one.evidence["path"]) for one in found] == [
        ("SUBMODULE_DRIFT", "1" * 40, "lib/sub")
    ]
    assert lock.digest != wrong.digest


def test_a_file_below_a_gitlink_is_of_no_known_commit() -> None:
    built = Wheel(files={**PLAIN, "sub/x.py": b"1"})
    head = replace(HEAD, links={"sub": "1" * 40})
    found = said(tree_of(built=built), sources_of(head, built))
    assert [(one.code, one.expected, one.evidence["path"]) for one in found] == [
        ("SUBMODULE_DRIFT", "1" * 40, "sub")
    ]


def test_a_lock_that_names_another_tree_mismatches() -> None:
    wrong = lock_of(HEAD, [LOCKED], head_tree="e" * 40)
    assert pairs(said(tree_of(), sources_of(lock=wrong))) == {("TREE_MISMATCH", "fail", "alpha")}


# --- evidence that lacks, lies or is no evidence


@pytest.mark.parametrize("name", [listing_name("alpha"), WHEELS, "receipts/build.json"])
def test_without_evidence_the_check_is_not_run(name: str) -> None:
    files = files_of()
    del files[name]
    sources = read_sources(read_dossier(files))
    row = row_of(check_sources(tree_of(), sources, "image"), sources, "image")
    assert (row.status, bool(row.reason)) == (Status.NOT_RUN, True)


def test_one_record_that_lacks_leaves_the_check_not_run_and_a_fail_stands() -> None:
    files = files_of() | {WHEELS: records_bytes([BUILT.evidence()])}
    sources = read_sources(read_dossier(files))
    row = row_of(check_sources(tree_of(), sources, "image"), sources, "image")
    assert (row.status, LOCKED.file in row.reason) == (Status.NOT_RUN, True)
    found = check_sources(tree_of(edited("alpha/core.py", b"y = 3\n")), sources, "image")
    assert row_of(found, sources, "image").status is Status.FAIL


def test_nothing_is_disproved_for_want_of_the_precompiled_wheels_record() -> None:
    built = Wheel(files={**PLAIN, "alpha/_C.abi3.so": b"\x7fELF", "alpha/ops.py": b"made there"})
    more = f"    precompiled: {{wheel: a-1-py3-none-any.whl, sha256: {'7' * 64}, commit: {'a' * 40}}}\n"
    sources = sources_of(built=built, more=more)
    found = check_sources(tree_of(built=built), sources, "image")
    assert row_of(found, sources, "image").status is Status.NOT_RUN


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        (listing_name("alpha"), Head(files={"a": b"b"}).listing(), "TREE_MISMATCH"),
        (listing_name("alpha"), pack(b"x"), "SCHEMA"),
        (listing_name("alpha"), b"", "SCHEMA"),
        (WHEELS, pack(b"{}"), "SCHEMA"),
        (WHEELS, b"{}", "SCHEMA"),
    ],
)
def test_evidence_that_is_none_is_refused(name: str, data: bytes, code: str) -> None:
    with pytest.raises(RefusedError) as told:
        read_sources(read_dossier(files_of() | {name: data}))
    assert told.value.code == code


def test_a_file_whose_id_was_not_computed_is_undecided() -> None:
    plain = layer(1, {**BUILT.installed(), **LOCKED.installed()})
    plain.entries = {path: one._replace(blob_id="") for path, one in plain.entries.items()}
    found = said(lay_over([plain]), sources_of())
    assert {(one.code, str(one.status)) for one in found} == {("TREE_MISMATCH", "inconclusive")}


def test_ids_are_asked_for_of_files_of_built_wheels_alone() -> None:
    wanted = with_blob_id(
        [sources_of(built=Wheel(files={**PLAIN, "top.py": b"", "alpha-1.data/scripts/go": b""}))]
    )
    asked = [path for path in (
        f"{SITE}/alpha/core.py", f"{SITE}/other/__init__.py", f"{SITE}/top.py", "opt/venv/bin/go", "etc/passwd",
    ) if wanted(path)]  # fmt: skip
    assert asked == [f"{SITE}/alpha/core.py", f"{SITE}/top.py", "opt/venv/bin/go"]
    assert not with_blob_id([])("alpha/core.py")


def test_many_findings_are_counted_and_the_first_are_listed() -> None:
    many = {f"alpha/m{number}.py": b"%d" % number for number in range(300)}
    built = Wheel(files={**PLAIN, **many})
    found = said(tree_of(built=built), sources_of(built=built))
    assert len(found) == 101
    assert (found[-1].code, found[-1].actual) == ("TREE_MISMATCH", 300)
