"""Source distributions: the named bytes or an error, whatever an index says."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest
from edits import EXECUTABLE, LINK, PLAIN, Entry
from sources import Sdist, SourceError, download, fetch, links, named, read_sdist


def sdist(data: bytes, file: str = "x-1.tar.gz") -> Sdist:
    return Sdist("x", "1", file, hashlib.sha256(data).hexdigest())


def archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as out:
        for info, data in members:
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return path


def member(name: str, mode: int = 0o644, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode, info.type, info.linkname = mode, kind, link
    return info


def test_the_cache_answers_without_any_index(tmp_path: Path) -> None:
    wanted = sdist(b"bytes")
    place = tmp_path / wanted.sha256 / wanted.file
    place.parent.mkdir()
    place.write_bytes(b"bytes")
    assert fetch(wanted, tmp_path) == place


def test_other_bytes_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"other")
    target = tmp_path / "cache" / "x-1.tar.gz"
    target.parent.mkdir()
    with pytest.raises(SourceError, match=hashlib.sha256(b"other").hexdigest()):
        download((tmp_path / "there").as_uri(), sdist(b"bytes"), target)
    assert list(target.parent.iterdir()) == []


def test_links_of_an_index_page(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<a href="../f/x-1.tar.gz#sha256=00">x</a><a name="n">no</a>')
    found = links(tmp_path.as_uri() + "/")
    assert [named(link) for link in found] == ["x-1.tar.gz"]


def test_modes_are_normalised_and_the_top_folder_goes(tmp_path: Path) -> None:
    file = archive(
        tmp_path / "x.tar.gz",
        (member("x-1/plain", 0o664), b"1"),
        (member("x-1/bin/tool", 0o775), b"2"),
        (member("x-1/link", kind=tarfile.SYMTYPE, link="plain"), b""),
    )
    assert read_sdist(file) == {
        "plain": Entry(PLAIN, b"1"),
        "bin/tool": Entry(EXECUTABLE, b"2"),
        "link": Entry(LINK, b"plain"),
    }


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(member("x-1/../../out"), id="climbs"),
        pytest.param(member("/x-1/out"), id="absolute"),
        pytest.param(member("x-1/pipe", kind=tarfile.FIFOTYPE), id="pipe"),
        pytest.param(member("x-1/hard", kind=tarfile.LNKTYPE, link="/etc/passwd"), id="hard link"),
    ],
)
def test_hostile_entries_are_refused(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    with pytest.raises(SourceError):
        read_sdist(archive(tmp_path / "x.tar.gz", (bad, b"")))
