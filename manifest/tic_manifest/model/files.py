"""The files of an image: what one layer holds, and what a process sees with all layers over each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class FileKind(StrEnum):
    """What stands at a path."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    HARD_LINK = "hard link"
    OTHER = "other"


class FileEntry(NamedTuple):
    """One path. `digest` is the bare SHA-256 hex of a file's content, `target` where a link points.

    `mode` are a file's permission bits with setuid, setgid and sticky; `blob_id` is git's id of its content,
    40 hex digits, where the reader was asked for it and "" elsewhere.
    """

    kind: FileKind
    layer: int
    digest: str = ""
    size: int = 0
    target: str = ""
    mode: int = 0
    blob_id: str = ""


@dataclass(kw_only=True)
class LayerTree:
    """One layer, numbered from 1. Paths are relative, without `./`; `kept` holds RECORDs by path.

    `hidden` are paths that a whiteout removes from lower layers, `opaque` folders that hide what lower layers
    have in them. `problems` are (path, why) where tools unpack differently; `error` is set where the archive
    cannot be read.
    """

    number: int
    entries: dict[str, FileEntry] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    opaque: set[str] = field(default_factory=set)
    kept: dict[str, bytes] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)
    error: str = ""
    limit: str = ""
    """Set where the archive holds more than is kept in memory; the tree is not whole then."""


@dataclass(kw_only=True)
class EffectiveTree:
    """All layers over each other.

    `earlier` names the layer that another content of a path was in before; `removed` the layer that a path
    was in and the layer that removed it. `records` holds RECORDs by path.
    """

    entries: dict[str, FileEntry] = field(default_factory=dict)
    folders: dict[str, set[str]] = field(default_factory=dict)
    """Of every path that had something below it the paths right below, whether or not an archive names it."""
    records: dict[str, bytes] = field(default_factory=dict)
    earlier: dict[str, int] = field(default_factory=dict)
    removed: dict[str, tuple[int, int]] = field(default_factory=dict)
    problems: list[tuple[int, str, str]] = field(default_factory=list)
