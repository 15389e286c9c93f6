"""Wheels, heads and their evidence with real digests, for tests of what an image was installed from."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import deliveries as d
from tic_manifest.formats.canonical import canonical_bytes, digest_of
from tic_manifest.formats.git_ids import Entry, blob_id, object_id, tree_id
from tic_manifest.formats.lock import LoadedLock, read_lock
from tic_manifest.formats.tree_listing import listing_bytes
from tic_manifest.formats.wheel_records import records_bytes
from tic_manifest.model.lock import LockedFile, LockedPython, Submodule
from tic_manifest.model.receipt import BuiltWheel
from tic_manifest.model.wheels import WheelRecord
from tic_manifest.rules.source_evidence import WHEELS, listing_name

SITE = "opt/venv/lib/python3.11/site-packages"
Files = Mapping[str, bytes]


def row(path: str, data: bytes) -> str:
    """A row of a RECORD."""
    text = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={text},{len(data)}"


def git_id(data: bytes) -> str:
    return blob_id(len(data), [data])


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A wheel by its files, without its RECORD."""

    files: Files
    name: str = "alpha"
    version: str = "1"
    entry_points: str = ""
    scripts: Mapping[str, str] = field(default_factory=dict)

    @property
    def info(self) -> str:
        return f"{self.name}-{self.version}.dist-info"

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}-py3-none-any.whl"

    @property
    def sha256(self) -> str:
        return d.sha(self.record + self.file)

    @property
    def record(self) -> str:
        return "\n".join([*(row(*one) for one in self.files.items()), f"{self.info}/RECORD,,", ""])

    def evidence(self) -> WheelRecord:
        return WheelRecord(
            file=self.file, sha256=self.sha256, record=self.record, entry_points=self.entry_points,
            scripts=dict(self.scripts),
        )  # fmt: skip

    def installed(self, added: Files | None = None, site: str = SITE) -> dict[str, bytes]:
        """As pip installs it; `added` are further files with a row, by path from the site."""
        files = {**self.files, **(added or {})}
        rows = [row(*one) for one in files.items()]
        record = "\n".join([*rows, f"{self.info}/RECORD,,", ""]).encode()
        return {f"{site}/{path}": data for path, data in files.items()} | {
            f"{site}/{self.info}/RECORD": record
        }


@dataclass(frozen=True, kw_only=True)
class Head:
    """A head by what its tree holds; `links` are gitlinks by path, `programs` paths that are executable."""

    files: Files
    links: Mapping[str, str] = field(default_factory=dict)
    programs: Sequence[str] = ()
    symlinks: Mapping[str, str] = field(default_factory=dict)

    @property
    def entries(self) -> list[Entry]:
        made: list[Entry] = [
            ("100755" if path in self.programs else "100644", git_id(data), path.encode())
            for path, data in self.files.items()
        ]
        made += [("120000", git_id(text.encode()), path.encode()) for path, text in self.symlinks.items()]
        return made + [("160000", oid, path.encode()) for path, oid in self.links.items()]

    @property
    def tree(self) -> str:
        return tree_id(self.entries)

    @property
    def commit(self) -> bytes:
        return f"tree {self.tree}\nauthor A <a@example.invalid> 0 +0000\n\nwords\n".encode()

    @property
    def id(self) -> str:
        return object_id(b"commit", self.commit)

    def listing(self) -> bytes:
        return listing_bytes(self.commit, self.entries)


def lock_of(head: Head, locked: Sequence[Wheel] = (), more: str = "", **pull: object) -> LoadedLock:
    """A lock that pins `head` as alpha's; `more` are lines of its pull request, `pull` changes what is locked."""
    recipe = d.RECIPE.replace(b"b" * 40, head.id.encode()).replace(
        b"    row: vllm\n", b"    row: vllm\n" + more.encode()
    )
    made = d.lock(recipe).lock
    links = tuple(Submodule(path=path, url="", commit=oid) for path, oid in head.links.items())
    said = {"head_tree": head.tree, "submodules": links} | pull
    runtime = tuple(
        LockedFile(name=one.name, version=one.version, file=one.file, sha256=one.sha256, size=1)
        for one in locked
    )
    given = {
        "pull_requests": (made.pull_requests[0].model_copy(update=said), *made.pull_requests[1:]),
        "python": LockedPython(version="3.11", runtime=runtime, build=()),
    }
    return read_lock(canonical_bytes(made.model_copy(update=given)), "lock.json")


def built_wheel(wheel: Wheel, head: Head) -> BuiltWheel:
    """As the build's receipt names it."""
    return BuiltWheel(name="alpha", tree=head.tree, file=wheel.file, digest=f"sha256:{wheel.sha256}", size=1)


def evidence(head: Head, wheels: Sequence[Wheel]) -> dict[str, bytes]:
    """Listing and RECORDs, as `assemble` names them."""
    return {
        listing_name("alpha"): head.listing(),
        WHEELS: records_bytes(one.evidence() for one in wheels),
    }


__all__ = ["SITE", "Head", "Wheel", "built_wheel", "digest_of", "evidence", "git_id", "lock_of", "row"]
