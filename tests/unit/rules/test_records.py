"""The effective tree and RECORDs on it: S16 to S19, C9 and C10, on real layouts with real archives."""

from __future__ import annotations

import base64
import hashlib
import io
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tic_manifest.adapters.blobs import read_blobs, read_trees
from tic_manifest.adapters.layer_tree import LayerTreeReader
from tic_manifest.adapters.layout import LayoutSource
from tic_manifest.formats.reference import parse_reference
from tic_manifest.model.delivery import VerifyReport
from tic_manifest.model.files import FileEntry, FileKind, LayerTree
from tic_manifest.model.verdict import Check, Finding, Status
from tic_manifest.rules.records import check_records, read_record
from tic_manifest.rules.tree import check_tree, lay_over, resolve
from tic_manifest.stages.verify import Options, Tools, verify

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from layouts import LAYER, Layout, digest_of
from quiet import Quiet

SITE = "opt/venv/lib/python3.11/site-packages"
INFO = f"{SITE}/alpha-1.dist-info"


def row(path: str, data: bytes) -> str:
    text = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={text},{len(data)}"


FILES = {
    "alpha/__init__.py": b"x = 1\n",
    "alpha/_C.abi3.so": b"\x7fELF native",
    "../../../bin/alpha": b"#!/bin/sh\n",
}
RECORD = "\n".join([*(row(name, data) for name, data in FILES.items()), "alpha/__pycache__/x.pyc,,",
                    "alpha-1.dist-info/RECORD,,", ""]).encode()  # fmt: skip
Add = Callable[[tarfile.TarFile], None]


def add(name: str, data: bytes = b"", **fields: Any) -> Add:
    def into(archive: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        for key, value in fields.items():
            setattr(info, key, value)
        archive.addfile(info, io.BytesIO(data))

    return into


def link(name: str, target: str) -> Add:
    return add(name, type=tarfile.SYMTYPE, linkname=target)


def hard(name: str, target: str) -> Add:
    return add(name, type=tarfile.LNKTYPE, linkname=target)


def folder(name: str) -> Add:
    return add(name, type=tarfile.DIRTYPE)


INSTALLED = [
    add(f"{SITE}/alpha/__init__.py", FILES["alpha/__init__.py"]), add(f"{SITE}/alpha/_C.abi3.so", FILES["alpha/_C.abi3.so"]),
    add("opt/venv/bin/alpha", FILES["../../../bin/alpha"]), add(f"{INFO}/RECORD", RECORD),
    add(f"{INFO}/INSTALLER", b"pip\n"),
]  # fmt: skip


def archive(*adds: Add, form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as made:
        for one in adds:
            one(made)
    return out.getvalue()


def read(raw: bytes, number: int = 1, piece: int = 4096) -> LayerTree:
    reader = LayerTreeReader(number)
    for at in range(0, len(raw), piece):
        reader.update(raw[at : at + piece])
    reader.close()
    return reader.tree


def findings(*layers: list[Add]) -> list[Finding]:
    trees = [read(archive(*adds), number) for number, adds in enumerate(layers, 1)]
    tree = lay_over(trees)
    return [*check_tree(tree, trees, "image"), *check_records(tree, "image")]


def test_an_installed_wheel_is_as_its_record_says_and_installer_files_are_allowed() -> None:
    more = [
        add(f"{INFO}/uv_cache.json", b"{}"),
        add(f"{INFO}/direct_url.json", b"{}"),
        add(f"{INFO}/REQUESTED"),
    ]
    assert findings([*INSTALLED, *more]) == []
    assert findings(INSTALLED, [add("etc/x", b"y")]) == []


def test_a_later_layer_that_overwrites_native_code_is_named_with_the_earlier_one() -> None:
    [found] = findings(INSTALLED, [add("etc/x", b"y")], [add(f"{SITE}/alpha/_C.abi3.so", b"other")])
    assert (found.code, found.status, found.subject) == (
        "RECORD_HASH",
        Status.FAIL,
        f"{SITE}/alpha/_C.abi3.so",
    )
    assert found.evidence == {"distribution": INFO, "layer": 3, "earlierLayer": 1}
    assert found.actual == hashlib.sha256(b"other").hexdigest()


GONE = [
    ("whiteout", [add(f"{SITE}/alpha/.wh.__init__.py")], ["alpha/__init__.py"]),
    ("opaque", [add(f"{SITE}/alpha/.wh..wh..opq")], ["alpha/__init__.py", "alpha/_C.abi3.so"]),
    ("folder", [add(f"{SITE}/.wh.alpha")], ["alpha/__init__.py", "alpha/_C.abi3.so"]),
    ("a file in place of a folder", [add(f"{SITE}/alpha", b"")], ["alpha/__init__.py", "alpha/_C.abi3.so"]),
]


@pytest.mark.parametrize(("adds", "gone"), [one[1:] for one in GONE], ids=[one[0] for one in GONE])
def test_a_later_layer_that_removes_files_is_named(adds: list[Add], gone: list[str]) -> None:
    found = findings(INSTALLED, adds)
    assert [(one.code, one.subject) for one in found] == [
        ("RECORD_MISSING", f"{SITE}/{name}") for name in gone
    ]
    assert all(one.evidence == {"distribution": INFO, "layer": 1, "removedByLayer": 2} for one in found)


def test_a_removed_distribution_is_gone_with_its_record() -> None:
    remove = [add(f"{SITE}/.wh.alpha"), add(f"{SITE}/.wh.alpha-1.dist-info"), add("opt/venv/bin/.wh.alpha")]
    assert findings(INSTALLED, remove) == []


def test_code_that_no_record_names_is_unowned_and_data_is_not() -> None:
    more = [
        add(f"{SITE}/sitecustomize.py", b"import os"),
        add(f"{SITE}/alpha/extra.so", b"x"),
        add(f"{SITE}/a.txt", b"x"),
    ]
    assert [(one.code, one.subject) for one in findings(INSTALLED, more)] == [
        ("UNOWNED_FILE", f"{SITE}/alpha/extra.so"), ("UNOWNED_FILE", f"{SITE}/sitecustomize.py"),
    ]  # fmt: skip


def test_the_record_of_a_vendored_copy_is_data_of_the_distribution_that_carries_it() -> None:
    inner = row("old/place.py", b"x").encode() + b"\n"
    place = f"{SITE}/alpha/_vendor/beta-1.dist-info/RECORD"
    carried = RECORD + (row("alpha/_vendor/beta-1.dist-info/RECORD", inner) + "\n").encode()
    adds = [*INSTALLED[:3], add(f"{INFO}/RECORD", carried), add(place, inner)]
    assert findings(adds) == []
    [found] = findings(adds, [add(place, b"changed")])
    assert (found.code, found.subject) == ("RECORD_HASH", place)


def test_links_and_hard_links_are_followed() -> None:
    moved = [
        folder("opt/venv/lib"), link("opt/venv/lib64", "lib"), add("store/init", FILES["alpha/__init__.py"]),
        hard(f"{SITE}/alpha/__init__.py", "store/init"), *INSTALLED[1:],
    ]  # fmt: skip
    assert findings(moved) == []
    target = [
        add(f"{SITE}/real.so", FILES["alpha/_C.abi3.so"]),
        link(f"{SITE}/alpha/_C.abi3.so", "../real.so"),
    ]
    assert findings([INSTALLED[0], *target, *INSTALLED[2:]]) == []


AMBIGUOUS = [
    ("twice", [add("a/x", b"1"), add("a/x", b"2")]),
    ("twice with a dot", [add("a/x", b"1"), add("./a/x", b"2")]),
    ("twice with slashes", [add("a/x", b"1"), add("a//x", b"2")]),
    ("leaves the root", [add("../etc/passwd", b"x")]),
    ("inner dots", [add("a/../../etc/passwd", b"x")]),
    ("absolute", [add("/etc/passwd", b"x")]),
    ("through a link", [link("a", "b"), add("a/x", b"1")]),
    ("hard link to nothing", [hard("a", "b")]),
    ("hard link out of the root", [hard("a", "../../etc/shadow")]),
]


@pytest.mark.parametrize("adds", [one[1] for one in AMBIGUOUS], ids=[one[0] for one in AMBIGUOUS])
def test_a_path_that_tools_unpack_differently_fails(adds: list[Add]) -> None:
    found = findings([folder("b"), *adds])
    assert {one.code for one in found} == {"AMBIGUOUS_PATH"}


def test_a_write_through_a_link_of_a_lower_layer_fails() -> None:
    assert {one.code for one in findings([folder("b"), link("a", "b")], [add("a/x", b"1")])} == {
        "AMBIGUOUS_PATH"
    }


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_names_of_both_formats_are_read(form: int) -> None:
    name = "/".join(["folder" * 10] * 5) + "/file.py"
    tree = read(archive(add(name, b"data"), form=form))
    digest = hashlib.sha256(b"data").hexdigest()
    assert tree.entries[name] == FileEntry(FileKind.FILE, 1, digest, 4, mode=0o644)


def test_a_huge_extended_header_is_refused() -> None:
    bomb = tarfile.TarInfo("x")
    bomb.type, bomb.size = tarfile.XHDTYPE, 1 << 40
    tree = read(bomb.tobuf(tarfile.GNU_FORMAT) + b"\0" * 10240)
    assert "extended header" in tree.error


def test_what_is_no_archive_says_so() -> None:
    assert read(b"not a tar archive" * 100).error
    assert read(archive(*INSTALLED)[:700]).error


def test_links_in_a_circle_resolve_to_nothing() -> None:
    tree = lay_over([read(archive(link("a", "b"), link("b", "a")))])
    assert resolve(tree, "a/x") is None and resolve(tree, "c/../d") == "d"


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=3000), st.integers(0, 2000), st.binary(max_size=40))
def test_no_archive_makes_the_reader_crash(raw: bytes, at: int, patch: bytes) -> None:
    whole = archive(*INSTALLED)
    spoiled = whole[:at] + patch + whole[at + len(patch) :]
    for data in (raw, spoiled):
        tree = read(data) if data else LayerTree(number=1)
        assert all(not path.startswith("/") and ".." not in path.split("/") for path in tree.entries)
        check_records(lay_over([tree]), "image")


@given(st.binary(max_size=300))
def test_no_record_makes_the_reader_crash(raw: bytes) -> None:
    read_record(raw, SITE)


def judge(layout: Layout, *layers: list[Add]) -> VerifyReport:
    raws = [archive(*adds) for adds in layers]
    made = [layout.blob(raw, LAYER) for raw in raws]
    digest = layout.save(layout.manifest(layout.config([digest_of(raw) for raw in raws]), made))
    tools = Tools(
        reader=read_blobs, judge=lambda *_: ([Check(id="judged", status=Status.PASS)], []), progress=Quiet(),
        trees=read_trees,
    )  # fmt: skip
    return verify(
        LayoutSource(layout.root),
        parse_reference(f"oci:{layout.root}@{digest}"),
        Options(depth="files"),
        tools,
    )


def test_the_depth_files_finds_what_the_depth_content_cannot(tmp_path: Path) -> None:
    report = judge(Layout(tmp_path / "layout"), INSTALLED, [add(f"{SITE}/alpha/_C.abi3.so", b"other")])
    assert report.depth == "files" and report.exit_code == 1
    rows = {check.id: check.status.value for check in report.checks}
    assert (rows["image.bytes"], rows["files.tree"], rows["files.records"]) == ("pass", "pass", "fail")
    assert rows["files.sources"] == "not_run"


def test_a_whole_image_has_whole_files_and_still_no_sources(tmp_path: Path) -> None:
    report = judge(Layout(tmp_path / "layout"), INSTALLED)
    rows = {check.id: check.status.value for check in report.checks}
    assert (rows["files.tree"], rows["files.records"], rows["files.sources"]) == ("pass", "pass", "not_run")
