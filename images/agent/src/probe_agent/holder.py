"""Who holds the model: search the private memory of each process for samples of the policy's own bytes.

A title, a command line or a mapped checkpoint proves nothing. A process holds the policy when at least
half of the samples are found in memory that is its own: anonymous, or private pages that were written.
"""

from __future__ import annotations

import array
import json
import os
import struct
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .base import Budget, Json, clean, failure, open_regular, text
from .maps import PSEUDO, Mapping

SAMPLE = 64
WINDOW = 8 << 20
SCOUTS = 8
WIDE = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I8": 1, "U8": 1, "F8_E4M3": 1, "F8_E5M2": 1}
PAGE = os.sysconf("SC_PAGE_SIZE")
PRESENT, SWAPPED, FILE_PAGE = 1 << 63, 1 << 62, 1 << 61


class Sample(NamedTuple):
    """64 bytes of the policy with the forms in which a process may hold them."""

    where: str
    offset: int
    forms: Dict[str, bytes]


class Tensor(NamedTuple):
    """One tensor of a safetensors file."""

    name: str
    dtype: str
    shape: List[int]
    start: int
    end: int


def read_tensors(fd: int) -> List[Tensor]:
    """The header of a safetensors file. ValueError when it is not one."""
    size = os.fstat(fd).st_size
    length = struct.unpack("<Q", os.pread(fd, 8, 0).ljust(8, b"\0"))[0]
    if not 2 <= length <= min(size - 8, 100 << 20):
        raise ValueError("no safetensors header")
    found = []
    for name, entry in json.loads(os.pread(fd, length, 8)).items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            if not 0 <= start <= end <= size - 8 - length:
                raise ValueError("tensor outside the file")
            found.append(
                Tensor(clean(name), entry["dtype"], entry["shape"], 8 + length + start, 8 + length + end)
            )
    return found


def varied(data: bytes) -> bool:
    """Enough different bytes to be found by accident nowhere."""
    return len(data) == SAMPLE and len(set(data)) >= 12


def forms_of(data: bytes, dtype: str) -> Dict[str, bytes]:
    """The bytes as stored, and as a process holds them after a change of floating-point width."""
    forms = {dtype: data}
    if dtype == "BF16":
        forms["F32"] = b"".join(b"\0\0" + data[i : i + 2] for i in range(0, SAMPLE // 2, 2))
    if dtype == "F16":
        forms["F32"] = struct.pack("<16f", *struct.unpack("<16e", data[:32]))
    if dtype == "F32":
        forms["BF16"] = b"".join(_round_bf16(w) for w in struct.unpack("<16I", data))
    return {name: form for name, form in forms.items() if len(set(form)) >= 8}


def _round_bf16(word: int) -> bytes:
    return struct.pack("<H", ((word + 0x7FFF + ((word >> 16) & 1)) >> 16) & 0xFFFF)


def rows_of(tensor: Tensor, count: int) -> List[int]:
    """Offsets of `count` row beginnings spread over a tensor, so that no sample crosses a row."""
    width = WIDE.get(tensor.dtype, 0)
    row = width * (tensor.shape[-1] if tensor.shape else 0)
    total = tensor.end - tensor.start
    if row < SAMPLE or total < SAMPLE:
        return []
    rows = total // row
    return [tensor.start + (rows * (2 * i + 1) // (2 * count)) * row for i in range(min(count, rows))]


def sample_tensors(path: str) -> Tuple[List[Sample], List[Sample]]:
    """Samples of one safetensors file: rows of the embedding, and of a few other tensors."""
    fd = open_regular(path)
    try:
        tensors = read_tensors(fd)
        embeddings = [t for t in tensors if "embed" in t.name and len(t.shape) == 2]
        others = spread([t for t in tensors if t not in embeddings], 16)
        return _samples(fd, path, embeddings[:2], 24), _samples(fd, path, others, 4)
    finally:
        os.close(fd)


def _samples(fd: int, path: str, tensors: List[Tensor], count: int) -> List[Sample]:
    found = []
    for tensor in tensors:
        for at in rows_of(tensor, count):
            data = os.pread(fd, SAMPLE, at)
            if varied(data):
                where = "%s:%s" % (os.path.basename(path), tensor.name)
                found.append(Sample(where, at, forms_of(data, tensor.dtype)))
    return found


def spread(items: List[Any], count: int) -> List[Any]:
    """At most `count` items, evenly over the list."""
    if len(items) <= count:
        return items
    return [items[len(items) * (2 * i + 1) // (2 * count)] for i in range(count)]


def sample_raw(path: str, count: int = 16) -> List[Sample]:
    """Samples spread over a plain file of numbers."""
    fd = open_regular(path)
    try:
        size = os.fstat(fd).st_size
        offsets = [
            max(0, size - SAMPLE) * (2 * i + 1) // (2 * count) // SAMPLE * SAMPLE for i in range(count)
        ]
        pieces = [(at, os.pread(fd, SAMPLE, at)) for at in sorted(set(offsets))]
        return [Sample(os.path.basename(path), at, {"raw": data}) for at, data in pieces if varied(data)]
    finally:
        os.close(fd)


def policy_files(place: str) -> List[str]:
    """The file itself, or the files of a folder and of the folders in it, in order of name."""
    if not os.path.isdir(place):
        return [place]
    found: List[str] = []
    for base, folders, names in os.walk(place):
        folders.sort()
        if base != place:
            del folders[:]
        found += [os.path.join(base, name) for name in sorted(names)]
        if len(found) > 10_000:
            break
    return found


def read_policy(folder: str) -> Tuple[List[Sample], Json]:
    """Samples of a checkpoint folder (or file), and what was read of it."""
    files = [f for f in policy_files(folder) if f.endswith((".safetensors", ".bin", ".raw"))]
    rows: List[Sample] = []
    others: List[Sample] = []
    report: Json = {"path": clean(folder), "files": [], "bytes": 0, "errors": []}
    for path in files[:256]:
        try:
            embedding, rest = (
                sample_tensors(path) if path.endswith(".safetensors") else ([], sample_raw(path))
            )
            rows += embedding
            others += rest
            s = os.stat(path)
            report["files"].append(
                {"path": clean(path), "size": s.st_size, "device_inode": [s.st_dev, s.st_ino]}
            )
            report["bytes"] += s.st_size
        except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
            report["errors"].append(failure(error))
    # Linear weights may be repacked for the processor, embedding rows are not: they decide where they exist.
    samples = spread(rows, 48) + spread(others, len(rows) // 4) if rows else spread(others, 64)
    report["samples"] = len(samples)
    return samples, report


def candidates(mappings: List[Mapping]) -> Iterator[Tuple[Mapping, bool]]:
    """Memory that can be a process's own: writable private mappings, shared memory. True: file-backed."""
    for m in mappings:
        shared = m.perms[3] == "s"
        runtime = m.path.startswith((b"/memfd:", b"/dev/shm/", b"/SYSV", b"/dev/zero"))
        if m.perms[:2] != "rw" or m.path in PSEUDO or (shared and not runtime):
            continue
        yield m, m.is_file and not runtime


def touched(pagemap: int, mapping: Mapping, private_only: bool) -> Iterator[Tuple[int, int]]:
    """Ranges of a mapping that hold pages, in windows of at most 8 MiB; never touches an absent page."""
    for start in range(mapping.start, mapping.end, WINDOW):
        end = min(start + WINDOW, mapping.end)
        raw = os.pread(pagemap, (end - start) // PAGE * 8, start // PAGE * 8)
        if not any(raw):
            continue
        begin: Optional[int] = None
        for i, entry in enumerate(array.array("Q", raw[: len(raw) // 8 * 8])):
            held = bool(entry & (PRESENT | SWAPPED)) and not (private_only and entry & FILE_PAGE)
            if held and begin is None:
                begin = start + i * PAGE
            elif not held and begin is not None:
                yield begin, start + i * PAGE
                begin = None
        if begin is not None:
            yield begin, end


class Search:
    """Passes over the memory of one process: a few scouts first, all samples only where a scout was found."""

    def __init__(self, samples: List[Sample], budget: Budget) -> None:
        self.samples = samples
        self.left: Dict[int, Dict[str, bytes]] = {}
        self.found: Dict[int, str] = {}
        self.addresses: List[int] = []
        self.scanned = 0
        self.budget = budget
        self.cut = False

    def look(self, data: bytes, base: int) -> None:
        """Look for every sample that is still missing."""
        for i in list(self.left):
            for form, needle in self.left[i].items():
                at = data.find(needle)
                if at >= 0:
                    self.found[i] = form
                    self.addresses.append(base + at)
                    del self.left[i]
                    break

    def run(self, pid: int, mappings: List[Mapping]) -> None:
        """Look for scouts; when one is found, for all samples in the same form, its region first."""
        self.left = {i: dict(self.samples[i].forms) for i in spread(list(range(len(self.samples))), SCOUTS)}
        self._pass(pid, mappings, 1)
        if not self.found:
            return
        forms = set(self.found.values())
        rest = [i for i in range(len(self.samples)) if i not in self.found]
        self.left = {i: {n: f for n, f in self.samples[i].forms.items() if n in forms} for i in rest}
        hit = self.addresses[0]
        ordered = sorted(mappings, key=lambda m: not m.start <= hit < m.end)
        self._pass(pid, ordered, len(self.samples))

    def _pass(self, pid: int, mappings: List[Mapping], enough: int) -> None:
        """Stream the process's own memory through `look`; end early when `enough` or half of all is found."""
        memory = os.open("/proc/%d/mem" % pid, os.O_RDONLY | os.O_CLOEXEC)
        pagemap = os.open("/proc/%d/pagemap" % pid, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for mapping, private_only in candidates(mappings):
                self._mapping(memory, pagemap, mapping, private_only)
                if not self.left or self.cut or len(self.found) >= enough:
                    return
                if 2 * len(self.found) >= len(self.samples):
                    return
        finally:
            os.close(memory)
            os.close(pagemap)

    def _mapping(self, memory: int, pagemap: int, mapping: Mapping, private_only: bool) -> None:
        tail, tail_end = b"", 0
        for start, end in touched(pagemap, mapping, private_only):
            if self.budget.spent():
                self.cut = True
                return
            try:
                data = os.pread(memory, end - start, start)
            except OSError:
                continue
            self.scanned += len(data)
            joined = tail + data if tail_end == start else data
            self.look(joined, start - (len(joined) - len(data)))
            tail, tail_end = data[-(SAMPLE - 1) :], start + len(data)


Policy = Tuple[List[Sample], Json]


def search_process(pid: int, own_bytes: int, mappings: List[Mapping], chosen: Policy, budget: Budget) -> Json:
    """Evidence about one process: a holder has at least half of the samples in its own memory.

    `own_bytes`: resident anonymous and shared memory; `chosen`: what `read_policy` gave.
    """
    samples, policy = chosen
    inodes = {f["device_inode"][1] for f in policy["files"]}
    maps_it = any(m.is_file and m.inode in inodes for m in mappings)
    result: Json = {
        "maps_checkpoint": maps_it,
        "samples": len(samples),
        "found": 0,
        "holder": False,
        "bytes_scanned": 0,
    }
    if own_bytes * 64 < policy["bytes"]:
        result["skipped"] = "own memory is smaller than a 64th of the policy"
        return result
    search = Search(samples, budget)
    try:
        search.run(pid, mappings)
    except OSError as error:
        result["error"] = failure(error)
    forms = sorted(set(search.found.values()))
    result.update(found=len(search.found), bytes_scanned=search.scanned, forms=forms, cut_short=search.cut)
    result["holder"] = bool(samples) and 2 * len(search.found) >= len(samples)
    result["regions"] = _regions(search.addresses, mappings)
    return result


def _regions(addresses: List[int], mappings: List[Mapping]) -> List[Json]:
    hit = [m for m in mappings if any(m.start <= a < m.end for a in addresses)]
    return [{"bytes": m.size, "perms": m.perms, "name": text(m.path)} for m in hit[:16]]
