"""Archives of docker save: both forms are read alike, and nothing that readers could read differently."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tic_manifest.adapters.docker_archive import open_archive
from tic_manifest.errors import TicError
from tic_manifest.formats.canonical import digest_of

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from archives import new_form, old_form, write_tar
from layouts import Layout

Members = dict[str, bytes]
ASKED = "sha256:" + "a" * 64


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "layout")


def changed(members: Members, **fields: object) -> Members:
    listed = json.loads(members["manifest.json"])
    return {**members, "manifest.json": json.dumps([listed[0] | fields]).encode()}


@pytest.mark.parametrize("form", [old_form, new_form])
def test_both_forms_hold_the_platform_manifest_that_docker_load_makes(
    layout: Layout, tmp_path: Path, form: Callable[..., Members]
) -> None:
    image = layout.image()
    path = write_tar(tmp_path / "a.tar", form(layout, image))
    source = open_archive(path, None)
    [entry] = source.index_entries()
    raw = source.manifest(entry.digest)
    assert raw and digest_of(raw) == entry.digest != image["digest"]
    manifest = json.loads(raw)
    for one in (manifest["config"], *manifest["layers"]):
        data = b"".join(source.blob(one["digest"], one["size"]) or ())
        assert (digest_of(data), len(data)) == (one["digest"], one["size"])
        assert source.length(one["digest"]) == one["size"]
    assert source.blob(ASKED, 1) is source.length(ASKED) is source.manifest(ASKED) is None
    assert list(source.referrers(entry.digest).entries) == []
    other = open_archive(path, ASKED)
    assert other.manifest(ASKED) == raw, "whoever asks hashes it"
    assert other.manifest("sha256:" + "b" * 64) is None


def test_a_blob_never_gives_more_than_asked_nor_what_follows_it(layout: Layout, tmp_path: Path) -> None:
    members = old_form(layout, layout.image())
    source = open_archive(write_tar(tmp_path / "a.tar", members), None)
    [entry] = source.index_entries()
    layer = json.loads(source.manifest(entry.digest) or b"")["layers"][0]
    assert sum(map(len, source.blob(layer["digest"], 99) or ())) == 100
    assert sum(map(len, source.blob(layer["digest"], 1 << 30) or ())) == layer["size"]


def test_a_layer_may_be_a_link_inside_the_archive_and_never_out_of_it(layout: Layout, tmp_path: Path) -> None:
    members = old_form(layout, layout.image())
    first, second = json.loads(members["manifest.json"])[0]["Layers"]
    linked = changed(members, Layers=["x/layer.tar", second])
    whole = open_archive(write_tar(tmp_path / "a.tar", linked, {"x/layer.tar": f"../{first}"}), None)
    plain = open_archive(write_tar(tmp_path / "b.tar", members), None)
    assert whole.index_entries() == plain.index_entries()
    (tmp_path / "secret").write_bytes(b"secret")
    outside = write_tar(tmp_path / "c.tar", linked, {"x/layer.tar": str(tmp_path / "secret")})
    with pytest.raises(TicError) as raised:
        open_archive(outside, None)
    assert raised.value.code == "DIFFID"


@pytest.mark.parametrize(
    ("spoil", "code", "exit_code"),
    [
        (lambda m: {k: v for k, v in m.items() if k != "manifest.json"}, "LAYOUT", 2),
        (lambda m: m | {"manifest.json": b"[]"}, "SCHEMA", 4),
        (lambda m: m | {"manifest.json": b"{}"}, "SCHEMA", 4),
        (lambda m: m | {"manifest.json": b'[{"Config":"a","Config":"b"}]'}, "JSON_DUPLICATE_KEY", 4),
        (lambda m: m | {"manifest.json": b'[{"config":"a"}]'}, "JSON_CASE_VARIANT", 4),
        (lambda m: changed(m, Config=7), "SCHEMA", 4),
        (lambda m: changed(m, Layers="text"), "SCHEMA", 4),
        (lambda m: changed(m, Layers=[]), "DIFFID", 4),
        (lambda m: changed(m, Config="../../etc/passwd"), "LAYOUT", 4),
        (lambda m: m | {"../out": b""}, "LAYOUT", 4),
        (lambda m: m | {"/out": b""}, "LAYOUT", 4),
        (lambda m: m | {"./manifest.json": b"[]"}, "LAYOUT", 4),
    ],
)
def test_what_is_refused(
    layout: Layout, tmp_path: Path, spoil: Callable[[Members], Members], code: str, exit_code: int
) -> None:
    members = spoil(old_form(layout, layout.image()))
    with pytest.raises(TicError) as raised:
        open_archive(write_tar(tmp_path / "a.tar", members), None)
    assert (raised.value.code, raised.value.exit_code) == (code, exit_code)


def test_two_lists_that_name_different_images_are_refused(layout: Layout, tmp_path: Path) -> None:
    members = new_form(layout, layout.image())
    other = changed(members, Config="blobs/sha256/" + "0" * 64)
    with pytest.raises(TicError) as raised:
        open_archive(write_tar(tmp_path / "a.tar", other), None)
    assert (raised.value.code, raised.value.exit_code) == ("MEDIATYPE_CONFUSION", 4)


@pytest.mark.parametrize(
    ("damage", "exit_code"),
    [(gzip.compress, 2), (lambda raw: raw[:30000], 4), (lambda raw: b"", 2), (lambda raw: b"x" * 4096, 2)],
)
def test_a_file_that_is_no_whole_tar(
    layout: Layout, tmp_path: Path, damage: Callable[[bytes], bytes], exit_code: int
) -> None:
    path = write_tar(tmp_path / "a.tar", old_form(layout, layout.image()))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(TicError) as raised:
        open_archive(path, None)
    assert (raised.value.code, raised.value.exit_code) == ("LAYOUT", exit_code)
    with pytest.raises(TicError):
        open_archive(tmp_path / "absent.tar", None)
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(TicError):
            open_archive(place, None)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 1 << 16), junk=st.binary(min_size=1, max_size=64))
def test_any_damage_is_read_or_refused(tmp_path: Path, at: int, junk: bytes) -> None:
    kept = tmp_path / "kept.tar"
    if not kept.exists():
        made = Layout(tmp_path / "layout")
        write_tar(kept, new_form(made, made.image()))
    raw = bytearray(kept.read_bytes())
    at %= len(raw)
    raw[at : at + len(junk)] = junk
    (tmp_path / "a.tar").write_bytes(bytes(raw))
    try:
        source = open_archive(tmp_path / "a.tar", ASKED)
        for entry in source.index_entries():
            source.manifest(entry.digest)
            source.length(entry.digest)
    except TicError as error:
        assert error.exit_code in (2, 3, 4)
