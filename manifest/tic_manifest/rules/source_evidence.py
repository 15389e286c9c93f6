"""Evidence about sources, read once into values: listings of the heads' trees, RECORDs of the wheels.

Every listing is hashed up to the head that the lock pins. A RECORD is bound to its wheel by the sha256 that
the lock or the build's receipt names: whoever has the wheel can compare (docs/adr/0010).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tic_manifest.errors import RefusedError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.formats.lock import LoadedLock
from tic_manifest.formats.oci import parse_config
from tic_manifest.formats.tree_listing import TreeListing, read_listing
from tic_manifest.formats.wheel_records import read_records
from tic_manifest.model.base import Sha256Hex
from tic_manifest.model.lock import DebianRoot, LockedPullRequest
from tic_manifest.model.oci import ImageConfig
from tic_manifest.model.receipt import BuildBody
from tic_manifest.model.recipe import PullRequest
from tic_manifest.model.wheels import WheelRecord
from tic_manifest.rules.dossier import Dossier

WHEELS = "sources/wheels.json.zst"
BASE_CONFIG = "sources/base-config.json"
MAX_CONFIG = 4 << 20
MADE_HERE = ImageConfig(architecture="", os="")
"""What a root made from Debian packages says about starting: nothing."""


@dataclass(frozen=True, kw_only=True)
class InstalledWheel:
    """A wheel that the image was installed from, and the pull request that it was built from, if any."""

    name: str
    file: str
    sha256: Sha256Hex
    record: WheelRecord | None
    pull: str | None = None


@dataclass(frozen=True, kw_only=True)
class BuiltFrom:
    """What a pull request's wheel is held against. `precompiled` is where native code is taken from."""

    locked: LockedPullRequest
    asked: PullRequest
    listing: TreeListing
    precompiled: WheelRecord | None


@dataclass(frozen=True, kw_only=True)
class Sources:
    """`wheels` by normalized name of the distribution, `built` by name of the pull request.

    `missing` says in words what does not travel; `base_layers` counts the layers of a base image by digest.
    `base` is the config of the base, where it is known, `env` the recipe's variables.
    """

    wheels: Mapping[str, InstalledWheel]
    built: Mapping[str, BuiltFrom]
    missing: tuple[str, ...]
    base_layers: int = 0
    base: ImageConfig | None = None
    env: Mapping[str, str] = field(default_factory=dict)


def listing_name(pull: str) -> str:
    """The name of the evidence that lists a head's tree."""
    return f"sources/{pull}.tree.zst"


def normalized(name: str) -> str:
    """A distribution's name as packaging.python.org compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def wheels_of(lock: LoadedLock, build: BuildBody | None) -> dict[Sha256Hex, str]:
    """sha256 to file name of every wheel: installed, built, and those that native code is taken from."""
    locked = (*lock.lock.python.runtime, *lock.lock.python.precompiled)
    built = build.wheels if build is not None else ()
    return {one.sha256: one.file for one in locked} | {_hex(one.digest): one.file for one in built}


def read_sources(dossier: Dossier) -> Sources:
    """Raises RefusedError for evidence that is malformed or of another commit."""
    files, lock = dossier.files, dossier.lock
    raw = files.get(WHEELS)
    records = read_records(raw, WHEELS) if raw is not None else {}
    built = {
        pull.name: made for pull in lock.lock.pull_requests if (made := _built(pull, lock, files, records))
    }
    wheels = {one.name: one for one in _installed(lock, dossier.build, records)}
    return Sources(
        wheels=wheels, built=built, missing=tuple(_missing(dossier, wheels, built)),
        base_layers=len(getattr(lock.lock.base, "layers", ())), base=_base(dossier), env=lock.recipe.env,
    )  # fmt: skip


def _built(
    pull: LockedPullRequest, lock: LoadedLock, files: Mapping[str, bytes], records: Mapping[str, WheelRecord]
) -> BuiltFrom | None:
    name = listing_name(pull.name)
    raw = files.get(name)
    if raw is None:
        return None
    asked = lock.recipe.pull_requests[pull.name]
    given = records.get(asked.precompiled.sha256) if asked.precompiled else None
    listing = read_listing(raw, pull.head, name)
    return BuiltFrom(locked=pull, asked=asked, listing=listing, precompiled=given)


def _installed(
    lock: LoadedLock, build: BuildBody | None, records: Mapping[str, WheelRecord]
) -> Iterator[InstalledWheel]:
    rows: list[tuple[str, str, str | None]] = [
        (one.file, one.sha256, None) for one in lock.lock.python.runtime
    ]
    rows += [(one.file, _hex(one.digest), one.name) for one in (build.wheels if build is not None else ())]
    for file, sha256, pull in rows:
        yield InstalledWheel(
            name=normalized(file.removesuffix(".whl").partition("-")[0]),
            file=file,
            sha256=sha256,
            record=records.get(sha256),
            pull=pull,
        )


def _base(dossier: Dossier) -> ImageConfig | None:
    """The config of the base, its bytes those that the lock names."""
    root, raw = dossier.lock.lock.base, dossier.files.get(BASE_CONFIG)
    if isinstance(root, DebianRoot):
        return MADE_HERE
    if raw is None:
        return None
    if digest_of(raw) != root.config_digest:
        raise RefusedError(
            "BLOB_DIGEST", "the config of another base image", where=BASE_CONFIG, expected=root.config_digest,
            actual=digest_of(raw),
        )  # fmt: skip
    return parse_config(raw, BASE_CONFIG).value


def _missing(
    dossier: Dossier, wheels: Mapping[str, InstalledWheel], built: Mapping[str, BuiltFrom]
) -> Iterator[str]:
    if dossier.build is None:
        yield "the build's receipt"
    for pull in dossier.lock.lock.pull_requests:
        if pull.name not in built:
            yield f"the listing of the tree of {pull.name}'s head"
    for wheel in wheels.values():
        if wheel.record is None:
            yield f"the RECORD of {wheel.file}"
    for one in built.values():
        if one.asked.precompiled is not None and one.precompiled is None:
            yield f"the RECORD of {one.asked.precompiled.wheel}"


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")
