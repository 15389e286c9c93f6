"""Debian roots: packages resolved by apt, the root made by the engine out of the stored packages alone."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tic_manifest.adapters import apt, deb, seed
from tic_manifest.adapters.layout_read import platform_digest, whole
from tic_manifest.adapters.store import place, required
from tic_manifest.model.base import Digest
from tic_manifest.model.lock import DebianRoot
from tic_manifest.model.recipe import Debian
from tic_manifest.ports import Engine, ImageBuild, Progress, Store

_ARCHITECTURES = {debian: oci for oci, debian in apt.ARCHITECTURES.items()}


class DebianBuilder:
    """`ports.DebianRoots`; `recipe` is the folder of Dockerfile.debian and debian_root.sh."""

    def __init__(self, engine: Engine, recipe: Path, epoch: int, progress: Progress) -> None:
        self._engine, self._recipe, self._epoch, self._progress = engine, recipe, epoch, progress

    def resolve(self, debian: Debian, architecture: str, store: Store) -> DebianRoot:
        """Every package of the root by version and hash, each in the store; see `apt.resolve`."""
        return apt.resolve(debian, architecture, store, self._progress)

    def make(self, root: DebianRoot, store: Store, target: Path) -> Digest:
        """Write the root as an OCI layout at `target`; the digest of its platform manifest.

        A whole layout that is there is kept. Raises UnavailableError BLOB_MISSING, ENGINE_FAILED.
        """
        if whole(target):
            return platform_digest(target)
        self._progress.say(f"debian {root.suite}: making a root of {len(root.packages)} packages")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".root-", dir=target.parent) as folder:
            made = self._build(root, store, Path(folder))
            shutil.rmtree(target, ignore_errors=True)
            made.rename(target)
        return platform_digest(target)

    def _build(self, root: DebianRoot, store: Store, folder: Path) -> Path:
        contexts = {name: folder / name for name in (".", "debs", "scripts")}
        contexts["."] = folder / "seed"
        for path in contexts.values():
            path.mkdir()
        for name in ("Dockerfile.debian", "debian_root.sh"):
            shutil.copyfile(self._recipe / name, contexts["scripts"] / name)
        _packages(root, store, contexts)
        self._engine.build(
            ImageBuild(
                dockerfile=contexts["scripts"] / "Dockerfile.debian", target="root",
                contexts={name: str(path) for name, path in contexts.items()}, arguments={}, labels={},
                platform=f"linux/{_ARCHITECTURES.get(root.architecture, root.architecture)}",
                epoch=self._epoch, destination=folder / "layout", kind="oci", log=folder / "log",
            )
        )  # fmt: skip
        return folder / "layout"


def _packages(root: DebianRoot, store: Store, contexts: dict[str, Path]) -> None:
    files = {}
    for one in root.packages:
        path = required(store, f"sha256:{one.sha256}", one.file)
        place(path, contexts["debs"] / one.file)
        files[path] = one.file
    groups = seed.batches({path: deb.control(path) for path in files})
    seed.write(groups[0], contexts["."] / "seed.tar")
    for number, group in enumerate(groups):
        lines = "".join(f"./{files[path]}\n" for path in group)
        (contexts["debs"] / f"batch-{number:03d}").write_text(lines)
