"""What travels so that anyone can hold files of an image against the heads: listings of trees, RECORDs.

A mirror or a wheel that is gone from the work folder gives no evidence: `verify` then says what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tic_manifest.errors import RefusedError, UnavailableError
from tic_manifest.formats.lock import LoadedLock
from tic_manifest.formats.tree_listing import read_listing
from tic_manifest.formats.wheel_records import records_bytes
from tic_manifest.model.lock import ImageRoot, LockedPullRequest
from tic_manifest.model.receipt import BuildBody
from tic_manifest.model.wheels import WheelRecord
from tic_manifest.ports import Progress, SourceGit, Store, WheelReader
from tic_manifest.rules.source_evidence import BASE_CONFIG, MAX_CONFIG, WHEELS, listing_name, wheels_of

GitFor = Callable[[str, str], SourceGit]
"""Name and URL of a repository to its mirror."""


def collect_sources(
    lock: LoadedLock,
    build: BuildBody | None,
    git_for: GitFor,
    store: Store,
    reader: WheelReader,
    said: Progress,
) -> dict[str, bytes]:
    """Evidence by name, as far as mirrors and wheels are there. Raises RefusedError WHEEL_HASH."""
    files: dict[str, bytes] = {}
    for pull in lock.lock.pull_requests:
        listing = _listing(pull, git_for, said)
        if listing is not None:
            files[listing_name(pull.name)] = listing
    wheels = list(_wheels(lock, build, store, reader, said))
    files |= {WHEELS: records_bytes(wheels)} if wheels else {}
    return files | _base_config(lock, store)


def _base_config(lock: LoadedLock, store: Store) -> dict[str, bytes]:
    """The config of a base image by digest, as the lock kept it; a root made here has none to show."""
    root = lock.lock.base
    path = store.path(root.config_digest) if isinstance(root, ImageRoot) else None
    if path is None or path.stat().st_size > MAX_CONFIG:
        return {}
    return {BASE_CONFIG: path.read_bytes()}


def _listing(pull: LockedPullRequest, git_for: GitFor, said: Progress) -> bytes | None:
    """Read again as `verify` reads it: what would be refused there does not travel."""
    try:
        made = git_for(pull.name, pull.git).listing(pull.head)
        read_listing(made, pull.head, listing_name(pull.name))
    except (UnavailableError, RefusedError) as error:
        said.say(f"assemble: no listing of {pull.head}: {error.what}")
        return None
    return made


def _wheels(
    lock: LoadedLock, build: BuildBody | None, store: Store, reader: WheelReader, said: Progress
) -> Iterator[WheelRecord]:
    for sha256, file in wheels_of(lock, build).items():
        path = store.path(f"sha256:{sha256}")
        if path is None:
            said.say(f"assemble: no RECORD of {file}: it is not in the store")
        else:
            yield reader(path, file, sha256)
