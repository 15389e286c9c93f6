"""Who ships a file: wheels by their RECORD, Debian packages by dpkg's lists."""

from __future__ import annotations

import base64
import binascii
import csv
import io
import json
import os
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from .base import (
    MAX_RECORD,
    Json,
    attempt,
    clean,
    digest_path,
    failure,
    read_file,
    real_path,
    resolve_in_root,
    text,
)

USRMERGE = ("/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/", "/libx32/")
MAX_DISTRIBUTIONS = 5000


def record_digest(field: str) -> Optional[str]:
    """`sha256=<urlsafe base64>` of a RECORD row as hex; None for an empty or other hash."""
    if not field.startswith("sha256="):
        return None
    value = field[7:]
    try:
        raw = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    return raw.hex() if len(raw) == 32 else None


def record_rows(path: str) -> Iterator[Tuple[str, Optional[str]]]:
    """(path as written, sha256 or None) of each row of a RECORD."""
    raw = read_file(path, MAX_RECORD).decode("utf-8", "surrogateescape")
    for row in csv.reader(io.StringIO(raw)):
        if row and row[0]:
            yield row[0], record_digest(row[1]) if len(row) > 1 else None


def metadata_names(path: str) -> Tuple[str, str]:
    """Name and Version from the head of METADATA or PKG-INFO."""
    found = {"name": "", "version": ""}
    for line in text(read_file(path, 8 << 20), 64 << 10).splitlines():
        key, colon, value = line.partition(":")
        if not line.strip():
            break
        if colon and key.lower() in found and not found[key.lower()]:
            found[key.lower()] = clean(value.strip(), 200)
    return found["name"], found["version"]


def editable_kind(root: str, folder: str) -> Optional[str]:
    """`direct_url` for a PEP 660 or pip editable install, with no URL: it may carry a password."""
    try:
        value = json.loads(read_file(real_path(root, folder + "/direct_url.json"), 1 << 20))
        return "direct_url" if value.get("dir_info", {}).get("editable") is True else None
    except (OSError, ValueError, AttributeError):
        return None


def one_distribution(root: str, site: str, name: str) -> Json:
    """Facts about one installed distribution."""
    folder = site + "/" + name
    meta = "METADATA" if name.endswith(".dist-info") else "PKG-INFO"
    row: Json = {"name": name, "version": "", "path": clean(folder), "site": clean(site), "editable": None}
    target = root + (resolve_in_root(root, folder) or folder)
    if name.endswith(".egg-link"):
        return dict(
            row, name=name[: -len(".egg-link")], editable="egg-link", installer=None, record_sha256=None
        )
    names = attempt(metadata_names, os.path.join(target, meta) if os.path.isdir(target) else target)
    row.update(zip(("name", "version"), names) if isinstance(names, tuple) else names)
    row["editable"] = editable_kind(root, folder)
    installer = attempt(read_file, target + "/INSTALLER", 4096)
    row["installer"] = text(installer).strip() if isinstance(installer, bytes) else None
    digest = attempt(digest_path, target + "/RECORD")
    row["record_sha256"] = digest if isinstance(digest, str) else None
    return row


def scan_distributions(root: str, places: List[str]) -> List[Json]:
    """Every distribution installed in the given folders, in search order; duplicates stay, the first wins."""
    found: List[Json] = []
    for site in unique_folders(root, places):
        try:
            names = sorted(os.listdir(root + site))
        except OSError:
            continue
        wanted = [n for n in names if n.endswith((".dist-info", ".egg-info", ".egg-link"))]
        found += [one_distribution(root, site, n) for n in wanted[: MAX_DISTRIBUTIONS - len(found)]]
    return found


def unique_folders(root: str, places: List[str]) -> List[str]:
    """Real paths of the places that exist, first occurrence first."""
    seen: Dict[str, None] = {}
    for place in places:
        real = resolve_in_root(root, place) if place.startswith("/") else None
        if real is not None:
            seen.setdefault(real)
    return list(seen)


class Owners:
    """For a set of wanted files: which wheels and Debian packages say that they ship it."""

    def __init__(self, root: str, wanted: Set[str]) -> None:
        self.root = root
        self.wanted = wanted
        self.owners: Dict[str, List[Json]] = {}
        self.extensions: Dict[int, List[str]] = {}
        self.bundled: Dict[str, str] = {}
        self.errors: List[str] = []
        self.debian: Dict[str, Json] = {}
        self._md5: Dict[str, Dict[str, str]] = {}

    def read_records(self, distributions: List[Json]) -> None:
        """Match every RECORD row against the wanted files; remember the extension modules of each wheel."""
        for index, row in enumerate(distributions):
            if row.get("record_sha256"):
                try:
                    self._record(index, row)
                except (OSError, csv.Error, ValueError) as error:
                    self.errors.append(failure(error))

    def _record(self, index: int, row: Json) -> None:
        site = row["site"]
        for name, digest in record_rows(real_path(self.root, row["path"] + "/RECORD")):
            full = name if name.startswith("/") else site + "/" + name
            full = os.path.normpath(full) if ".." in full or "//" in full else full
            if ".so" in full and full.rpartition("/")[2].find(".so") > 0:
                self.bundled.setdefault(full.rpartition("/")[2], full)
            if full.endswith(".so"):
                self.extensions.setdefault(index, []).append(full)
            if full in self.wanted:
                owner = {
                    "kind": "wheel",
                    "name": row["name"],
                    "version": row["version"],
                    "distribution": index,
                }
                self.owners.setdefault(full, []).append(dict(owner, recorded_sha256=digest))

    def read_debian(self) -> None:
        """Match dpkg's file lists, in both spellings that a merged /usr has."""
        try:
            folder = real_path(self.root, "/var/lib/dpkg/info")
            names = sorted(n for n in os.listdir(folder) if n.endswith(".list"))
        except OSError as error:
            self.errors.append("dpkg: " + failure(error))
            return
        spellings = {alias: path for path in self.wanted for alias in merged_spellings(path)}
        for name in names[:20_000]:
            hits = attempt(lambda n=name: self._list(folder + "/" + n, spellings))
            for path in hits if isinstance(hits, set) else ():
                self.owners.setdefault(path, []).append({"kind": "dpkg", "name": name[: -len(".list")]})
        self._versions()

    def _list(self, path: str, spellings: Dict[str, str]) -> Set[str]:
        lines = read_file(path).decode("utf-8", "surrogateescape").split("\n")
        return {spellings[line] for line in lines if line in spellings}

    def _versions(self) -> None:
        used = {o["name"] for owners in self.owners.values() for o in owners if o["kind"] == "dpkg"}
        status = attempt(lambda: read_file(real_path(self.root, "/var/lib/dpkg/status"), 128 << 20))
        known = parse_status(status) if isinstance(status, bytes) else {}
        for name in used:
            package, _, arch = name.partition(":")
            self.debian[name] = (
                known.get((package, arch)) or known.get((package, "")) or {"name": package, "version": None}
            )
        for owners in self.owners.values():
            for owner in owners:
                if owner["kind"] == "dpkg":
                    owner["version"] = self.debian[owner["name"]]["version"]

    def debian_verdict(self, package: str, path: str) -> str:
        """The file against the package's own md5 list: match, differs, unhashed."""
        if package not in self._md5:
            raw = attempt(lambda: read_file(real_path(self.root, "/var/lib/dpkg/info/%s.md5sums" % package)))
            lines = raw.decode("utf-8", "surrogateescape").split("\n") if isinstance(raw, bytes) else []
            self._md5[package] = {"/" + line[34:]: line[:32] for line in lines if len(line) > 34}
        known = [self._md5[package][p] for p in merged_spellings(path) if p in self._md5[package]]
        if not known:
            return "unhashed"
        digest = attempt(digest_path, self.root + path, "md5")
        return "match" if digest == known[0] else "differs"


def merged_spellings(path: str) -> List[str]:
    """/usr/lib/x and /lib/x name one file where /usr is merged; dpkg may know either."""
    if path.startswith("/usr") and path[4:].startswith(USRMERGE):
        return [path, path[4:]]
    return [path, "/usr" + path] if path.startswith(USRMERGE) else [path]


def parse_status(raw: bytes) -> Dict[Tuple[str, str], Json]:
    """dpkg's status: {(package, architecture or ""): {"name", "version", "architecture"}}."""
    found: Dict[Tuple[str, str], Json] = {}
    for stanza in raw.decode("utf-8", "replace").split("\n\n"):
        fields: Dict[str, Any] = {}
        for line in stanza.split("\n"):
            key, colon, value = line.partition(": ")
            if colon and key in ("Package", "Version", "Architecture", "Source"):
                fields[key] = value.strip()
        if "Package" in fields:
            row = {
                "name": fields["Package"],
                "version": fields.get("Version"),
                "architecture": fields.get("Architecture"),
            }
            row["source"] = fields.get("Source")
            found[(fields["Package"], fields.get("Architecture", ""))] = row
            found.setdefault((fields["Package"], ""), row)
    return found
