"""One scenario from an empty folder to a verdict."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scenarios import process
from scenarios.expect import Seen, differences
from scenarios.folder import BrokenError, Scenario, read_json, substitute
from scenarios.forge import Forge
from scenarios.httpd import Server
from scenarios.registry import Registry
from scenarios.script import Script

MAKE_SECONDS, UP_SECONDS, COMMAND_SECONDS = 120.0, 60.0, 300.0
REPORT_KEYS = frozenset({"outcome", "must", "must_not", "subjects"})
FORGE_NAME = "https://forge.invalid"


@dataclass(frozen=True)
class Options:
    """How scenarios are run. `tool` is the program whose arguments `command.json` holds."""

    replay: bool = False
    mergeable_null: bool = False
    keep: bool = False
    tool: tuple[str, ...] = (sys.executable, "-m", "tic_manifest")


@dataclass(frozen=True)
class Result:
    """What came of a scenario: no problem means that it passed."""

    name: str
    problems: tuple[str, ...]
    seconds: float
    requests: int = 0
    kept: Path | None = None


@dataclass
class _Place:
    """The folders and servers of one run."""

    root: Path
    mark: str
    tool: tuple[str, ...]
    names: dict[str, str] = field(default_factory=dict)
    servers: list[Server] = field(default_factory=list)
    closed: bool = False

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def requests(self) -> list[str]:
        return [line for server in self.servers for line in server.log]


def run(scenario: Scenario, options: Options) -> Result:
    """Run one scenario; whatever happens inside it is its own failure."""
    start = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="tic-scenario-"))
    place = _Place(root, root.name, options.tool)
    try:
        problems = _run(scenario, options, place)
    except (BrokenError, OSError, ValueError) as error:
        problems = [f"the scenario cannot be run: {error}"]
    except Exception:
        problems = ["the runner failed", *traceback.format_exc().splitlines()[-6:]]
    finally:
        _close(place)
    if problems and options.keep:
        (root / "requests.log").write_text("\n".join(place.requests) + "\n")
    else:
        shutil.rmtree(root, ignore_errors=True)
    kept = root if root.exists() else None
    return Result(scenario.name, tuple(problems), time.monotonic() - start, len(place.requests), kept)


def _run(scenario: Scenario, options: Options, place: _Place) -> list[str]:
    expect, argv = scenario.expected(), scenario.argv()
    place.work.mkdir()
    (place.root / "home").mkdir()
    forge, registry = _serve(place, options)
    _make(scenario, place)
    place.names |= _vars(place)
    up = _up(scenario, place)
    try:
        _script(scenario, place, forge, registry)
        argv = substitute(argv, place.names, place.work)
        wanted = bool(REPORT_KEYS & set(expect)) or _is_gate(argv)
        seen = _command(argv, place, "first", _record(argv, place, options), report=wanted)
    finally:
        if up:
            up.end()
    problems = differences(substitute(expect, place.names, place.work), seen)
    problems += _left(place)
    if problems:
        return [*problems, *_shown(seen)]
    return _replay(argv, place, seen) if options.replay and _is_gate(argv) else []


def _serve(place: _Place, options: Options) -> tuple[Forge, Registry]:
    forge = Forge(place.work, nulls=options.mergeable_null)
    registry = Registry(place.root / "registry", place.work)
    place.servers = [Server(forge.answer), Server(forge.answer), Server(registry.answer)]
    urls = [server.url for server in place.servers]
    # References carry no scheme (contract, section 3), so in argv the registry is HOST:PORT.
    place.names = {
        "work": str(place.work),
        "forge": urls[0],
        "git": urls[1],
        "registry": place.servers[2].address,
    }
    (place.root / "map.json").write_text(json.dumps({FORGE_NAME: urls[0]}))
    return forge, registry


def _script(scenario: Scenario, place: _Place, forge: Forge, registry: Registry) -> None:
    api = substitute(scenario.json("api.json", {}), place.names, place.work)
    told = substitute(scenario.json("registry.json", {}), place.names, place.work)
    forge.use(Script(api))
    registry.script = Script(told)


def _environment(place: _Place, part: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "GITHUB_", "GH_"))}
    return kept | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(place.root / "home"),
        "TIC_FORGE_MAP": str(place.root / "map.json"),
        process.MARK: f"{place.mark}-{part}",
        "NO_PROXY": "127.0.0.1,localhost",
        "LC_ALL": "C.UTF-8",
    }


def _make(scenario: Scenario, place: _Place) -> None:
    make = scenario.path / "make"
    if not os.access(make, os.X_OK):
        raise BrokenError("`make` is not there or not executable")
    servers = {
        key: server.url for key, server in zip(("FORGE", "GIT", "REGISTRY"), place.servers, strict=True)
    }
    done = process.run(
        [str(make)], place.work, _environment(place, "make") | servers, MAKE_SECONDS, place.root / "make"
    )
    if done.status != 0:
        tail = (done.stderr or done.stdout).strip().splitlines()[-5:]
        raise BrokenError(f"`make` ended with {done.status}: {' | '.join(tail)}")


def _vars(place: _Place) -> dict[str, str]:
    told = read_json(place.work / "vars.json", {})
    if not isinstance(told, dict):
        raise BrokenError("vars.json is not an object")
    return {str(key): str(value) for key, value in told.items()}


def _up(scenario: Scenario, place: _Place) -> process.Up | None:
    program = scenario.path / "up"
    if not program.exists():
        return None
    servers = {
        key: server.url for key, server in zip(("FORGE", "GIT", "REGISTRY"), place.servers, strict=True)
    }
    up = process.Up([str(program)], place.work, _environment(place, "up") | servers, place.root / "up.err")
    if problem := up.wait_ready(UP_SECONDS):
        up.end()
        raise BrokenError(problem)
    place.names |= _vars(place)
    return up


def _record(argv: list[str], place: _Place, options: Options) -> list[str]:
    return ["--record", str(place.root / "record")] if options.replay and _is_gate(argv) else []


def _command(argv: list[str], place: _Place, name: str, extra: list[str], *, report: bool) -> Seen:
    """Run the tool; where a JSON report is wanted and not asked for, options that add one."""
    added, target = _outputs(argv, place.root / f"{name}.json") if report else ([], place.root / "none")
    done = process.run(
        [*place.tool, *argv, *added, *extra],
        place.work,
        _environment(place, "command"),
        COMMAND_SECONDS,
        place.root / name,
    )
    raw = done.stdout.encode() if target is None else _bytes(place.work / target)
    return Seen(done.status, done.stdout, done.stderr, raw, place.work)


def _outputs(argv: list[str], report: Path) -> tuple[list[str], Path | None]:
    """Options to add, and the file of the JSON report: None is standard output."""
    asked = [value.removeprefix("--output=") for value in _output_values(argv)]
    for value in asked:
        form, _, target = value.partition("=")
        if form == "json":
            return [], Path(target) if target else None
    text = [] if any("=" not in value for value in asked) else ["--output", "text"]
    return [*text, "--output", f"json={report}"], report


def _output_values(argv: list[str]) -> list[str]:
    after = [argv[at + 1] for at, one in enumerate(argv[:-1]) if one == "--output"]
    return after + [one for one in argv if one.startswith("--output=")]


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _is_gate(argv: list[str]) -> bool:
    """Whether the run is one that a recording can repeat: a gate that changes nothing and records nothing."""
    return "gate" in argv and not {"--record", "--replay", "--repin-equal"} & set(argv)


def _replay(argv: list[str], place: _Place, first: Seen) -> list[str]:
    """The recorded run again with nothing that answers: same exit code, same bytes."""
    _close(place)
    if (place.work / ".tic").exists() and not any(".tic" in one for one in argv):
        (place.work / ".tic").rename(place.root / "tic-first")
    again = _command(argv, place, "again", ["--replay", str(place.root / "record")], report=True)
    problems = []
    if again.status != first.status:
        problems.append(f"replay: exit {again.status}, the first run {first.status}")
    if not first.raw:
        problems.append("replay: there is no JSON report to compare")
    if again.raw != first.raw:
        problems.append(f"replay: the JSON report differs at {_first_difference(first.report, again.report)}")
    return [*problems, *_shown(again)] if problems else []


def _first_difference(left: Any, right: Any, where: str = "$") -> str:
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        differing = [key for key in left if left[key] != right[key]]
        return (
            _first_difference(left[differing[0]], right[differing[0]], f"{where}.{differing[0]}")
            if differing
            else where
        )
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for at, (one, other) in enumerate(zip(left, right, strict=True)):
            if one != other:
                return _first_difference(one, other, f"{where}[{at}]")
    return f"{where}: {str(left)[:300]} / {str(right)[:300]}"


def _left(place: _Place) -> list[str]:
    """Processes of the command, of `make` or of `up` that are still there; they are ended."""
    problems = []
    for part in ("command", "make", "up"):
        if pids := process.left_behind(f"{place.mark}-{part}"):
            process.kill_all(pids)
            problems.append(f"{len(pids)} processes of `{part}` were left behind")
    return problems


def _shown(seen: Seen) -> list[str]:
    return [f"  | {line}" for line in [*seen.stdout.splitlines()[-25:], *seen.stderr.splitlines()[-15:]]]


def _close(place: _Place) -> None:
    for server in [] if place.closed else place.servers:
        server.close()
    place.closed = True
