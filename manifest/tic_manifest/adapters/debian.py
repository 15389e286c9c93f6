"""Debian roots: packages resolved by apt, the root made by the engine out of the stored packages alone."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tic_manifest.adapters import apt, deb, seed
from tic_manifest.adapters.layout_read import platform_digest, whole
from tic_manifest.adapters.store import required
from tic_manifest.formats.canonical import canonical_digest, plain
from tic_manifest.model.base import Digest
from tic_manifest.model.lock import EPOCH, DebianRoot
from tic_manifest.model.recipe import Debian
from tic_manifest.ports import Engine, ImageBuild, Progress, Store

FILES = ("Dockerfile.debian", "debian_root.sh")


class DebianBuilder:
    """Makes Debian roots; `environment` is what apt is run with."""

    def __init__(self, engine: Engine, progress: Progress, environment: Mapping[str, str]) -> None:
        self._engine, self._progress, self._environment = engine, progress, environment

    def resolve(self, debian: Debian, architecture: str, store: Store) -> DebianRoot:
        """Every package of the root by version and hash, each in the store; see `apt.resolve`."""
        return apt.resolve(debian, architecture, store, self._progress, self._environment)

    def make(self, root: DebianRoot, store: Store, folder: Path, scripts: Path) -> tuple[Path, Digest]:
        """The root as an OCI layout below `folder`, under the digest of all that it follows from.

        `scripts` holds Dockerfile.debian and debian_root.sh. A whole layout that is there is kept.
        Raises UnavailableError BLOB_MISSING, ENGINE_FAILED.
        """
        target = folder / _key(root, scripts).removeprefix("sha256:")
        if not whole(target):
            self._make(root, store, target, scripts)
        return target, platform_digest(target)

    def _make(self, root: DebianRoot, store: Store, target: Path, scripts: Path) -> None:
        self._progress.say(f"debian {root.suite}: making a root of {len(root.packages)} packages")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".root-", dir=target.parent) as scratch:
            made = self._build(root, store, Path(scratch), scripts)
            shutil.rmtree(target, ignore_errors=True)
            made.rename(target)

    def _build(self, root: DebianRoot, store: Store, scratch: Path, scripts: Path) -> Path:
        contexts = {".": scratch / "seed", "debs": scratch / "debs", "scripts": scratch / "scripts"}
        for path in contexts.values():
            path.mkdir()
        for name in FILES:
            shutil.copyfile(scripts / name, contexts["scripts"] / name)
        _packages(root, store, contexts)
        self._engine.build(
            ImageBuild(
                dockerfile=contexts["scripts"] / FILES[0],
                target="root",
                arguments={},
                labels={},
                contexts={name: str(path) for name, path in contexts.items()},
                platform=f"linux/{apt.OCI_NAMES.get(root.architecture, root.architecture)}",
                epoch=EPOCH,
                destination=scratch / "layout",
                kind="oci",
                log=scratch / "log",
                rewrite=True,
            )
        )
        return scratch / "layout"


def _key(root: DebianRoot, scripts: Path) -> Digest:
    texts = {name: (scripts / name).read_text(encoding="utf-8") for name in FILES}
    return canonical_digest({"root": plain(root), "scripts": texts, "epoch": EPOCH})


def _packages(root: DebianRoot, store: Store, contexts: Mapping[str, Path]) -> None:
    files = {}
    for one in root.packages:
        digest = f"sha256:{one.sha256}"
        store.place(digest, contexts["debs"] / one.file, one.file)
        files[required(store, digest, one.file)] = one.file
    groups = seed.batches({path: deb.control(path) for path in files})
    seed.write(groups[0], contexts["."] / "seed.tar")
    for number, group in enumerate(groups):
        lines = "".join(f"./{files[path]}\n" for path in group)
        (contexts["debs"] / f"batch-{number:03d}").write_text(lines, encoding="utf-8")
