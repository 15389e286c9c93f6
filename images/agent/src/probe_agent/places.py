"""Other places where the search path holds a module of the same name, and archives that modules come from."""

from __future__ import annotations

import os
import stat
from typing import Dict, List, Optional

from .base import Json, clean
from .imports import Disk


def add_rivals(root: str, view: Json) -> None:
    """`also` of every top-level module, and of every module in a namespace package: files of equal name."""
    disk = Disk(root, view)
    files = {m["name"]: m.get("file") for m in view["modules"]}
    for module in view["modules"]:
        name, file = module["name"], module.get("file")
        above = name.split(".")[:-1]
        bare = all(files.get(".".join(above[: i + 1]), "") is None for i in range(len(above)))
        if bare and name != "__main__" and isinstance(file, str) and file.startswith("/"):
            also = rivals(disk, root, name, file)
            if also:
                module["also"] = also


def rivals(disk: Disk, root: str, name: str, file: str) -> List[str]:
    """Files by which other entries of the search path answer to a name."""
    folder, _, last = name.replace(".", "/").rpartition("/")
    own = os.path.realpath(root + file)
    found: Dict[str, str] = {}
    for entry in disk.path:
        place = entry.rstrip("/") + ("/" + folder if folder else "")
        names = disk.names(place)
        if last in names and "__init__.py" in disk.names(place + "/" + last):
            path: Optional[str] = "%s/%s/__init__.py" % (place, last)
        else:
            path = next((place + "/" + last + s for s in [*disk.suffixes, ".py"] if last + s in names), None)
        if path is not None and os.path.realpath(root + path) != own:
            found.setdefault(os.path.realpath(root + path), clean(path))
    return list(found.values())[:8]


def archive_of(root: str, path: str) -> Optional[str]:
    """The regular file that a path which is not there lies in, as `x.zip/module.py` does, or None."""
    while path.count("/") > 1:
        path = path.rpartition("/")[0]
        try:
            mode = os.stat(root + path).st_mode
        except OSError:
            continue
        return path if stat.S_ISREG(mode) else None
    return None
