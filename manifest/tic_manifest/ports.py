"""What stages need from the outside world. Adapters implement these; tests hold fakes with real digests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from tic_manifest.model.base import Digest, GitCommit, GitTree, Sha256Hex
from tic_manifest.model.files import LayerTree
from tic_manifest.model.lock import LockedFile, Root, Submodule
from tic_manifest.model.oci import Blob, BlobFact, Descriptor, Referrers
from tic_manifest.model.receipt import Artifact, Host, Rebuild
from tic_manifest.model.recipe import DebianBase, Python
from tic_manifest.model.wheels import WheelRecord


class Clock(Protocol):
    """The time, read by whoever writes a receipt."""

    def now(self) -> str:
        """UTC as `YYYY-MM-DDTHH:MM:SSZ`."""


class Progress(Protocol):
    """Talk about long work; never data."""

    def say(self, text: str) -> None:
        """One plain line."""

    def step(self, name: str, total: int | None = None) -> AbstractContextManager[Step]:
        """A step with an optional total in bytes or items."""


class Step(Protocol):
    """A running step."""

    def advance(self, amount: int) -> None:
        """`amount` more of the total is done."""


class Store(Protocol):
    """Content-addressed files that outlive a work folder's stages."""

    def path(self, digest: Digest) -> Path | None:
        """Where the file lies, its content re-hashed when it was put; None when absent."""

    def put(self, source: IO[bytes], *, expected: Digest | None = None) -> Digest:
        """Store a stream atomically. Raises RefusedError WHEEL_HASH when `expected` differs."""

    def place(self, digest: Digest, target: Path, name: str) -> None:
        """Make a stored file appear at `target`. Raises UnavailableError BLOB_MISSING naming `name`."""


class SourceGit(Protocol):
    """Git objects of one repository in a bare mirror of ours, read without any user configuration."""

    def fetch(self, commits: Sequence[GitCommit], refs: Sequence[str] = ()) -> None:
        """Make commits (and refs) present. Raises UnavailableError, or RefusedError PIN_UNFETCHABLE."""

    def remote_refs(self, patterns: Sequence[str]) -> Mapping[str, GitCommit]:
        """Full names of the server's refs that match, and what they name now. Raises UnavailableError."""

    def tree_of(self, commit: GitCommit) -> GitTree:
        """The tree of a commit that is present."""

    def merge_base(self, left: GitCommit, right: GitCommit) -> GitCommit | None:
        """The best common ancestor; None where histories are unrelated."""

    def merge_tree(self, base: GitCommit, head: GitCommit) -> GitTree | None:
        """The tree of the merge, written; None where it conflicts."""

    def is_ancestor(self, ancestor: GitCommit, descendant: GitCommit) -> bool:
        """Reachability, both present."""

    def submodules(self, commit: GitCommit) -> tuple[Submodule, ...]:
        """Gitlinks of a commit's tree with their URLs."""

    def keep_files(self, commit: GitCommit) -> None:
        """Make every file of a commit's tree present, so that it is exported with no network."""

    def export(self, commit: GitCommit, target: Path) -> GitTree:
        """Write the tree of a commit below `target`; the tree id recomputed from what was written."""

    def listing(self, commit: GitCommit) -> bytes:
        """The packed listing of a commit's tree (formats.tree_listing). Raises UnavailableError."""

    def changed_paths(self, base: GitCommit, head: GitCommit) -> tuple[str, ...]:
        """Paths that differ between two commits."""


class Forge(Protocol):
    """A GitHub REST interface, read only."""

    def pull_request(self, owner: str, repo: str, number: int) -> Mapping[str, Any]:
        """The answer for one pull request, as data. Raises UnavailableError with the reason's code."""

    def branch_head(self, owner: str, repo: str, branch: str) -> GitCommit | None:
        """The commit that a branch names now; None when the branch is gone."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """What wheels are chosen for: an architecture in OCI's spelling and glibc 2.`glibc` at least."""

    architecture: str
    glibc: int


class Resolver(Protocol):
    """Python requirements to files with hashes, files into the store."""

    def check(self, python: Python) -> None:
        """Refuse what can be no requirement, before anything is fetched. Raises PersonError RECIPE."""

    def resolve(
        self, requirements: Sequence[str], python: Python, target: Target, store: Store
    ) -> tuple[LockedFile, ...]:
        """Every wheel that installs for the requirements, sorted by name. Raises UnavailableError."""

    def wheel(self, file: str, sha256: str, python: Python, target: Target, store: Store) -> LockedFile:
        """One wheel by file name and hash, without what it depends on. Raises UnavailableError."""


class Roots(Protocol):
    """What an image stands on: an image by digest, or a root made here from Debian packages."""

    def resolve(self, wanted: str | DebianBase, architecture: str, store: Store) -> Root:
        """Everything that makes the root, by digest, each file in the store."""

    def make(self, root: Root, store: Store, folder: Path, scripts: Path) -> tuple[Path, Digest]:
        """The root as an OCI layout below `folder`; where, and the platform manifest digest.

        `scripts` holds the files of images/build as the lock names them.
        """


@dataclass(frozen=True, kw_only=True)
class Built:
    """An image in a layout, by its digests. `index_digest` is None where there is no image index."""

    index_digest: Digest | None
    platform_digest: Digest
    config_digest: Digest
    layers: tuple[Digest, ...]
    labels: Mapping[str, str]
    platform: str


class Layouts(Protocol):
    """OCI layouts that a builder wrote, read from bytes."""

    def read(self, layout: Path) -> Built:
        """The one image of a layout. Raises RefusedError LAYOUT, MANIFEST_DIGEST, BLOB_MISSING."""

    def restore_base(self, layout: Path, base: Path) -> None:
        """Make the first layers of a layout's image those of its base. Raises RefusedError BASE_LAYERS."""

    def compare(self, earlier: tuple[Path, Digest], now: tuple[Path, Digest], progress: Progress) -> Rebuild:
        """What two builds of one lock differ in, from their bytes."""

    def whole(self, layout: Path, digest: Digest) -> Built | None:
        """The image of a digest, when every byte of it is there as its digests say."""


@dataclass(frozen=True, kw_only=True)
class ImageBuild:
    """One call of the builder: contexts by name, all local, `.` the unnamed one; there is never a network."""

    dockerfile: Path
    target: str
    contexts: Mapping[str, str]
    arguments: Mapping[str, str]
    labels: Mapping[str, str]
    platform: str
    epoch: int
    """Seconds since 1970 that every later time in the result becomes (SOURCE_DATE_EPOCH)."""
    destination: Path
    kind: str
    """`oci` writes a layout folder, `local` a plain folder."""
    log: Path
    no_cache: bool = False
    recompress: bool = True
    """Whether a layer that the builder knows in another compression is packed again."""
    rewrite: bool = False
    """Whether every layer is written again with times of `epoch` at most; no layer of a base stays."""
    provenance: bool = False
    """Whether the builder's own SLSA provenance goes into the layout's image index."""


@dataclass(frozen=True, kw_only=True)
class Container:
    """One run of a program in an image that is named by digest."""

    image: str
    argv: Sequence[str]
    env: Mapping[str, str]
    inputs: Mapping[str, Path]
    """Container path to host folder, mounted read-only."""
    output: Path
    """Host folder mounted at /out, the only writable mount."""
    shm_mib: int
    timeout_seconds: int
    log: Path
    name: str
    run_id: str = ""
    """The delivery that it belongs to; a label of the container, so that what a kill leaves can be found."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a container ended. `exit_code` is None where our time limit ended it."""

    exit_code: int | None
    timed_out: bool
    oom_killed: bool
    log_tail: tuple[str, ...]


class Engine(Protocol):
    """A container engine with BuildKit."""

    def describe(self) -> str:
        """Engine and builder with their versions. Raises UnavailableError ENGINE_MISSING."""

    def host(self) -> Host:
        """The machine that containers run on."""

    def data_root(self) -> Path | None:
        """Where the engine keeps images, if that is a folder of this machine."""

    def build(self, request: ImageBuild) -> None:
        """Build without network; raises UnavailableError ENGINE_FAILED with the last log lines."""

    def load(self, layout: Path, digest: Digest) -> str:
        """Make an image of a layout runnable; returns what `run` takes, which names the digest."""

    def end_left_over(self, run_id: str) -> None:
        """End containers that a killed run of this delivery left; they would go on writing."""

    def run(self, container: Container) -> Ended:
        """Run to the end with no network. The container is gone afterwards, whatever happens."""


class Work(Protocol):
    """The work folder of one delivery."""

    root: Path

    def read(self, name: str) -> bytes | None:
        """A file of the folder, or None."""

    def write(self, name: str, data: bytes) -> Path:
        """Write a file whole or not at all."""

    def receipts(self, lock: Digest) -> Iterator[tuple[str, bytes]]:
        """Stage and bytes of the receipts that belong to a lock."""


class Runs(Protocol):
    """What worker runs of one delivery left behind. File names and contents are a worker's own words."""

    def fresh(self, name: str) -> Path:
        """An empty output folder for a run; what an earlier try left is gone."""

    def path(self, name: str) -> Path:
        """The output folder of a run."""

    def outputs(self, name: str) -> tuple[Artifact, ...]:
        """Every regular file below the folder, sorted by name, hashed; links and devices are left out."""

    def read(self, name: str, artifact: Artifact) -> bytes | None:
        """The bytes of an output that still has its digest; None when it is gone or changed."""


class ImageSource(Protocol):
    """Where an image lies: an OCI layout or a repository of a registry. Bytes come as they are stored.

    Nothing here judges: bytes may be others than the digest names, and whoever asks hashes them.
    """

    def describe(self) -> str:
        """The place, without digest or tag."""

    def manifest(self, digest: Digest) -> bytes | None:
        """The stored bytes of a platform manifest, image index or artifact; None when absent.

        At most MAX_MANIFEST_BYTES. Raises UnavailableError (NETWORK, AUTH), RefusedError (REGISTRY, LAYOUT).
        """

    def blob(self, digest: Digest, size: int) -> Iterator[bytes] | None:
        """The stored bytes in pieces, at most `size` + 1 in all; None when absent. Raises as `manifest`."""

    def length(self, digest: Digest) -> int | None:
        """The stored length of a blob in bytes, without reading it; None when absent."""

    def resolve(self, tag: str) -> Digest | None:
        """What a tag names now; None when there is no such tag."""

    def index_entries(self) -> tuple[Descriptor, ...]:
        """The entries of a layout's index.json; empty for a registry."""

    def referrers(self, subject: Digest) -> Referrers:
        """What says it is about a document: referrers API, else the fallback tag `sha256-<hex>`."""


class WheelReader(Protocol):
    """Reads of a wheel what travels as evidence."""

    def __call__(self, path: Path, file: str, sha256: Sha256Hex) -> WheelRecord:
        """Raises RefusedError WHEEL_HASH for a file that is no wheel."""


Wanted = Callable[[str], bool]
"""Says of a path, relative to the root of the image, whether something more is wanted of its file."""


def nothing(_: str) -> bool:
    """Wanted of no file."""
    return False


class TreeReader(Protocol):
    """As `BlobReader`, and of each layer what its archive holds; None for a blob that is no layer."""

    def __call__(
        self, source: ImageSource, blobs: Sequence[Blob], progress: Progress, with_blob_id: Wanted = nothing
    ) -> tuple[list[BlobFact], list[LayerTree | None]]:
        """Facts and trees, in the order of the blobs; git's blob id of those files that it is wanted of.

        Raises UnavailableError where the source went away.
        """


class BlobReader(Protocol):
    """Reads blobs to their end, hashing packed and unpacked bytes; no disk, bounded memory, every core."""

    def __call__(self, source: ImageSource, blobs: Sequence[Blob], progress: Progress) -> list[BlobFact]:
        """One fact for each blob, in order. Raises UnavailableError where the source went away."""
