"""Two builds of one lock: what differs, by layer and path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tic_manifest.adapters.layout_compare import MAX_LISTED, compare
from tic_manifest.model.receipt import Rebuild

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from layouts import Layout
from quiet import Quiet

PLAIN = {"a/x.py": b"x = 1", "a/x.pyc": b"1"}


def rebuilt(folder: Path, first: list[dict[str, bytes]], second: list[dict[str, bytes]]) -> Rebuild:
    places = []
    for name, files in (("first", first), ("second", second)):
        made = Layout(folder / name)
        places.append((made.root, made.save(made.index([made.image(files=files)]))))
    return compare(places[0], places[1], Quiet())


@pytest.mark.parametrize(
    ("later", "differing", "only_pyc"),
    [
        ([PLAIN], [], False),
        ([PLAIN | {"a/x.pyc": b"2"}], [("a/x.pyc", 1, "content")], True),
        (
            [PLAIN | {"a/x.py": b"2", "a/x.pyc": b"2"}],
            [("a/x.py", 1, "content"), ("a/x.pyc", 1, "content")],
            False,
        ),
        ([PLAIN | {"b": b""}], [("b", 1, "only later")], False),
        ([{"a/x.py": b"x = 1"}], [("a/x.pyc", 1, "only earlier")], True),
        ([PLAIN, {"c": b""}], [("c", 2, "only later")], False),
        ([dict(reversed(PLAIN.items()))], [], False),
    ],
)
def test_paths_that_differ(
    tmp_path: Path, later: list[dict[str, bytes]], differing: list[tuple[str, int, str]], only_pyc: bool
) -> None:
    found = rebuilt(tmp_path, [PLAIN], later)
    assert [(one.path, one.layer, one.kind) for one in found.differing] == differing
    assert (found.count, found.only_pyc) == (len(differing), only_pyc)


def test_the_first_paths_are_listed_and_all_are_counted(tmp_path: Path) -> None:
    many = {f"f/{number}": b"" for number in range(MAX_LISTED + 7)}
    found = rebuilt(tmp_path, [PLAIN], [PLAIN | many])
    assert (len(found.differing), found.count) == (MAX_LISTED, MAX_LISTED + 7)
