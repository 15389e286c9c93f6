"""/proc/PID/maps, read strictly: one value per mapping, one group per mapped file."""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, NamedTuple, Tuple

from .base import MAX_MAPS, Json, text

MAPS_LINE = re.compile(
    rb"([0-9a-f]+)-([0-9a-f]+) ([r-])([w-])([x-])([ps]) "
    rb"([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) ([0-9]+)(?: +(\S.*)?)?"
)
DELETED = b" (deleted)"
PSEUDO = (b"[vdso]", b"[vvar]", b"[vvar_vclock]", b"[vsyscall]", b"[uprobes]")


class Mapping(NamedTuple):
    """One line of maps. `path` is the name with the kernel's `\\012` turned back into a newline."""

    start: int
    end: int
    perms: str
    offset: int
    device: Tuple[int, int]
    inode: int
    path: bytes

    @property
    def size(self) -> int:
        """Bytes of address space."""
        return self.end - self.start

    @property
    def executable(self) -> bool:
        """The processor may run these bytes."""
        return self.perms[2] == "x"

    @property
    def is_file(self) -> bool:
        """Backed by a file with a name (memfd and shared memory included)."""
        return self.inode != 0 and self.path.startswith(b"/")


def parse_maps(lines: Iterable[bytes]) -> Tuple[List[Mapping], Json]:
    """Mappings in order, and what was not readable: `{"lines", "malformed", "truncated"}`."""
    found: List[Mapping] = []
    malformed = 0
    count = 0
    truncated = False
    for line in lines:
        if count >= MAX_MAPS:
            truncated = True
            break
        count += 1
        match = MAPS_LINE.fullmatch(line.rstrip(b"\n"))
        mapping = _mapping(match.groups()) if match else None
        if mapping is None:
            malformed += 1
        else:
            found.append(mapping)
    return found, {"lines": count, "malformed": malformed, "truncated": truncated}


def _mapping(groups: Tuple[bytes, ...]) -> "Mapping | None":
    start, end = int(groups[0], 16), int(groups[1], 16)
    if end <= start:
        return None
    perms = b"".join(groups[2:6]).decode("ascii")
    device = (int(groups[7], 16), int(groups[8], 16))
    path = (groups[10] or b"").replace(b"\\012", b"\n")
    return Mapping(start, end, perms, int(groups[6], 16), device, int(groups[9]), path)


def read_maps(pid: int) -> Tuple[List[Mapping], Json]:
    """The mappings of a process, streamed. OSError when it is gone or not ours to read."""
    with open("/proc/%d/maps" % pid, "rb") as stream:
        return parse_maps(stream)


FileKey = Tuple[Tuple[int, int], int, bytes]


def by_file(mappings: Iterable[Mapping]) -> Dict[FileKey, List[Mapping]]:
    """Mappings of each file, keyed by (device, inode, name)."""
    groups: Dict[FileKey, List[Mapping]] = {}
    for mapping in mappings:
        if mapping.is_file:
            groups.setdefault((mapping.device, mapping.inode, mapping.path), []).append(mapping)
    return groups


def anonymous_executable(mappings: Iterable[Mapping]) -> Json:
    """Executable memory with no file behind it (JIT code pages): how many ranges, how many bytes."""
    ranges = [m for m in mappings if m.executable and not m.is_file and m.path not in PSEUDO]
    return {
        "count": len(ranges),
        "bytes": sum(m.size for m in ranges),
        "writable": sum(1 for m in ranges if m.perms[1] == "w"),
        "names": sorted({text(m.path) for m in ranges})[:20],
    }
