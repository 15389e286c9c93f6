"""The tar reader against Python's own, on every form of header, and on archives that readers take differently."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tic_manifest.adapters.layer_tree import Budget, LayerTreeReader
from tic_manifest.adapters.tar_extended import TarFormatError
from tic_manifest.adapters.tar_stream import Member, TarStream
from tic_manifest.model.files import LayerTree

END = bytes(1024)


def pieces(raw: bytes, size: int) -> Iterator[bytes]:
    return (raw[at : at + size] for at in range(0, len(raw), size))


def read(raw: bytes, size: int = 4096) -> list[tuple[Member, bytes]]:
    given = pieces(raw, size)
    stream = TarStream(lambda: next(given, b""))
    return [(one, b"".join(stream.content())) for one in stream.members()]


def header(name: str = "x", size: int = 0, kind: bytes = b"0", **more: Any) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    for key, value in more.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.GNU_FORMAT)


def entry(data: bytes, name: str = "x", kind: bytes = b"0", **more: Any) -> bytes:
    return header(name, len(data), kind, **more) + data + bytes(-len(data) % 512)


def summed(raw: bytes) -> bytes:
    """A header with its checksum made right."""
    total = sum(raw[:148]) + sum(raw[156:512]) + 256
    return raw[:148] + b"%06o\0 " % total + raw[156:]


def pax(*records: tuple[str, bytes], kind: bytes = b"x") -> bytes:
    body = b""
    for key, value in records:
        rest = b" " + key.encode() + b"=" + value + b"\n"
        length = len(rest) + len(str(len(rest) + 2))
        body += str(length).encode() + rest
    return entry(body, "PaxHeaders/x", kind)


def said(raw: bytes) -> str:
    with pytest.raises(TarFormatError) as caught:
        read(raw)
    return str(caught.value)


@settings(max_examples=120, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text(
                st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=140
            ),
            st.binary(max_size=1500),
            st.sampled_from(["0", "1", "2", "3", "5", "6"]),
        ),
        max_size=6,
    ),
    st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]),
    st.integers(1, 2000),
)
def test_names_kinds_and_content_are_as_pythons_reader_says(rows: Any, form: int, size: int) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as made:
        for name, data, kind in rows:
            info = tarfile.TarInfo(f"d/{name}")
            info.type, info.mode, info.mtime = kind.encode(), 0o4755, 1.5
            info.size = len(data) if kind == "0" else 0
            info.linkname = name if kind in "12" else ""
            made.addfile(info, io.BytesIO(data))
    raw = out.getvalue()
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        wanted = [
            (one.name, one.type, one.size, one.mode, one.linkname, archive.extractfile(one).read() if one.isreg() else b"")  # type: ignore[union-attr]
            for one in archive
        ]  # fmt: skip
    found = [
        (one.name.rstrip("/"), one.kind, one.size, one.mode, one.target, data)
        for one, data in read(raw, size)
    ]
    assert found == wanted


SPARSE = b"a" * 512 + b"b" * 100
REAL = bytes(1024) + b"a" * 512 + bytes(512) + b"b" * 100 + bytes(924)
OLD = header("x", len(SPARSE), b"S")
OLD = (
    OLD[:386]
    + b"%011o\0%011o\0%011o\0%011o\0" % (1024, 512, 2048, 100)
    + bytes(48)
    + b"\0"
    + b"%011o\0" % len(REAL)
    + bytes(17)
)
MAP = b"2\n1024\n512\n2048\n100\n"
FORMS = {
    "old": summed(OLD) + SPARSE + bytes(412),
    "0.0": pax(
        ("GNU.sparse.size", b"3072"), ("GNU.sparse.numblocks", b"2"), ("GNU.sparse.offset", b"1024"),
        ("GNU.sparse.numbytes", b"512"), ("GNU.sparse.offset", b"2048"), ("GNU.sparse.numbytes", b"100"),
    ) + entry(SPARSE),
    "0.1": pax(("GNU.sparse.size", b"3072"), ("GNU.sparse.map", b"1024,512,2048,100"), ("GNU.sparse.name", b"x"))
    + entry(SPARSE, "GNUSparseFile.0/x"),
    "1.0": pax(
        ("GNU.sparse.major", b"1"), ("GNU.sparse.minor", b"0"), ("GNU.sparse.realsize", b"3072"),
        ("GNU.sparse.name", b"x"),
    ) + entry(MAP + bytes(512 - len(MAP)) + SPARSE, "GNUSparseFile.0/x"),
}  # fmt: skip


@pytest.mark.parametrize("piece", [100, 4096])
@pytest.mark.parametrize("form", FORMS)
def test_the_four_forms_of_sparse_files_have_their_holes(form: str, piece: int) -> None:
    [(member, data), (after, _)] = read(FORMS[form] + entry(b"z", "after") + END, piece)
    assert (member.name, member.size, data, after.name) == ("x", 3072, REAL, "after")
    with tarfile.open(fileobj=io.BytesIO(FORMS[form] + END)) as archive:
        assert archive.extractfile("x").read() == REAL  # type: ignore[union-attr]


BROKEN = {
    "a wrong checksum after an entry": (entry(b"1") + b"y" + header()[1:] + END, "checksum"),
    "a checksum of another sum modulo 65521": (
        summed(header())[:148] + b"%06o\0 " % (sum(header()[:148]) + sum(header()[156:]) + 256 + 65521) + header()[156:],
        "checksum",
    ),
    "an end in a header": (entry(b"1") + header()[:300], "early"),
    "an end in the content": (header(size=1000) + b"x" * 100, "early"),
    "a size with a sign": (summed(header()[:124] + b"-0000000001\0" + header()[136:]), "octal"),
    "a size with an underscore": (summed(header()[:124] + b"1_000000000\0" + header()[136:]), "octal"),
    "a negative size in base 256": (summed(header()[:124] + b"\xff" * 12 + header()[136:]), "negative"),
    "an endless size in base 256": (summed(header()[:124] + b"\x80" + b"\x7f" * 11 + header()[136:]), "too large"),
    "an extended header at the end": (pax(("path", b"y")) + END, "without an entry"),
    "two extended headers": (pax(("path", b"y")) + pax(("path", b"z")) + entry(b"1"), "two extended"),
    "two long names": (2 * entry(b"name\0", "././@LongLink", b"L") + entry(b"1"), "two long names"),
    "a global path": (pax(("path", b"y"), kind=b"g") + entry(b"1"), "global"),
    "a path with a NUL": (pax(("path", b"y\0z")) + entry(b"1"), "NUL"),
    "a record of a wrong length": (entry(b"99 path=x\n", "p", b"x") + entry(b"1"), "extended header"),
    "a record without an end": (entry(b"9 path=xx", "p", b"x") + entry(b"1"), "extended header"),
    "a map that runs backwards": (
        pax(("GNU.sparse.size", b"9"), ("GNU.sparse.map", b"5,1,2,1")) + entry(b"12"), "backwards",
    ),
    "a map of more than the file": (
        pax(("GNU.sparse.size", b"9"), ("GNU.sparse.map", b"0,5")) + entry(b"12"), "does not fit",
    ),
    "holes without end": (
        pax(("GNU.sparse.size", b"9" * 15), ("GNU.sparse.map", b"0,2")) + entry(b"12"), "does not fit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_an_archive_that_cannot_be_read_to_its_end_is_an_error(name: str) -> None:
    raw, words = BROKEN[name]
    assert words in said(raw)


ODD = {
    "a link that says a size": entry(b"", kind=b"2", linkname="y")[:124] + b"00000001000\0" + header(kind=b"2", linkname="y")[136:],
    "one key twice": pax(("path", b"a"), ("path", b"b")) + entry(b"1"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_what_tools_read_differently_is_said(name: str) -> None:
    raw = summed(ODD[name]) if name.startswith("a link") else ODD[name]
    assert read(raw + END)[0][0].odd


def test_go_reads_no_prefix_in_a_header_of_gnu() -> None:
    raw = header("x")
    times = summed(raw[:345] + b"%011o\0" % 1_700_000_000 + raw[357:])
    assert read(times + END)[0][0].name == "x"


def test_an_archive_without_its_last_blocks_is_whole() -> None:
    assert [one.name for one, _ in read(entry(b"1", "a") + entry(b"2", "b"))] == ["a", "b"]


def layer(raw: bytes, budget: Budget) -> LayerTree:
    reader = LayerTreeReader(1, budget=budget)
    for piece in pieces(raw, 1 << 16):
        reader.update(piece)
    reader.close()
    return reader.tree


def test_layers_share_the_memory_of_the_index_and_say_when_it_ends() -> None:
    budget = Budget(1 << 20)
    raw = b"".join(entry(b"", f"folder/{number}") for number in range(2000)) + END
    first, second = layer(raw, budget), layer(raw, budget)
    assert (len(first.entries), first.limit, first.error) == (2000, "", "")
    assert second.limit and not second.error and len(second.entries) < 2000


def test_a_record_that_is_too_long_is_no_file_without_a_record() -> None:
    tree = layer(header("a-1.dist-info/RECORD", 9 << 20) + bytes(9 << 20) + END, Budget())
    assert "RECORD" in tree.limit


def test_files_larger_than_a_piece_have_their_hash() -> None:
    data = b"0123456789" * 50_000
    tree = layer(entry(data, "a") + entry(b"", "b") + END, Budget())
    assert {path: one.digest for path, one in tree.entries.items()} == {
        "a": hashlib.sha256(data).hexdigest(), "b": hashlib.sha256(b"").hexdigest(),
    }  # fmt: skip
