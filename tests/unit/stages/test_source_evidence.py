"""What travels about sources, and what is said where something is gone."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import deliveries as d
from sourced import Head, Wheel, built_wheel, lock_of
from tic_manifest.adapters.store import FileStore
from tic_manifest.adapters.wheel_record import read_wheel
from tic_manifest.errors import UnavailableError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.model.receipt import BuiltWheel
from tic_manifest.rules.dossier import read_dossier
from tic_manifest.rules.source_evidence import WHEELS, listing_name, read_sources
from tic_manifest.stages.source_evidence import collect_sources

HEAD = Head(files={"alpha/__init__.py": b"x = 1\n"})
BUILT = Wheel(files=HEAD.files)


class Mirror:
    """A mirror that has one head, or none."""

    def __init__(self, listing: bytes | None) -> None:
        self._listing = listing

    def listing(self, commit: str) -> bytes:
        if self._listing is None:
            raise UnavailableError("OBJECTS_MISSING", "the commit is missing")
        return self._listing


class Said:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


def stored(store: FileStore, wheel: Wheel) -> BuiltWheel:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, data in wheel.files.items():
            archive.writestr(path, data)
        archive.writestr(f"{wheel.info}/RECORD", wheel.record)
    digest = store.put(io.BytesIO(out.getvalue()))
    return built_wheel(wheel, HEAD).model_copy(update={"digest": digest})


def collected(
    tmp_path: Path, listing: bytes | None, *, keep: bool = True
) -> tuple[dict[str, bytes], Said, Any]:
    store, said = FileStore(tmp_path), Said()
    wheel = stored(store, BUILT) if keep else built_wheel(BUILT, HEAD)
    lock, body = lock_of(HEAD), d.build_body(wheels=(wheel,))
    mirror: Any = Mirror(listing)
    progress: Any = said
    files = collect_sources(lock, body, lambda _name, _url: mirror, store, read_wheel, progress)
    base = {"lock.json": lock.raw, "receipts/build.json": d.receipt(lock, body)}
    return files, said, read_sources(read_dossier(base | files))


def test_listing_and_records_travel_and_are_read(tmp_path: Path) -> None:
    files, said, sources = collected(tmp_path, HEAD.listing())
    assert set(files) == {listing_name("alpha"), WHEELS}
    assert (said.lines, sources.missing) == ([], ())
    assert sources.wheels["alpha"].record.record == BUILT.record
    assert digest_of(files[WHEELS]) == digest_of(collected(tmp_path, HEAD.listing())[0][WHEELS])


def test_what_is_gone_does_not_travel_and_is_said(tmp_path: Path) -> None:
    files, said, sources = collected(tmp_path, None, keep=False)
    assert files == {}
    assert len(said.lines) == 2
    assert sources.missing == ("the listing of the tree of alpha's head", f"the RECORD of {BUILT.file}")


def test_a_listing_that_would_be_refused_does_not_travel(tmp_path: Path) -> None:
    files, said, _ = collected(tmp_path, Head(files={"other": b""}).listing())
    assert set(files) == {WHEELS}
    assert "another commit" in said.lines[0]
