"""Debian packages: read as streams, ordered by their needs, their files as one tar with merged /usr."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from tic_manifest.adapters import deb, seed
from tic_manifest.errors import RefusedError

from tests.kit import debs

ESSENTIAL = {"Essential": "yes"}


def packages(tmp_path: Path, table: dict[str, dict[str, str]]) -> dict[Path, dict[str, str]]:
    made = {}
    for name, more in table.items():
        path = debs.deb(tmp_path / f"{name}.deb", {"Package": name, "Version": "1", **more})
        made[path] = deb.control(path)
    return made


def stems(batches: list[list[Path]]) -> list[list[str]]:
    return [[path.stem for path in batch] for batch in batches]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"bb": ESSENTIAL | {"Depends": "aa (>= 1)"}, "aa": {}, "xx": {}}, [["aa", "bb"], ["xx"]]),
        ({"aa": ESSENTIAL, "yy": {"Depends": "zz:any | nothere"}, "zz": {}}, [["aa"], ["zz", "yy"]]),
        (
            {"aa": ESSENTIAL, "yy": {"Depends": "virtual"}, "zz": {"Provides": "virtual (= 1)"}},
            [["aa"], ["zz", "yy"]],
        ),
        ({"aa": ESSENTIAL, "yy": {"Pre-Depends": "zz"}, "zz": {}}, [["aa"], ["zz"], ["yy"]]),
        ({"aa": ESSENTIAL | {"Depends": "bb"}, "bb": {"Depends": "aa"}}, [["bb", "aa"]]),
        ({"aa": ESSENTIAL, "yy": {"Pre-Depends": "aa"}}, [["aa"], ["yy"]]),
    ],
    ids=["needs first", "alternative", "virtual", "pre-depends", "circle", "pre-depends on essential"],
)
def test_batches(tmp_path: Path, table: dict[str, dict[str, str]], expected: list[list[str]]) -> None:
    assert stems(seed.batches(packages(tmp_path, table))) == expected


@pytest.mark.parametrize(
    ("name", "lies"),
    [
        ("./bin/sh", "usr/bin/sh"),
        ("./lib64/ld.so", "usr/lib64/ld.so"),
        ("./bin", "bin"),
        ("./", ""),
        ("./usr/bin/env", "usr/bin/env"),
        ("./etc/passwd", "etc/passwd"),
        ("./library/x", "library/x"),
    ],
)
def test_paths_with_merged_usr(name: str, lies: str) -> None:
    assert seed.merged(name) == lies


def test_the_seed_holds_every_file_once_under_usr(tmp_path: Path) -> None:
    one = debs.deb(tmp_path / "a.deb", {"Package": "a"}, {"bin/": b"", "bin/sh": b"shell", "etc/x": b"1"})
    two = debs.deb(tmp_path / "b.deb", {"Package": "b"}, {"usr/bin/sh": b"other", "etc/y": b"2"})
    seed.write([one, two], tmp_path / "seed.tar")
    with tarfile.open(tmp_path / "seed.tar") as tar:
        names = tar.getnames()
        assert sorted(set(names)) == sorted(names)
        assert tar.getmember("bin").linkname == "usr/bin"
        assert tar.extractfile("usr/bin/sh").read() == b"shell"  # type: ignore[union-attr]
        assert {"etc/x", "etc/y"} <= set(names)
    first = (tmp_path / "seed.tar").read_bytes()
    seed.write([one, two], tmp_path / "seed.tar")
    assert (tmp_path / "seed.tar").read_bytes() == first


@pytest.mark.parametrize("raw", [b"", b"!<arch>\n", b"PK\x03\x04", b"!<arch>\n" + b"x" * 60], ids=repr)
def test_what_is_no_package_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "x.deb").write_bytes(raw)
    with pytest.raises(RefusedError):
        deb.control(tmp_path / "x.deb")
