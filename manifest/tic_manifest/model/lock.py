"""The lock: every input as a digest or commit (contract, section 1).

No verdict, no timestamp, no host address.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from tic_manifest.model.base import Digest, GitCommit, GitTree, Name, Sha256Hex, Value

SCHEMA: Final = "tic/lock/v1"

EPOCH = 1577836800
"""2020-01-01T00:00:00Z: what every later time in wheels and layers becomes (SOURCE_DATE_EPOCH)."""


class Submodule(Value):
    """A gitlink of the head's tree."""

    path: str
    url: str
    commit: GitCommit


class LockedPullRequest(Value):
    """A pull request resolved: commits with their trees, and the merge of pinned base and head."""

    name: Name
    row: str
    url: str
    number: int
    git: str
    owner: str
    repo: str
    branch: str
    base: GitCommit
    base_tree: GitTree
    head: GitCommit
    head_tree: GitTree
    merge_base: GitCommit
    merge_tree: GitTree | None
    """Tree of the merge of pinned base and head; null where they conflict."""
    submodules: tuple[Submodule, ...] = ()


class LockedFile(Value):
    """A file by name, version, file name and sha256, never by where it was found. `size` in bytes."""

    name: str
    version: str
    file: str
    sha256: Sha256Hex
    size: int


class DebianRoot(Value):
    """A root made from exactly these packages, in this order of names."""

    kind: Literal["debian"] = "debian"
    suite: str
    architecture: str
    packages: tuple[LockedFile, ...]


class ImageRoot(Value):
    """An image by digest. `layers` are blob digests, in order."""

    kind: Literal["image"] = "image"
    reference: str
    index_digest: Digest | None
    platform_digest: Digest
    config_digest: Digest
    layers: tuple[Digest, ...]


Root = Annotated[DebianRoot | ImageRoot, Field(discriminator="kind")]


class LockedPython(Value):
    """Wheels: `runtime` is installed into the image, `build` only where wheels are built."""

    version: str
    runtime: tuple[LockedFile, ...]
    build: tuple[LockedFile, ...]
    precompiled: tuple[LockedFile, ...] = ()


class Material(Value):
    """A file of the project that goes into or makes the image."""

    name: str
    sha256: Sha256Hex


class Lock(Value):
    """What follows from recipe and pins. `recipe` is the whole recipe as plain data."""

    schema_: Literal["tic/lock/v1"] = Field(alias="schema")
    recipe_digest: Digest
    recipe: dict[str, JsonValue]
    pull_requests: tuple[LockedPullRequest, ...]
    base: Root
    builder: Root
    python: LockedPython
    materials: tuple[Material, ...]
