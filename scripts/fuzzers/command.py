"""`tic-manifest verify` in this process, on a whole delivery in which one document or blob is another.

Where a document is replaced, every digest above it is made to fit, so that its own reader sees the bytes.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from layouts import digest_of
from tic_manifest.cli.app import run

from fuzzers import ROOT

ALLOWED = {0, 1, 2, 3, 4}
PARTS = (
    "index.json",
    "oci-layout",
    "index",
    "manifest",
    "config",
    "layer",
    "statement",
    "evidence",
    "policy",
)
DEPTHS = ("identity", "content", "files")


class Command:
    """A delivery, and the inputs that replace a part of it: byte 0 the part, byte 1 the depth."""

    def __init__(self) -> None:
        self.code = 0
        self._opened: list[str] = []
        self._watching = False

    def prepare(self, folder: Path) -> None:
        """Make the delivery that is spoiled, below `folder`, and watch what is opened from now on."""
        from delivered import Delivered

        self._root = folder / "work"
        self._root.mkdir()
        with contextlib.chdir(self._root):
            self._made = Delivered()
            self._made.close()
            self._made.deliver()
            self._made.policy()
        shutil.copytree(self._root, folder / "whole")
        self._whole = folder / "whole"
        self._names = {name: self._original(name) for name in PARTS}
        self.run(self._input("policy"))  # every module is loaded before anything is watched
        self._reads = (
            str(folder),
            sys.prefix,
            sys.base_prefix,
            str(ROOT),
            "/dev/null",
            "/proc",
            "/etc",
        )
        sys.addaudithook(self._audit)

    def seeds(self) -> Iterator[bytes]:
        """Each part as it is, at each depth."""
        for depth in range(len(DEPTHS)):
            for name in PARTS:
                yield self._input(name, depth)

    def _input(self, name: str, depth: int = 2) -> bytes:
        return bytes([PARTS.index(name), depth]) + self._names[name]

    def run(self, data: bytes) -> None:
        """Judge the spoiled delivery; raises on another exit code, a socket, or a path outside."""
        if len(data) < 2:
            return
        name, depth = PARTS[data[0] % len(PARTS)], DEPTHS[data[1] % len(DEPTHS)]
        self._opened = []
        try:
            reference = self._spoil(name, data[2:])
            argv = ["--progress", "none", "verify", "--offline", "--depth", depth, "--output", "json"]
            code, said = self._judge([*argv, "--policy", str(self._root / "policy.yaml"), reference])
        finally:
            self._restore()
        self.code = code
        self.look(code, said)

    def _judge(self, argv: list[str]) -> tuple[int, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            self._watching = True
            try:
                code = run(argv)
            finally:
                self._watching = False
        return code, out.getvalue() + err.getvalue()

    def look(self, code: int, said: str) -> None:
        """Raises for an exit code, a traceback or a path that must not be."""
        if code not in ALLOWED:
            lines = [line for line in said.splitlines() if line.startswith(("  File", "Traceback"))]
            last = [line for line in said.splitlines() if "Error" in line][-1:]
            raise AssertionError(f"exit {code} {last} {lines[-1:]}")
        if "Traceback" in said:
            raise AssertionError("a traceback with an allowed exit code")
        if self._opened:
            raise AssertionError(f"outside the root: {self._opened[:3]}")

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._watching:
            return
        if event in {"socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system"}:
            self._opened.append(event)
        elif event == "open" and isinstance(arguments[0], str | bytes):
            path = os.path.abspath(os.fsdecode(arguments[0]))
            if not path.startswith(self._reads):
                self._opened.append(path)

    def _original(self, name: str) -> bytes:
        if name in {"index.json", "oci-layout"}:
            return (self._root / "layout" / name).read_bytes()
        if name == "policy":
            return (self._root / "policy.yaml").read_bytes()
        return self._path(self._digest(name)).read_bytes()

    def _digest(self, name: str) -> str:
        image = json.loads(self._path(self._made.image["digest"]).read_bytes())
        named = {
            "index": self._made.index["digest"], "manifest": self._made.image["digest"],
            "config": image["config"]["digest"], "layer": image["layers"][0]["digest"],
            "statement": self._layer("application/vnd.in-toto+json", 0),
            "evidence": digest_of(self._made.files["receipts/build.json"]),
        }  # fmt: skip
        return named[name]

    def _layer(self, kind: str, number: int) -> str:
        found = [one for one in self._documents() if one.get("artifactType") == kind]
        return str(found[number]["layers"][0]["digest"])

    def _documents(self) -> Iterator[dict[str, Any]]:
        for path in sorted((self._root / "layout" / "blobs" / "sha256").iterdir()):
            with contextlib.suppress(ValueError, UnicodeDecodeError):
                data = json.loads(path.read_bytes())
                if isinstance(data, dict):
                    yield data

    def _path(self, digest: str) -> Path:
        return self._root / "layout" / "blobs" / "sha256" / digest.removeprefix("sha256:")

    def _spoil(self, name: str, raw: bytes) -> str:
        """Put the bytes in the place of a part; the reference of the image afterwards."""
        layout = self._root / "layout"
        if name in {"index.json", "oci-layout"}:
            (layout / name).write_bytes(raw)
        elif name == "policy":
            (self._root / "policy.yaml").write_bytes(raw)
        elif name in {"evidence", "statement"}:
            return f"oci:{layout}@{self._replaced(name, raw)}"
        else:
            return f"oci:{layout}@{self._rebuilt(name, raw)}"
        return f"oci:{layout}@{self._made.index['digest']}"

    def _rebuilt(self, name: str, raw: bytes) -> str:
        """New bytes of a document of the image, and the documents above it made to fit; the top's digest."""
        if name in {"config", "layer"}:
            manifest = json.loads(self._names["manifest"])
            entry = manifest["config"] if name == "config" else manifest["layers"][0]
            entry["digest"], entry["size"] = self._put(raw), len(raw)
            raw = json.dumps(manifest).encode()
        elif name == "index":
            return self._put(raw)
        index = json.loads(self._names["index"])
        index["manifests"][0]["digest"], index["manifests"][0]["size"] = self._put(raw), len(raw)
        return self._put(json.dumps(index).encode())

    def _replaced(self, name: str, raw: bytes) -> str:
        """New bytes of what is attached; the artifacts, their lists and index.json are made to fit."""
        renamed = {self._digest(name): (self._put(raw), len(raw))}
        for _ in range(4):
            for path in sorted((self._root / "layout" / "blobs" / "sha256").iterdir()):
                self._rename(path, renamed)
        entries = self._root / "layout" / "index.json"
        entries.write_bytes(_with(entries.read_bytes(), renamed) or entries.read_bytes())
        return str(self._made.index["digest"])

    def _rename(self, path: Path, renamed: dict[str, tuple[str, int]]) -> None:
        digest = "sha256:" + path.name
        if digest in renamed or digest == self._made.index["digest"] or path.stat().st_size > 1 << 16:
            return
        raw = _with(path.read_bytes(), renamed)
        if raw is not None:
            renamed[digest] = (self._put(raw), len(raw))

    def _put(self, raw: bytes) -> str:
        digest = digest_of(raw)
        self._path(digest).write_bytes(raw)
        return digest

    def _restore(self) -> None:
        shutil.rmtree(self._root)
        shutil.copytree(self._whole, self._root)


def _with(raw: bytes, renamed: dict[str, tuple[str, int]]) -> bytes | None:
    """A JSON document with descriptors of renamed blobs made to fit; None where it names none of them."""
    if not any(digest.encode() in raw for digest in renamed):
        return None
    try:
        data = json.loads(raw)
    except ValueError:
        return None
    _fit(data, renamed)
    made = json.dumps(data).encode()
    return made if made != raw else None


def _fit(data: Any, renamed: dict[str, tuple[str, int]]) -> None:
    if isinstance(data, dict):
        named = data.get("digest")
        if isinstance(named, str) and named in renamed:
            data["digest"], data["size"] = renamed[named]
        for value in data.values():
            _fit(value, renamed)
    elif isinstance(data, list):
        for value in data:
            _fit(value, renamed)
