"""Python requirements to wheels by hash: uv resolves for the image's Python, files go into the store."""

from __future__ import annotations

import re
import subprocess
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename

from tic_manifest.adapters import telling
from tic_manifest.adapters.pip_settings import PipSettings
from tic_manifest.adapters.wheels import Found, fetch
from tic_manifest.errors import PersonError, UnavailableError
from tic_manifest.model.lock import LockedFile
from tic_manifest.model.recipe import Python
from tic_manifest.ports import Progress, Store, Target

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_OLDEST_GLIBC = 5
_LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
_CREDENTIALS = re.compile(r"//[^/@\s]+@")
_LINES = 12


class UvResolver:
    """`ports.Resolver` with uv; `settings` are this machine's pip's."""

    def __init__(self, settings: PipSettings, progress: Progress, environment: Mapping[str, str]) -> None:
        self._settings, self._progress, self._environment = settings, progress, environment

    def check(self, python: Python) -> None:
        """Refuse what can be no requirement, before anything is downloaded. Raises PersonError RECIPE."""
        for key in ("runtime", "build", "exclude"):
            for text in getattr(python, key):
                _requirement(text, f"python.{key}")

    def resolve(
        self, requirements: Sequence[str], python: Python, target: Target, store: Store
    ) -> tuple[LockedFile, ...]:
        """Every wheel that installs for the requirements, sorted by name, each in the store.

        Raises UnavailableError RESOLVE with uv's words, TOOL_MISSING, NETWORK.
        """
        self._progress.say(f"python: resolving {len(requirements)} requirements")
        found = self._found(requirements, python, target)
        return fetch(found, self._settings, python.indexes, store, self._progress)

    def wheel(self, file: str, sha256: str, python: Python, target: Target, store: Store) -> LockedFile:
        """One wheel by file name and hash, without what it depends on. Raises UnavailableError RESOLVE."""
        name, version, _, _ = parse_wheel_filename(file)
        wanted = [f"{name}=={version}"]
        packages = self._packages(wanted, python, target, ("--no-deps",))
        for one in (wheel for package in packages for wheel in package.get("wheels", [])):
            if _file_name(one) == file:
                found = Found.of(str(name), str(version), file, one).expecting(sha256)
                return fetch([found], self._settings, python.indexes, store, self._progress)[0]
        raise UnavailableError(
            "RESOLVE",
            "the indexes that answer do not have this wheel",
            where=file,
            expected=sha256,
            remedy="name a wheel that an index has, or an index of the recipe that has it",
        )

    def _found(self, requirements: Sequence[str], python: Python, target: Target) -> list[Found]:
        tags = {tag: rank for rank, tag in enumerate(_tags(python.version, target))}
        packages = self._packages(requirements, python, target, ())
        return [_best(package, tags) for package in packages]

    def _packages(
        self, requirements: Sequence[str], python: Python, target: Target, options: Sequence[str]
    ) -> list[Any]:
        """uv's answer from the configured indexes; the recipe's own only where those have no solution."""
        try:
            return self._ask(requirements, python, target, options, ())
        except UnavailableError as first:
            if not python.indexes or first.code != "RESOLVE":
                raise
            self._progress.say("python: no solution on the configured indexes, asking the recipe's as well")
            return self._ask(requirements, python, target, options, python.indexes)

    def _ask(
        self,
        requirements: Sequence[str],
        python: Python,
        target: Target,
        options: Sequence[str],
        extra: Sequence[str],
    ) -> list[Any]:
        with tempfile.TemporaryDirectory(prefix="tic-uv-") as folder:
            place = Path(folder)
            _write(place / "in.txt", [str(_requirement(one, "python")) for one in requirements])
            _write(
                place / "never.txt",
                [
                    f"{_requirement(one, 'python.exclude').name}; sys_platform == 'never'"
                    for one in python.exclude
                ],
            )
            argv = self._argv(place, python, target, options)
            env = {**self._environment, **self._settings.uv_environment(extra), "UV_NO_PROGRESS": "1"}
            telling.program(argv)
            done = subprocess.run(argv, env=env, capture_output=True, text=True, cwd=folder, check=False)
            if done.returncode:
                raise _no_solution(done.stderr)
            packages: list[Any] = tomllib.loads((place / "pylock.toml").read_text()).get("packages", [])
            return packages

    def _argv(self, place: Path, python: Python, target: Target, options: Sequence[str]) -> list[str]:
        constraints = [word for file in self._settings.constraints for word in ("--constraints", file)]
        machine = MACHINES.get(target.architecture, target.architecture)
        return [
            uv_program(),
            "pip",
            "compile",
            "--quiet",
            "--no-config",
            "--color=never",
            "--format=pylock.toml",
            "--no-header",
            "--only-binary=:all:",
            "--index-strategy=unsafe-best-match",
            "--no-python-downloads",
            f"--python-version={python.version}",
            f"--python-platform={machine}-manylinux_2_{target.glibc}",
            f"--overrides={place / 'never.txt'}",
            f"--output-file={place / 'pylock.toml'}",
            *constraints,
            *(("--no-index",) if self._settings.no_index else ()),
            *options,
            str(place / "in.txt"),
        ]


def uv_program() -> str:
    """Where uv lies. Raises UnavailableError TOOL_MISSING."""
    try:
        import uv

        return str(uv.find_uv_bin())
    except (ImportError, FileNotFoundError) as error:
        raise UnavailableError(
            "TOOL_MISSING",
            "uv is not here: Python requirements are resolved with it",
            remedy="pip install 'tic-manifest[build]'",
        ) from error


def _requirement(text: str, where: str) -> Requirement:
    try:
        one = Requirement(text)
    except InvalidRequirement as error:
        raise PersonError(
            "RECIPE", f"{where}: no requirement", actual=text, expected="name, extras, versions (PEP 508)"
        ) from error
    if one.url:
        raise PersonError(
            "RECIPE",
            f"{where}: a requirement by address",
            actual=text,
            expected="a name and versions",
            remedy="name the version, and the index that has it under python.indexes",
        )
    return one


def _best(package: Mapping[str, Any], tags: Mapping[Tag, int]) -> Found:
    name, version = canonicalize_name(package["name"]), str(package.get("version", ""))
    ranked = []
    for wheel in package.get("wheels", []):
        file = _file_name(wheel)
        ranks = [tags[tag] for tag in parse_wheel_filename(file)[3] if tag in tags]
        if ranks:
            ranked.append((min(ranks), file, wheel))
    if not ranked:
        raise UnavailableError(
            "RESOLVE",
            f"{name} {version} has no wheel for this platform",
            where=name,
            expected="a wheel",
            actual=", ".join(_file_name(one) for one in package.get("wheels", [])) or "none",
            remedy="choose another version, or leave the distribution out under python.exclude",
        )
    _, file, wheel = min(ranked, key=lambda one: one[:2])
    return Found.of(str(name), version, file, wheel)


def _file_name(wheel: Mapping[str, Any]) -> str:
    from urllib.parse import unquote, urlsplit

    if wheel.get("name"):
        return str(wheel["name"])
    where = wheel.get("path") or unquote(urlsplit(str(wheel.get("url", ""))).path)
    return str(where).rpartition("/")[2]


def _tags(version: str, target: Target) -> Iterable[Tag]:
    """The tags that a CPython in the image installs, best first (PEP 425, PEP 600)."""
    major, minor = (int(part) for part in version.split("."))
    machine = MACHINES.get(target.architecture, target.architecture)
    platforms = []
    for glibc in range(target.glibc, _OLDEST_GLIBC - 1, -1):
        platforms.append(f"manylinux_2_{glibc}_{machine}")
        if glibc in _LEGACY:
            platforms.append(f"{_LEGACY[glibc]}_{machine}")
    platforms.append(f"linux_{machine}")
    abi = f"cp{major}{minor}"
    yield from cpython_tags((major, minor), abis=[abi], platforms=platforms)
    yield from compatible_tags((major, minor), interpreter=abi, platforms=platforms)


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _no_solution(said: str) -> UnavailableError:
    words = [_CREDENTIALS.sub("//***@", line.strip()) for line in said.splitlines() if line.strip()]
    network = any(word in said for word in ("Failed to fetch", "error sending request", "dns error"))
    return UnavailableError(
        "NETWORK" if network else "RESOLVE",
        "no set of wheels fits the requirements",
        actual=" / ".join(words[:_LINES]),
        remedy="change the requirement that the resolver names; where only a source distribution exists, "
        "choose a version with a wheel or leave it out under python.exclude",
    )
