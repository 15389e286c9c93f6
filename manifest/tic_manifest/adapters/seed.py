"""The seed of a Debian root: the essential packages' files as one tar, enough to run dpkg on all of them.

The first step of debootstrap and mmdebstrap too, here without root rights: ownership stands in the tar.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tic_manifest.adapters import deb

_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_RELATION = re.compile(r"[a-z0-9][a-z0-9+.-]+")
Fields = Mapping[str, str]


def batches(packages: Mapping[Path, Fields]) -> list[list[Path]]:
    """Packages in the order of their needs, essential ones with all that they need first.

    A further batch begins where a package needs another one configured before it is unpacked (Pre-Depends).
    """
    owner = _providers(packages)
    essential = [path for path, fields in packages.items() if fields.get("Essential") == "yes"]
    result = [_closure(essential, packages, owner)]
    known = set(result[0])
    result.append([])
    for path in (one for one in _closure(list(packages), packages, owner) if one not in known):
        if set(_owners(packages[path].get("Pre-Depends", ""), owner)) & set(result[-1]):
            result.append([])
        result[-1].append(path)
    return [batch for batch in result if batch]


def write(packages: Sequence[Path], target: Path) -> None:
    """Write the seed of packages as a tar: merged /usr (usrmerge), first writer of a path wins."""
    seen: set[str] = set()
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as out:
        for name in _MERGED:
            _link(out, name)
            seen.add(name)
        for package in packages:
            with deb.member(package, "data.tar") as data:
                for one in data:
                    _add(out, data, one, seen)


def _link(out: tarfile.TarFile, name: str) -> None:
    folder, link = tarfile.TarInfo(f"usr/{name}"), tarfile.TarInfo(name)
    folder.type, folder.mode = tarfile.DIRTYPE, 0o755
    link.type, link.linkname, link.mode = tarfile.SYMTYPE, f"usr/{name}", 0o777
    if not any(one.name == "usr" for one in out.getmembers()):
        usr = tarfile.TarInfo("usr")
        usr.type, usr.mode = tarfile.DIRTYPE, 0o755
        out.addfile(usr)
    out.addfile(folder)
    out.addfile(link)


def _add(out: tarfile.TarFile, data: tarfile.TarFile, one: tarfile.TarInfo, seen: set[str]) -> None:
    one.name = merged(one.name)
    if one.islnk():
        one.linkname = merged(one.linkname)
    if not one.name or one.name in seen:
        return
    seen.add(one.name)
    body = data.extractfile(one) if one.isreg() else None
    out.addfile(one, body if body else io.BytesIO())


def merged(name: str) -> str:
    """A path of a package as it lies in a root with merged /usr; empty for the root itself."""
    name = name.removeprefix("./").strip("/")
    name = "" if name == "." else name
    return f"usr/{name}" if name.split("/", 1)[0] in _MERGED and "/" in name else name


def _providers(packages: Mapping[Path, Fields]) -> dict[str, Path]:
    owner: dict[str, Path] = {}
    for path, fields in packages.items():
        for name in _names(fields.get("Provides", "")):
            owner.setdefault(name[0], path)
    owner.update({fields["Package"]: path for path, fields in packages.items()})
    return owner


def _closure(
    wanted: Iterable[Path], packages: Mapping[Path, Fields], owner: Mapping[str, Path]
) -> list[Path]:
    done: dict[Path, None] = {}
    entered: set[Path] = set()
    stack = [(path, False) for path in reversed(list(wanted))]
    while stack:
        path, leaving = stack.pop()
        if leaving:
            done[path] = None
        elif path not in entered:
            entered.add(path)
            stack.append((path, True))
            stack += [(need, False) for need in reversed(_needs(packages[path], owner))]
    return list(done)


def _needs(fields: Fields, owner: Mapping[str, Path]) -> list[Path]:
    return _owners(fields.get("Pre-Depends", ""), owner) + _owners(fields.get("Depends", ""), owner)


def _owners(relation: str, owner: Mapping[str, Path]) -> list[Path]:
    found = (next((owner[name] for name in group if name in owner), None) for group in _names(relation))
    return [path for path in found if path is not None]


def _names(relation: str) -> list[list[str]]:
    """`a (>= 1) | b, c:any` as [[a, b], [c]]."""
    groups = [part.split("|") for part in relation.split(",") if part.strip()]
    return [[m[0] for m in (_RELATION.match(one.strip()) for one in group) if m] for group in groups]
