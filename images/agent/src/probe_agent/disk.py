"""After the processes were seen: who owns what they loaded, read from the disk of their root."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Set, Tuple

from .base import Json, attempt, clean, digest_path, read_file, real_path, resolve_in_root
from .bytecode import compare_bytecode
from .imports import Swallowed, unloadable
from .jit_disk import compile_commands, compiler_rows, environ_of, guess_family, places, scan_caches
from .jit_ledger import build_ledger, ledger_paths
from .jit_names import name_kernels
from .ldso import Linker
from .order import order_dependent
from .owners import Owners, scan_distributions, unique_folders
from .places import add_rivals, archive_of
from .running import Running
from .undefined import Resolver, add_undefined

SITE_NAMES = ("/site-packages/", "/dist-packages/")


class Canon:
    """Real paths of files, folder by folder: a folder's links are followed once."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._folders: Dict[str, Optional[str]] = {}

    def __call__(self, path: str) -> str:
        """The path with its folder's links followed; unchanged when the folder is not there."""
        folder, _, name = path.rpartition("/")
        if folder not in self._folders:
            self._folders[folder] = resolve_in_root(self.root, folder or "/")
        real = self._folders[folder]
        return path if real is None else real.rstrip("/") + "/" + name


class Analysis:
    """Ownership and import findings of one root, over all views of it."""

    def __init__(self, root: str, report: Json, since: float, own_folders: Dict[str, str]) -> None:
        self.root = root
        self.report = report
        self.since = since
        self.own_folders = own_folders
        self.canon = Canon(root)
        self.hashes: Dict[str, Any] = {}
        self.processes = [p for s in report["snapshots"] for p in s["processes"] if "mapped" in p]
        self.files = [f for f in report["files"] if f["root"] == root]

    def run(self) -> None:
        """Fill the report: distributions, owners of files and modules, .pth, mounts, JIT, imports."""
        report = self.report
        report["distributions"] = scan_distributions(self.root, self.search_path())
        self.jit()
        pth = self.pth_files()
        compilers = compiler_rows(self.root, report["seen"], self.environ())
        running = [Running(self.root, view) for view in report["inside"] if "code" in view]
        foreign = {self.canon(file) for one in running for file in one.files()}
        foreign |= self.kernel_files() | ledger_paths(report["jit"])
        owners = Owners(self.root, self.wanted(pth, compilers) | foreign)
        owners.read_records(report["distributions"])
        owners.read_debian()
        self.own_files(owners)
        self.own_modules(owners)
        self.own_ledger(owners)
        self.code()
        self.running(running, owners)
        report["pth"] = [dict(row, owners=self.owned(owners, row["path"], row.get("sha256"))) for row in pth]
        rows = [dict(c, owners=self.owned(owners, self.canon(c["path"]), c.get("sha256"))) for c in compilers]
        report["jit"]["compilers"] = rows
        report["debian"] = [owners.debian[k] for k in sorted(owners.debian)]
        report["owner_errors"] = owners.errors[:100]
        report["mounts"] = self.mounts()
        report["preload"] = self.preload()
        views = [view for view in report["inside"] if view["modules"]]
        report["imports"] = [attempt(self.imports, view, owners) for view in views]

    def search_path(self) -> List[str]:
        """Import paths of every inside view, and the site folders that mapped files lie in."""
        found: Dict[str, None] = {}
        for view in self.report["inside"]:
            if isinstance(view.get("python"), dict):
                found.update(dict.fromkeys(view["python"].get("path", [])))
        for row in self.files:
            for mark in SITE_NAMES:
                if mark in row["path"]:
                    found.setdefault(row["path"][: row["path"].rindex(mark)] + mark.rstrip("/"))
        return list(found)

    def modules(self) -> List[Json]:
        """Module rows of all inside views."""
        views = [v.get("modules") for v in self.report["inside"]]
        return [m for v in views if isinstance(v, list) for m in v]

    def environ(self) -> Dict[str, str]:
        """Clear environment values of the processes, at exec and as Python sees them."""
        inside = [v.get("environ") for v in self.report["inside"]]
        return environ_of(*[p.get("environ") for p in self.processes], *inside)

    def jit(self) -> None:
        """List the caches that any view names, and those that mapped files lie in."""
        mapped = {f["path"] for f in self.files}
        folders = places(self.environ())
        for path in mapped | set(self._generated()):
            family = guess_family(path)
            if family is not None:
                folders.append((family, os.path.dirname(os.path.dirname(path))))
        rows, artifacts = scan_caches(self.root, folders, mapped, self.since)
        commands = compile_commands(self.report["seen"])
        name_kernels(self.root, artifacts)
        for artifact in artifacts:
            artifact["compiled_by"] = commands.get(artifact["path"])
        self.report["jit"] = {"places": rows, "artifacts": artifacts}
        mounts = [p["mounts"] for p in self.processes if isinstance(p.get("mounts"), list)]
        found = attempt(build_ledger, self.root, self.report, self.since, mounts, mapped)
        if "error" in found:
            self.report["notes"].append("JIT ledger: " + found["error"])
        else:
            self.report["jit"].update(found)

    def _generated(self) -> List[str]:
        views = [
            v["jit"].get("inductor", {}) for v in self.report["inside"] if isinstance(v.get("jit"), dict)
        ]
        return [p for v in views for p in v.get("python_modules", [])]

    def pth_files(self) -> List[Json]:
        """Every .pth of the search path: code or folders that the interpreter takes up before the program."""
        rows: List[Json] = []
        for site in unique_folders(self.root, self.search_path()):
            names = attempt(lambda s=site: sorted(n for n in os.listdir(self.root + s) if n.endswith(".pth")))
            for name in names[:500] if isinstance(names, list) else ():
                rows.append(attempt(self._pth, site + "/" + name) or {})
                rows[-1]["path"] = site + "/" + name
        return rows

    def _pth(self, path: str) -> Json:
        real = real_path(self.root, path)
        lines = read_file(real, 1 << 20).decode("utf-8", "replace").splitlines()
        lines = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        code = [clean(line, 200) for line in lines if line.startswith(("import ", "import\t"))]
        added = [clean(line, 300) for line in lines if not line.startswith(("import ", "import\t"))]
        return {"sha256": digest_path(real), "code_lines": code[:20], "added_paths": added[:20]}

    def wanted(self, pth: List[Json], compilers: List[Json]) -> Set[str]:
        """Every path that an owner is asked for."""
        found = {self.canon(f["path"]) for f in self.files if f["path"].startswith("/")}
        for module in self.modules():
            for path in (module.get("file"), module.get("origin")):
                if path and path.startswith("/"):
                    found.update((self.canon(path), archive_of(self.root, path) or self.canon(path)))
        return found | {row["path"] for row in pth} | {self.canon(row["path"]) for row in compilers}

    def owned(self, owners: Owners, path: str, sha256: Any) -> List[Json]:
        """Owners of one file, each with its verdict about the content: match, differs, unhashed."""
        rows = []
        for owner in owners.owners.get(path, []):
            if owner["kind"] == "dpkg":
                rows.append(dict(owner, record=owners.debian_verdict(owner["name"], path)))
            elif owner["recorded_sha256"] is None or not isinstance(sha256, str):
                rows.append(dict(owner, record="unhashed"))
            else:
                rows.append(dict(owner, record="match" if sha256 == owner["recorded_sha256"] else "differs"))
        return rows or self.other_owner(path)

    def other_owner(self, path: str) -> List[Json]:
        """Files of the run itself: agent and worker programs, inputs, outputs, JIT artifacts."""
        if path == "/etc/ld.so.cache":
            return [{"kind": "generated", "name": "libc-bin", "by": "ldconfig"}]
        for row in self.report["jit"]["artifacts"]:
            if row["path"] == path:
                return [
                    {"kind": "jit", "family": row["family"], "origin": row["origin"], "record": "unhashed"}
                ]
        for place in self.report["jit"]["places"]:
            if path.startswith(place["path"] + "/"):
                return [{"kind": "jit", "family": place["family"], "origin": "unknown", "record": "unhashed"}]
        for folder, kind in self.own_folders.items():
            if path == folder or path.startswith(folder.rstrip("/") + "/"):
                return [{"kind": kind}]
        return []

    def own_files(self, owners: Owners) -> None:
        """Owners of mapped files; memory that only looks like a file is its own kind."""
        for row in self.files:
            if row["runtime"]:
                row["owners"] = [{"kind": "runtime"}]
            else:
                row["owners"] = self.owned(owners, self.canon(row["path"]), row.get("sha256"))

    def own_modules(self, owners: Owners) -> None:
        """Owners and hash of the file of every loaded module; `on_disk` says when there is no such file."""
        for module in self.modules():
            path = module.get("file") or module.get("origin")
            if not path or not path.startswith("/"):
                continue
            real = self.canon(path)
            if real not in self.hashes:
                self.hashes[real] = attempt(digest_path, self.root + real)
            digest = self.hashes[real]
            module["on_disk"] = isinstance(digest, str)
            module["sha256"] = digest if module["on_disk"] else None
            module["owners"] = self.owned(owners, real, digest)
            archive = None if module["on_disk"] else archive_of(self.root, real)
            if archive is not None:
                digest = attempt(digest_path, self.root + archive)
                module.update(archive=archive, sha256=digest if isinstance(digest, str) else None)
                module["owners"] = self.owned(owners, archive, digest)

    def own_ledger(self, owners: Owners) -> None:
        """Which artifacts and sources of the ledger a wheel ships, and whether they are as it recorded."""
        for row in self.report["jit"].get("ledger", ()):
            row["records"] = {}
            for path, digest in [*row["inputs"].items(), (row["artifact"], row["sha256"])]:
                if path and path.startswith("/"):
                    for owner in self.owned(owners, self.canon(path), digest):
                        if owner["kind"] == "wheel":
                            row["records"][path] = owner["record"]

    def code(self) -> None:
        """Rivals of modules; byte code against source, in a run only where no package ships the source so."""
        for view in self.report["inside"]:
            if view["modules"]:
                attempt(add_rivals, self.root, view)
        whole = self.report["mode"] == "snapshot"
        rows = [
            m
            for m in self.modules()
            if whole or not any(o.get("record") == "match" for o in m.get("owners", []))
        ]
        attempt(compare_bytecode, self.root, [m for m in rows if m.get("on_disk")], self.report["notes"])

    def overrides(self) -> List[Json]:
        """Operators that Python registered again, over all views."""
        parts = [view.get("operators") for view in self.report["inside"]]
        rows = [p.get("overrides") for p in parts if isinstance(p, dict)]
        return [r for part in rows if isinstance(part, list) for r in part if isinstance(r, dict)]

    def kernel_files(self) -> Set[str]:
        """Files that registered them."""
        return {self.canon(r["file"]) for r in self.overrides() if str(r.get("file")).startswith("/")}

    def running(self, running: List[Running], owners: Owners) -> None:
        """`running` of each view with a scan; owners of the files that foreign code comes from."""
        for one in running:
            one.view["running"] = attempt(one.run)
            for row in one.view["running"].get("patched", []):
                row["expected"] = one.modules.get(row["module"], {}).get("owners", [])
                row["owners"] = self.owners_of(owners, row["file"])
        for row in self.overrides():
            row["owners"] = self.owners_of(owners, row["file"])

    def owners_of(self, owners: Owners, path: str) -> List[Json]:
        """Owners of a file by its name alone, its content compared too."""
        if not path.startswith("/"):
            return []
        real = self.canon(path)
        if real not in self.hashes:
            self.hashes[real] = attempt(digest_path, self.root + real)
        return self.owned(owners, real, self.hashes[real])

    def mounts(self) -> List[Json]:
        """Mounts of the processes with the code that each covers: shipped by a package, or by nobody."""
        points: Dict[str, Json] = {}
        for process in self.processes:
            for mount in process["mounts"] if isinstance(process["mounts"], list) else ():
                points[mount["mount_point"]] = dict(mount, covers=0, examples=[])
        order = sorted(points, key=len, reverse=True)
        for path in sorted(self.shipped()):
            under = [p for p in order if path == p or path.startswith(p.rstrip("/") + "/")]
            if under:
                row = points[under[0]]
                row.update(covers=row["covers"] + 1, examples=[*row["examples"], path][:5])
        return [points[point] for point in sorted(points)]

    def shipped(self) -> Set[str]:
        """Loaded code that should come from the image: not what the run itself made or was given."""
        own = {"jit", "output", "input", "runtime", "generated"}
        rows = [(f["path"], f.get("owners", [])) for f in self.files]
        rows += [(m["file"], m.get("owners", [])) for m in self.modules() if m.get("file")]
        return {path for path, owners in rows if not any(o["kind"] in own for o in owners)}

    def preload(self) -> Json:
        """/etc/ld.so.preload, which no environment variable shows."""
        try:
            content = read_file(real_path(self.root, "/etc/ld.so.preload"), 1 << 16)
        except FileNotFoundError:
            return {"file": None}
        except OSError as error:
            return {"file": None, "error": clean(error)}
        return {"file": content.decode("utf-8", "backslashreplace")}

    def imports(self, view: Json, owners: Owners) -> Json:
        """Swallowed import errors of one process: what cannot be loaded, which imports failed unseen."""
        pid = view["pid"]
        process = next(
            (p for p in self.processes if pid in (p["pid"], *p["status"].get("ns_pids", []))), None
        )
        mapped = {self.report["files"][r["file"]]["path"] for r in process["mapped"]} if process else set()
        environ = environ_of(process["environ"]) if process else {}
        linker = Linker(self.root, environ.get("LD_LIBRARY_PATH", "").split(":"), self.sonames(mapped))
        extensions = self.used_extensions(view, owners)
        linker.bundled = owners.bundled
        suffixes = view["python"].get("extension_suffixes")
        broken = unloadable(
            extensions, mapped, linker, suffixes if isinstance(suffixes, list) else [".abi3.so", ".so"]
        )
        report = Swallowed(self.root, view, broken).run()
        failed = attempt(add_undefined, report, extensions, Resolver(self.root, mapped, linker))
        report["errors"] += [failed["error"]] if failed else []
        rows = [row for row in self.files if row["path"] in mapped]
        bare = Linker(self.root, linker.library_path, {})
        report["order"] = order_dependent(rows, linker.loaded, bare)
        tried = {row["module"] for row in report["broken"]}
        report["unloadable"] = [dict(row, tried=row["module"] in tried) for row in broken[:500]]
        return dict(report, pid=pid, label=view["label"], view_of_process=process is not None)

    def sonames(self, mapped: Set[str]) -> Dict[str, str]:
        """Names under which mapped libraries answer: SONAME and file name."""
        found: Dict[str, str] = {}
        for row in self.files:
            if row["path"] in mapped:
                for name in ((row.get("elf") or {}).get("soname"), os.path.basename(row["path"])):
                    if name:
                        found.setdefault(name, row["path"])
        return found

    def used_extensions(self, view: Json, owners: Owners) -> List[Tuple[str, str, int]]:
        """(path, site, distribution) of every shared object of the wheels that this process uses."""
        used = {
            o["distribution"] for m in view["modules"] for o in m.get("owners", []) if o["kind"] == "wheel"
        }
        sites = self.report["distributions"]
        return [(path, sites[i]["site"], i) for i in sorted(used) for path in owners.extensions.get(i, [])]


def ownership(report: Json, processes: List[Json]) -> Json:
    """Share of the mapped file bytes of these processes that have an owner; every orphan by name.

    Memory that only looks like a file (memfd, shared memory) is counted apart.
    """
    pids = {p["pid"] for p in processes}
    sizes: Dict[int, int] = {}
    for row in [r for p in processes for r in p["mapped"]] + [
        r for r in report["appeared"] if r["pid"] in pids
    ]:
        sizes[row["file"]] = max(sizes.get(row["file"], 0), row["bytes"])
    kinds: Dict[str, Json] = {}
    orphans: List[Json] = []
    for index, size in sizes.items():
        row = report["files"][index]
        kind = row["owners"][0]["kind"] if row.get("owners") else "none"
        entry = kinds.setdefault(kind, {"files": 0, "bytes": 0})
        entry.update(files=entry["files"] + 1, bytes=entry["bytes"] + size)
        if kind == "none":
            orphans.append({"path": row["path"], "bytes": size, "sha256": row.get("sha256")})
    runtime = kinds.pop("runtime", {"files": 0, "bytes": 0})
    total = sum(k["bytes"] for k in kinds.values())
    orphans.sort(key=lambda o: (-o["bytes"], o["path"]))
    return {
        "mapped_bytes": total,
        "owned_bytes": total - sum(o["bytes"] for o in orphans),
        "files": sum(k["files"] for k in kinds.values()),
        "by_kind": kinds,
        "runtime": runtime,
        "orphans": orphans,
    }


def agent_file() -> str:
    """Path of the running agent (one file, once built)."""
    return os.path.realpath(__file__)
