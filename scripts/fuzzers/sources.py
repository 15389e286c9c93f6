"""Listings of trees and what installers make of a wheel: refused, or nothing that leaves its place."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from sourced import SITE, Head
from tic_manifest.errors import RefusedError
from tic_manifest.formats.git_ids import object_id
from tic_manifest.formats.packed import pack, unpack
from tic_manifest.formats.tree_listing import listing_bytes, read_listing
from tic_manifest.rules.installers import Place, entry_scripts

_HEAD = Head(files={"a.py": b"1", "a/b.py": b"2"}, links={"sub": "1" * 40}, symlinks={"link": "a.py"})


def run_listing(data: bytes) -> None:
    """A listing is refused, or written again it is the same bytes and no path leaves the tree."""
    found = re.match(rb"commit ([0-9]{1,6})\0", data)
    body = data[found.end() : found.end() + int(found[1])] if found else b""
    commit = object_id(b"commit", body)
    for packed in (data, pack(data)) if data else ():
        try:
            listing = read_listing(packed, commit, "input")
        except RefusedError:
            continue
        if any(
            posixpath.normpath(path) != path or path.startswith((b"/", b"..")) for path in listing.entries
        ):
            raise AssertionError("a path leaves the tree")
        entries = [(one.mode, one.oid, path) for path, one in listing.entries.items()]
        if unpack(listing_bytes(body, entries), 1 << 20, "again") != unpack(packed, 1 << 20, "input"):
            raise AssertionError("written again it is another listing")
    run_entry_points(data)


def run_entry_points(data: bytes) -> None:
    """No script of an entry point lies outside `bin`."""
    place = Place.of(f"{SITE}/alpha-1.dist-info/RECORD")
    for path in entry_scripts(place, data.decode("utf-8", "surrogateescape")):
        if posixpath.dirname(path) != "opt/venv/bin":
            raise AssertionError("a script leaves its folder")


def listings() -> Iterator[bytes]:
    """A listing, packed and not, and entry points."""
    packed = _HEAD.listing()
    yield packed
    yield unpack(packed, 1 << 20, "seed")
    yield unpack(Head(files={}).listing(), 1 << 20, "seed")
    yield b"[console_scripts]\nrun = a.b:c.d [extra]\n../x = a:b\n[gui_scripts]\ny: a:b\n"
    yield b"[console_scripts]\nrun\n more"
