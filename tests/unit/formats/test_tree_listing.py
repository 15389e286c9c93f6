"""Listings of trees: what git's own ids prove, and what is refused before it is believed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tic_manifest.errors import RefusedError
from tic_manifest.formats import tree_listing
from tic_manifest.formats.git_ids import Entry, blob_id, object_id, tree_id
from tic_manifest.formats.packed import pack, unpack
from tic_manifest.formats.tree_listing import Listed, listing_bytes, read_listing

A, B, C = (blob_id(1, [one]) for one in (b"a", b"b", b"c"))
ENTRIES: list[Entry] = [
    ("100644", A, b"a.py"), ("100755", B, b"a/run"), ("120000", C, b"link"), ("160000", "9" * 40, b"lib/sub"),
]  # fmt: skip


def commit_of(entries: list[Entry], tree: str = "") -> bytes:
    said = tree or tree_id(entries)
    return f"tree {said}\nauthor A <a@example.invalid> 0 +0000\n\nwords\n".encode()


def head_of(commit: bytes) -> str:
    return object_id(b"commit", commit)


def rows(entries: list[Entry]) -> bytes:
    return b"".join(f"{mode} {oid}\t".encode() + path + b"\0" for mode, oid, path in entries)


def raw(entries: list[Entry], commit: bytes) -> bytes:
    return b"commit %d\0" % len(commit) + commit + rows(entries)


def refused(packed: bytes, head: str) -> RefusedError:
    with pytest.raises(RefusedError) as told:
        read_listing(packed, head, "sources/a.tree.zst")
    return told.value


def test_a_listing_that_hashes_up_to_its_commit_is_read() -> None:
    commit = commit_of(ENTRIES)
    found = read_listing(listing_bytes(commit, reversed(ENTRIES)), head_of(commit), "x")
    assert found.tree == tree_id(ENTRIES)
    assert found.entries[b"a/run"] == Listed("100755", B)
    assert found.submodules() == {"lib/sub": "9" * 40}


def test_a_listing_of_another_commit_is_refused() -> None:
    other = commit_of(ENTRIES) + b"more"
    said = refused(listing_bytes(other, ENTRIES), head_of(commit_of(ENTRIES)))
    assert (said.code, said.actual) == ("TREE_MISMATCH", head_of(other))


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[1:],
        lambda rows: [("100755", *rows[0][1:]), *rows[1:]],
        lambda rows: [(rows[0][0], C, rows[0][2]), *rows[1:]],
        lambda rows: [("120000", *rows[0][1:]), *rows[1:]],
        lambda rows: [*rows, ("100644", A, b"zz")],
    ],
    ids=["left out", "executable", "content", "link", "added"],
)
def test_a_listing_that_does_not_hash_up_is_refused(change: Callable[[list[Entry]], list[Entry]]) -> None:
    commit = commit_of(ENTRIES)
    assert refused(listing_bytes(commit, change(ENTRIES)), head_of(commit)).code == "TREE_MISMATCH"


@pytest.mark.parametrize(
    "bad",
    [
        [("100644", A, b"a"), ("100644", B, b"a")],
        [("100644", A, b"b"), ("100644", B, b"a")],
        [("100644", A, b"a"), ("100644", B, b"a/x")],
        [("100644", A, b"a"), ("100644", C, b"a-b"), ("100644", B, b"a/x")],
        [("100644", A, b"../a")],
        [("100644", A, b"a//b")],
        [("100644", A, b"/a")],
        [("100644", A, b"a/./b")],
        [("040000", A, b"a")],
        [("100777", A, b"a")],
        [("100644", A.upper(), b"a")],
        [("100644", A[:39], b"a")],
        [("100644", A, b"a/" * 200 + b"b")],
        [("100644", A, b"")],
    ],
)
def test_rows_that_no_tree_has_are_refused(bad: list[Entry]) -> None:
    commit = commit_of([], "d" * 40)
    assert refused(pack(raw(bad, commit)), head_of(commit)).code == "SCHEMA"


@pytest.mark.parametrize("body", [b"", b"tree x\n", b"parent " + b"a" * 40 + b"\n"])
def test_a_commit_that_names_no_tree_is_refused(body: bytes) -> None:
    assert refused(pack(raw(ENTRIES, body)), head_of(body)).code == "SCHEMA"


@pytest.mark.parametrize(
    "data",
    [
        b"commit 9999999\0x", b"commit 5\0tree", b"commit 05\0tree ", b"commit -1\0", b"tree 5\0abcde", b"x",
    ],
)  # fmt: skip
def test_bytes_that_are_no_listing_are_refused(data: bytes) -> None:
    assert refused(pack(data), "a" * 40).code == "SCHEMA"


def test_a_row_without_its_end_is_refused() -> None:
    commit = commit_of(ENTRIES)
    assert refused(pack(raw(ENTRIES, commit)[:-1]), head_of(commit)).code == "SCHEMA"


def test_a_bomb_is_refused_by_its_size_alone() -> None:
    bomb = pack(b"\0" * (tree_listing.MAX_BYTES + 1))
    assert len(bomb) < 1 << 16
    assert "at most" in refused(bomb, "a" * 40).expected


@pytest.mark.parametrize("cut", [0, 1, 8, 20, -1])
def test_a_cut_frame_is_refused(cut: int) -> None:
    commit = commit_of(ENTRIES)
    assert refused(listing_bytes(commit, ENTRIES)[:cut], head_of(commit)).code == "SCHEMA"


def test_what_follows_a_frame_is_refused() -> None:
    commit = commit_of(ENTRIES)
    whole = listing_bytes(commit, ENTRIES)
    assert refused(whole + b"x", head_of(commit)).code == "SCHEMA"
    assert refused(whole + whole, head_of(commit)).code == "SCHEMA"


def test_a_frame_of_unknown_length_is_refused() -> None:
    import zstandard

    with pytest.raises(RefusedError):
        unpack(zstandard.ZstdCompressor(write_content_size=False).compress(b"x" * 10), 100, "x")


NAMES = some.binary(min_size=1, max_size=6).filter(
    lambda one: not {0, 47} & set(one) and one not in {b".", b".."}
)


@some.composite
def trees(draw: some.DrawFn) -> list[Entry]:
    """Entries that are one tree: no path twice, none below a file."""
    paths = draw(
        some.lists(some.lists(NAMES, min_size=1, max_size=4).map(b"/".join), max_size=12, unique=True)
    )
    kept = [one for one in paths if not any(other.startswith(one + b"/") for other in paths)]
    oid = some.binary(min_size=20, max_size=20).map(bytes.hex)
    mode = some.sampled_from(sorted(tree_listing.MODES))
    return [(draw(mode), draw(oid), one) for one in kept]


@given(trees())
def test_every_tree_comes_back_as_it_went(entries: list[Entry]) -> None:
    commit = commit_of(entries)
    found = read_listing(listing_bytes(commit, entries), head_of(commit), "x")
    assert {(one.mode, one.oid, path) for path, one in found.entries.items()} == set(entries)


@given(trees(), some.data())
def test_no_changed_byte_of_a_listing_is_read(entries: list[Entry], data: some.DataObject) -> None:
    commit = commit_of(entries)
    whole = bytearray(raw(entries, commit))
    whole[data.draw(some.integers(0, len(whole) - 1))] ^= data.draw(some.integers(1, 255))
    refused(pack(bytes(whole)), head_of(commit))


@given(some.binary(max_size=300))
def test_arbitrary_bytes_are_refused_and_nothing_else(data: bytes) -> None:
    refused(data, "a" * 40)
    if data:
        refused(pack(data), "a" * 40)
