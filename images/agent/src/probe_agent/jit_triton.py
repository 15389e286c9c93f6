"""Triton's cache as ledger entries: what each group file leads to, and what live kernels were read from."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterable, List, Optional, Set

from .base import Json, attempt, clean
from .inside_triton import CHOSEN
from .jit_entry import MAX_ENTRIES, CacheDisk, cubin_identity, entry

GROUP = re.compile(r"^__grp__(.+)\.json$")
HEAD = re.compile(r"tt\.func public @[\w.$]+\((.*?)\)\s*(?:attributes|\{|->)", re.DOTALL)
ARGUMENT = re.compile(r"%(\w+): ((?:!tt\.ptr<.*?>+|[\w!.<>]+))(?: \{(.*?)\})?(?= loc\(|,|$| \{)")
LOC = re.compile(r'^#loc\d* = loc\("(/[^"]+)":\d+:\d+\)', re.MULTILINE)
INPUTS = ("source", "ttir", "ttgir", "llir", "ptx")
BINARIES = ("cubin", "hsaco")


class Held:
    """Live kernels by the files that they were read from; `complete`: no other kernel can be loaded."""

    def __init__(self, disk: CacheDisk, live: List[Json], complete: bool) -> None:
        self.complete = complete
        self.found: Set[int] = set()
        self.by_path: Dict[str, Json] = {}
        for row in live:
            for path in row.get("paths", {}).values():
                self.by_path.setdefault(disk.real(path) or path, row)

    def owner(self, paths: Iterable[str]) -> Optional[Json]:
        """The live kernel that was read from one of these files."""
        row = next((self.by_path[p] for p in paths if p in self.by_path), None)
        if row is not None:
            self.found.add(id(row))
        return row


def triton_entries(disk: CacheDisk, paths: List[str], live: List[Json], complete: bool) -> List[Json]:
    """One row per group file among `paths`; `live`: rows of `triton_state`, `complete`: they are all."""
    held = Held(disk, live, complete)
    rows: List[Json] = []
    for path in paths:
        match = GROUP.match(os.path.basename(path))
        if match and not match.group(1).endswith(".autotune") and len(rows) < MAX_ENTRIES:
            rows.append(_entry(disk, path, match.group(1), held))
    for row in live:
        if id(row) not in held.found and row.get("hash") and len(rows) < MAX_ENTRIES:
            rows.append(_only_live(disk, row))
    return rows


def _children(disk: CacheDisk, path: str) -> Dict[str, str]:
    """{name: real path} of a group file; ValueError when it is none."""
    group = disk.read_json(path)
    rows = group.get("child_paths") if isinstance(group, dict) else None
    if not isinstance(rows, dict):
        raise ValueError("no child_paths")
    pairs = [(clean(k, 300), v) for k, v in list(rows.items())[:64] if isinstance(v, str)]
    return {k: disk.real(v) or os.path.normpath(v) for k, v in pairs}


def _entry(disk: CacheDisk, path: str, name: str, held: Held) -> Json:
    folder = os.path.dirname(path)
    key = os.path.basename(folder)
    try:
        real = _children(disk, path)
    except (OSError, ValueError) as error:
        return entry("triton", name, path, error=clean("group file: %s" % error, 300), key=key)
    row = entry("triton", name, _binary(real), key=key)
    owner = held.owner(real.values())
    row["loaded"] = True if owner is not None else False if held.complete else None
    outside = sorted(p for p in real.values() if os.path.dirname(p) != folder)
    if outside:
        row["foreign"].append(clean("its group file leads to %s" % os.path.dirname(outside[0])))
    describe(disk, row, real, owner)
    if row["artifact"] and outside and row["origin"] != "gone":
        row["origin"] = "elsewhere"
    return row


def _only_live(disk: CacheDisk, row: Json) -> Json:
    """A kernel that a process holds and that no cache folder of the ledger leads to."""
    real = {k: disk.real(v) or v for k, v in row["paths"].items()}
    made = entry("triton", row["name"] or row["function"], _binary(real), key=row["hash"], loaded=True)
    describe(disk, made, real, row)
    if made["origin"] != "gone":
        made["origin"] = "elsewhere"
    place = made["artifact"] or "nowhere"
    made["foreign"].append(clean("read from %s, which no cache setting names" % place))
    return made


def _binary(paths: Dict[str, str]) -> Optional[str]:
    return next((p for p in paths.values() if p.endswith(tuple("." + s for s in BINARIES))), None)


def describe(disk: CacheDisk, row: Json, paths: Dict[str, str], live: Optional[Json]) -> None:
    """Fill hashes, specialization, compiler, origin; what a live kernel says wins over what files say."""
    by_suffix = {p.rpartition(".")[2]: p for p in paths.values()}
    for suffix in INPUTS:
        digest = disk.digest(by_suffix[suffix]) if suffix in by_suffix else None
        if digest:
            row["inputs"][suffix] = digest
    row["paths"] = {s: by_suffix[s] for s in ("ttir", "json") if s in by_suffix}
    text = disk.text(by_suffix["ttir"]) if "ttir" in by_suffix else ""
    row["specialization"] = dict(from_text(text), **_metadata(disk, by_suffix.get("json"), row))
    if row["artifact"]:
        row["sha256"] = disk.digest(row["artifact"])
        row["origin"] = disk.origin(row["artifact"])
        found = attempt(cubin_identity, disk.root + row["artifact"])
        if isinstance(found, tuple):
            row["code_sha256"] = found[0]
            row["compiler"] = _compiler(row["specialization"], found[1])
        elif row["origin"] != "gone":
            row["error"] = clean("artifact: %s" % found["error"], 300)
    if live is not None:
        row["specialization"].update(live["specialization"])
        _against_live(disk, row, live)
    _source_of(disk, row, text, live)


def _compiler(specialization: Json, tools: Optional[str]) -> str:
    version = specialization.get("triton_version")
    return "; ".join(part for part in ("triton %s" % version if version else "", tools or "") if part)


def _metadata(disk: CacheDisk, path: Optional[str], row: Json) -> Json:
    """Chosen keys of the metadata file."""
    if path is None:
        row["error"] = "its group file names no metadata"
        return {}
    try:
        data = disk.read_json(path)
        found = {k: data[k] for k in (*CHOSEN, "target") if k in data}
    except (OSError, ValueError, TypeError) as error:
        row["error"] = clean("metadata: %s" % error, 300)
        return {}
    return {k: v for k, v in found.items() if not isinstance(v, (list, dict)) or k == "target"}


def from_text(text: str) -> Json:
    """Signature and attributes as the cached IR shows them; constants are folded there, so not known."""
    head = HEAD.search(text[: 1 << 16])
    if head is None:
        return {}
    signature: Json = {}
    attributes: Json = {}
    for name, kind, more in ARGUMENT.findall(head.group(1)):
        signature[clean(name, 100)] = clean(kind, 200)
        attributes[clean(name, 100)] = clean(more, 200)
    found: Json = {"arguments": list(signature), "signature": signature, "attributes": attributes}
    return dict(found, constants=None, known_from="ttir")


def _against_live(disk: CacheDisk, row: Json, live: Json) -> None:
    """The bytes that a process handed to the driver against those that lie in the file now."""
    row["specialization"]["known_from"] = "process"
    row["specialization"]["function"] = live["function"]
    if live["binary_sha256"] and live["binary_sha256"] != row["sha256"]:
        row["stale"].append("the process holds other bytes than the file has now")
        row["file_sha256"] = row["sha256"]
        row["sha256"] = live["binary_sha256"]


def _source_of(disk: CacheDisk, row: Json, text: str, live: Optional[Json]) -> None:
    """Foreign when it was made from another file than the process runs, or from one that is not here."""
    match = LOC.search(text)
    if match is None:
        return
    made_from = clean(match.group(1))
    row["made_from"] = made_from
    if live is not None and live["file"].startswith("/"):
        if (disk.real(live["file"]) or live["file"]) != (disk.real(made_from) or made_from):
            row["foreign"].append(clean("made from %s, the process runs %s" % (made_from, live["file"])))
    elif disk.real(made_from) is None and row["origin"] != "this_run":
        row["foreign"].append(clean("made from %s, which is not here" % made_from))


def tuned_entries(disk: CacheDisk, paths: List[str], live: List[Json]) -> List[Json]:
    """The autotuner's choices: those that processes hold, and those that files pin for the next ones."""
    rows: List[Json] = []
    for path in paths:
        if path.endswith(".autotune.json") and not os.path.basename(path).startswith("__grp__"):
            rows.append(_pinned(disk, path))
    for choice in live[:1000]:
        known = {"key": choice["key"], "choice": choice["choice"]}
        made = entry("triton", choice["function"], None, specialization=known, loaded=True)
        rows.append(dict(made, key="autotune", origin="unknown"))
    return rows


def _pinned(disk: CacheDisk, path: str) -> Json:
    row = entry("triton", os.path.basename(path)[: -len(".autotune.json")], path, key="autotune")
    row.update(sha256=disk.digest(path), origin=disk.origin(path))
    try:
        data: Any = disk.read_json(path)
        timings = data["configs_timings"]
        best = min(timings, key=lambda pair: pair[1] if isinstance(pair[1], (int, float)) else min(pair[1]))
        choice = {k: v for k, v in best[0].items() if isinstance(v, (int, str, bool, dict))}
        row["specialization"] = {"key": clean(data.get("key"), 300), "choice": clean(choice, 1000)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        row["error"] = clean("autotune file: %s" % error, 300)
    return row
