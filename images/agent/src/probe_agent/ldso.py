"""Where the dynamic linker would find a library, worked out without running it."""

from __future__ import annotations

import os
import re
import struct
from typing import Dict, List, Optional

from .base import Json, read_file, resolve_in_root, text
from .elf import inspect_elf

CACHE_MAGIC = b"glibc-ld.so.cache1.1"
DEFAULT_FOLDERS = ("/lib/{m}-linux-gnu", "/usr/lib/{m}-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib")


def parse_cache(raw: bytes) -> Dict[str, List[str]]:
    """ld.so.cache in glibc's new format, also after the old one: {soname: [path, …]}, {} for none."""
    base = raw.find(CACHE_MAGIC)
    if base < 0 or len(raw) < base + 48:
        return {}
    order = ">" if raw[base + 28] == 3 else "<"
    count = struct.unpack_from(order + "I", raw, base + 20)[0]
    found: Dict[str, List[str]] = {}
    for i in range(min(count, 200_000)):
        at = base + 48 + i * 24
        if at + 24 > len(raw):
            break
        key, value = struct.unpack_from(order + "II", raw, at + 4)
        found.setdefault(_string(raw, base + key), []).append(_string(raw, base + value))
    return found


def _string(raw: bytes, at: int) -> str:
    end = raw.find(b"\0", at, at + 4096)
    return text(raw[at:end]) if 0 <= at < len(raw) and end >= 0 else ""


class Linker:
    """Finds the libraries that a file needs, as a process with this environment would."""

    def __init__(self, root: str, library_path: List[str], loaded: Dict[str, str]) -> None:
        self.root = root
        self.library_path = [p for p in library_path if p.startswith("/")]
        self.loaded = loaded
        self.loaded_paths = set(loaded.values())
        self.bundled: Dict[str, str] = {}  # found last: a wheel may load its own library first, by hand
        self._elf: Dict[str, Json] = {}
        self._missing: Dict[str, List[Json]] = {}
        try:
            self.cache = parse_cache(read_file(root + "/etc/ld.so.cache", 64 << 20))
        except OSError:
            self.cache = {}

    def elf(self, path: str) -> Json:
        """ELF facts of a file of this root, read once."""
        if path not in self._elf:
            self._elf[path] = inspect_elf(self.root + path)
        return self._elf[path]

    def find(self, name: str, needed_by: str, runpath: List[str], rpath: List[str]) -> Optional[str]:
        """Path of one needed library; None when no place holds it."""
        if name in self.loaded:
            return self.loaded[name]
        if "/" in name:
            return name if os.path.exists(self.root + name) else None
        origin = os.path.dirname(needed_by)
        folders = ([] if runpath else rpath) + self.library_path + runpath
        machine = self.elf(needed_by).get("machine", "")
        folders = [re.sub(r"\$\{?ORIGIN\}?", lambda _: origin, f) for f in folders]
        places = [f.rstrip("/") + "/" + name for f in folders if f.startswith("/")]
        places += self.cache.get(name, []) + [f.format(m=machine) + "/" + name for f in DEFAULT_FOLDERS]
        for place in places:
            real = resolve_in_root(self.root, place)
            if real is not None and self.elf(real).get("machine") == machine:
                return real
        return self.bundled.get(name)

    def missing(self, path: str, depth: int = 0) -> List[Json]:
        """Broken edges below a file, `{"library", "needed_by"}`, nearest first; each file is read once."""
        if path in self._missing:
            return self._missing[path]
        self._missing[path] = []
        facts = self.elf(path)
        if "error" in facts or depth > 32:
            return []
        broken: List[Json] = []
        for name in facts["needed"]:
            found = self.find(name, path, facts["runpath"], facts["rpath"])
            if found is None:
                broken.append({"library": name, "needed_by": path})
            elif found not in self.loaded_paths:
                broken += self.missing(found, depth + 1)
        self._missing[path] = broken
        return broken
