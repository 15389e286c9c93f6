"""The parts of a build as values: contexts, keys, requirements, the Dockerfile, the disk that it takes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tic_manifest.errors import RefusedError, UnavailableError
from tic_manifest.formats.canonical import canonical_digest, plain
from tic_manifest.formats.lock import LoadedLock
from tic_manifest.model.base import Digest
from tic_manifest.model.lock import EPOCH, Lock, LockedPullRequest, Material
from tic_manifest.model.recipe import PullRequest
from tic_manifest.ports import Store
from tic_manifest.stages.lock import sizes
from tic_manifest.stages.materials import AGENT, DOCKERFILE, SCRIPTS, WORKERS, lay_out

LABEL = "org.tic-manifest.lock"
MARK = "# @recipe-env@\n"
_WHEEL = re.compile(
    r"^(?P<name>[A-Za-z0-9_.]+)-(?P<version>[A-Za-z0-9_.!+]+)(?:-[0-9][^-]*)?-[^-]+-[^-]+-[^-]+\.whl$"
)
_WHEEL_SCRIPTS = ("tools.py", "wheel.py", "git_tree.py")

_UNPACKED = 5
"""Wheels unpack to about five times their size (seen: 760 MB to 3.9 GB)."""
_MARGIN = 1.2


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Where the parts of one build lie. `base` and `builder` are layouts by digest, as buildx takes them."""

    scratch: Path
    project: Path
    log: Path
    tools: Path
    scripts: Path
    no_cache: bool
    base: str
    builder: str
    base_layout: Path
    base_digest: Digest
    builder_digest: Digest
    described: str

    def contexts(self, **folders: Path) -> dict[str, str]:
        """Contexts of one call; those that the target does not use are an empty folder."""
        empty = str(folder(self.scratch / "empty"))
        known = dict.fromkeys(("source", "precompiled", "wheels", "parts"), empty)
        given = {name: str(path) for name, path in folders.items()}
        fixed = {
            "base": self.base,
            "builder": self.builder,
            "tools": str(self.tools),
            "scripts": str(self.scripts),
        }
        return {**known, **fixed, **given}


def folder(path: Path) -> Path:
    """A folder with the same mode whatever the umask: modes of contexts reach layers."""
    path.mkdir(parents=True, exist_ok=True)
    os.chmod(path, 0o755)  # noqa: S103
    return path


def lay_out_project(materials: Iterable[Material], store: Store, project: Path) -> None:
    """The project's files as the lock names them."""
    lay_out(materials, store, project)


def agent_and_workers(plan: Plan) -> Path:
    """The context of the last layer as it lies in the image: /opt/tic with agent and workers."""
    root = folder(plan.scratch / "parts")
    tic = folder(folder(root / "opt") / "tic")
    _copy(plan.project / AGENT, tic / Path(AGENT).name)
    folder(tic / "workers")
    for path in sorted((plan.project / WORKERS).rglob("*")):
        target = tic / "workers" / path.relative_to(plan.project / WORKERS)
        folder(target) if path.is_dir() else _copy(path, target)
    return root


def wheel_arguments(pull: LockedPullRequest, given: PullRequest) -> dict[str, str]:
    """Build arguments of a wheel; see images/build/wheel.py."""
    links = {one.path: one.commit for one in pull.submodules}
    return {
        "TREE": pull.head_tree,
        "SUBDIRECTORY": given.subdirectory or ".",
        "SUBMODULES": json.dumps(links, sort_keys=True),
        "WHEEL_ENV": json.dumps(dict(given.build.env), sort_keys=True),
    }


def wheel_key(pull: LockedPullRequest, plan: Plan, loaded: LoadedLock) -> Digest:
    """The digest of everything that a wheel follows from."""
    given = loaded.recipe.pull_requests[pull.name]
    scripts = {one.name: one.sha256 for one in loaded.lock.materials}
    used = [f"{SCRIPTS}/{name}" for name in _WHEEL_SCRIPTS]
    return canonical_digest(
        {
            "arguments": wheel_arguments(pull, given),
            "builder": plan.builder_digest,
            "epoch": EPOCH,
            "platform": loaded.recipe.platform,
            "precompiled": plain(given.precompiled) if given.precompiled else None,
            "scripts": {name: scripts.get(name) for name in used},
            "tools": [plain(one) for one in loaded.lock.python.build],
        }
    )


def requirements(files: Iterable[tuple[str, Digest]]) -> str:
    """`name==version --hash=sha256:…` for wheel file names with their digests, sorted.

    Raises RefusedError CONFLICT where two wheels are the same distribution.
    """
    rows: dict[str, str] = {}
    for file, digest in files:
        found = _WHEEL.match(file)
        if found is None:
            raise RefusedError("WHEEL_HASH", "not the name of a wheel", where=file)
        name = re.sub(r"[-_.]+", "-", found["name"]).lower()
        if name in rows:
            raise UnavailableError(
                "RESOLVE",
                f"two wheels are the distribution {name}",
                where=file,
                expected="one",
                actual=f"{rows[name]} and {found['version']}",
                remedy="a pull request builds it: leave it out of python.runtime, or under python.exclude",
            )
        rows[name] = f"{name}=={found['version']} --hash={digest}"
    return "".join(f"{row}\n" for _, row in sorted(rows.items()))


def dockerfile(template: str, env: Mapping[str, str]) -> str:
    """The Dockerfile with the recipe's variables at its mark. Raises RefusedError SCHEMA."""
    if template.count(MARK) != 1:
        raise RefusedError(
            "SCHEMA", "the Dockerfile has not exactly one mark", where=DOCKERFILE, expected=MARK.strip()
        )
    lines = "".join(f"ENV {name}={_quoted(value)}\n" for name, value in sorted(env.items()))
    return template.replace(MARK, lines)


def hermetic(text: str) -> bool:
    """Whether every RUN of a Dockerfile names the network `none`."""
    joined = text.replace("\\\n", " ")
    runs = [line for line in joined.splitlines() if re.match(r"^\s*RUN\b", line, re.I)]
    return bool(runs) and all("--network=none" in line.split() for line in runs)


def check_disk(lock: Lock, work: Path, engine: Path | None, free: Callable[[Path], int]) -> None:
    """Refuse before starting. Raises UnavailableError DISK_FULL with both numbers."""
    needed = disk_needed(lock)
    for name, place in (("work", work), ("engine", engine)):
        if place is not None and free(place) < needed[name]:
            raise UnavailableError(
                "DISK_FULL",
                "not enough free disk to build",
                where=str(place),
                expected=f"{needed[name]} bytes free",
                actual=f"{free(place)} bytes",
                remedy=f"free {needed[name] - free(place)} bytes, or put it on another disk",
            )


def disk_needed(lock: Lock) -> dict[str, int]:
    """Bytes that a build takes in the work folder and in the engine, with a margin."""
    size = sizes(lock)
    wheels = size["runtime"] + size["build"]
    work = 2 * wheels + 4 * size["debian"]
    engine = 2 * _UNPACKED * wheels + 3 * size["runtime"] + 12 * size["debian"]
    return {"work": int(work * _MARGIN), "engine": int(engine * _MARGIN)}


def _quoted(value: str) -> str:
    """A value in double quotes as the Dockerfile's own rules read it."""
    for char in '\\"$':
        value = value.replace(char, f"\\{char}")
    if re.search(r"[\x00-\x1f\x7f]", value):
        raise RefusedError("ENV_INJECTION", "a variable holds a control character", actual=repr(value))
    return f'"{value}"'


def _copy(source: Path, target: Path) -> None:
    target.write_bytes(source.read_bytes())
    os.chmod(target, 0o644)
