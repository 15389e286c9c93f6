"""The runner judged by scenarios that must pass and scenarios that must not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from scenarios import main as command_line
from scenarios.folder import Scenario, find
from scenarios.process import left_behind
from scenarios.runner import Options, run

MAKE = "#!/bin/sh\nset -e\n"
EXPLAIN = '["explain", "STACKED_SHA"]'


def _scenario(root: Path, name: str = "one", **files: str) -> Scenario:
    folder = root / name
    folder.mkdir(parents=True)
    told = {"make": MAKE, "command.json": EXPLAIN, "expect.json": '{"exit": 0}'} | files
    for file, text in told.items():
        path = folder / file.replace("_json", ".json")
        path.write_text(text)
        path.chmod(0o755)
    return Scenario(name, folder)


def _problems(root: Path, **files: str) -> str:
    return "\n".join(run(_scenario(root, **files), Options()).problems)


def test_a_scenario_that_holds_passes(tmp_path: Path) -> None:
    assert _problems(tmp_path, expect_json='{"exit": 0, "contains": ["STACKED_SHA"]}') == ""


MUST_FAIL: list[tuple[dict[str, str], str]] = [
    ({"expect_json": '{"exit": 1}'}, "exit: expected 1, was 0"),
    ({"expect_json": '{"exit": 0, "contains": ["no such words"]}'}, "contains: output lacks"),
    ({"expect_json": '{"exit": 0, "not_contains": ["STACKED_SHA"]}'}, "not_contains: output has"),
    ({"expect_json": '{"exit": 0, "must_nto": ["X"]}'}, "unknown keys: must_nto"),
    ({"expect_json": "{}"}, "at least the key `exit`"),
    ({"expect_json": "{"}, "expect.json is not JSON"),
    ({"command_json": '"explain"'}, "command.json is not a list"),
    ({"make": MAKE + "echo broken >&2; exit 5\n"}, "`make` ended with 5: broken"),
    ({"make": MAKE + "echo '[]' > vars.json\n"}, "vars.json is not an object"),
    ({"up": "#!/bin/sh\necho nearly\n"}, "`up` ended with 0 before it printed `ready`"),
    ({"api.json": '{"GET /x": [{"until": "never"}]}'}, "unknown `until`"),
    ({"api.json": '{"GET /${sha:no:main}": []}'}, "names no commit"),
]


@pytest.mark.parametrize(("files", "said"), MUST_FAIL)
def test_what_is_wrong_fails_and_is_said(files: dict[str, str], said: str, tmp_path: Path) -> None:
    assert said in _problems(tmp_path, **files)


def test_what_make_leaves_in_its_group_is_ended(tmp_path: Path) -> None:
    assert _problems(tmp_path, make=MAKE + f"sleep 300 & echo $! > {tmp_path}/pid\n") == ""
    assert not _alive(int((tmp_path / "pid").read_text()))


def test_a_make_that_is_not_executable_fails(tmp_path: Path) -> None:
    scenario = _scenario(tmp_path)
    (scenario.path / "make").chmod(0o644)
    assert "not there or not executable" in run(scenario, Options()).problems[0]


def test_make_starts_in_an_empty_folder_with_the_servers_up(tmp_path: Path) -> None:
    make = MAKE + (
        '[ -z "$(ls -A)" ]\n'
        "python3 - <<END\nimport os, urllib.request\n"
        'for name in ("FORGE", "GIT", "REGISTRY"):\n'
        '    assert os.environ[name].startswith("http://127.0.0.1:")\n'
        'assert urllib.request.urlopen(os.environ["REGISTRY"] + "/v2/").status == 200\n'
        'assert urllib.request.urlopen(os.environ["FORGE"] + "/rate_limit").status == 200\nEND\n'
        'echo \'{"code": "STACKED_BASE"}\' > vars.json\n'
    )
    expect = '{"exit": 0, "contains": ["{code}"], "files": {"vars.json": "STACKED"}, "absent": ["touched"]}'
    assert _problems(tmp_path, make=make, command_json='["explain", "{code}"]', expect_json=expect) == ""


UP = """#!/bin/sh
sleep 300 &
echo $$ > up.pid; echo $! > child.pid
echo '{"code": "STACKED_BASE"}' > vars.json
echo ready
wait
"""


def test_up_is_waited_for_and_ended_with_its_whole_group(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    up = UP.replace("echo ready", f"cat up.pid child.pid > {note}; echo ready")
    expect = '{"exit": 0, "contains": ["STACKED_BASE"]}'
    assert _problems(tmp_path, up=up, command_json='["explain", "{code}"]', expect_json=expect) == ""
    pids = [int(line) for line in note.read_text().split()]
    assert len(pids) == 2
    assert not [pid for pid in pids if _alive(pid)]


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_process_that_leaves_its_group_is_found_and_ended(tmp_path: Path) -> None:
    make = MAKE + "setsid sleep 300 >/dev/null 2>&1 &\nsleep 0.3\n"
    assert "1 processes of `make` were left behind" in _problems(tmp_path, make=make)


def test_left_behind_sees_only_the_mark() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"],
                             env=dict(os.environ, TIC_SCENARIO_MARK="unit-mark"))  # fmt: skip
    time.sleep(0.2)
    try:
        assert left_behind("unit-mark") == [child.pid]
        assert left_behind("another") == []
    finally:
        child.kill()
        child.wait()


def test_the_work_folder_goes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _problems(tmp_path, make=MAKE + f"pwd > {tmp_path}/where\n") == ""
    assert not Path((tmp_path / "where").read_text().strip()).exists()


LINES: list[tuple[list[dict[str, str]], int, str]] = [
    ([], 1, "0 passed, 0 failed"),
    ([{}], 0, "1 passed, 0 failed"),
    ([{}, {"expect_json": '{"exit": 9}'}], 1, "1 passed, 1 failed"),
]


@pytest.mark.parametrize(("scenarios", "code", "last"), LINES)
def test_the_last_line_and_the_exit_code(
    scenarios: list[dict[str, str]], code: int, last: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for at, files in enumerate(scenarios):
        _scenario(tmp_path, f"s{at}", **files)
    assert command_line.main([str(tmp_path), "-j", "2"]) == code
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_a_folder_that_is_not_there_is_wrong_use(tmp_path: Path) -> None:
    assert command_line.main([str(tmp_path / "gone")]) == 2


def test_every_scenario_below_is_found_once(tmp_path: Path) -> None:
    for name in ("b/one", "a", "b/two"):
        _scenario(tmp_path, name)
    names: list[Any] = [one.name for one in find([tmp_path, tmp_path / "b"])]
    assert names == ["a", "b/one", "b/two"]


TOOL = """
import json, pathlib, sys, urllib.error, urllib.request
argv = sys.argv[1:]
after = lambda name: argv[argv.index(name) + 1]
target = [one for one in argv if one.startswith("json=")][0].removeprefix("json=")
report = {"outcome": "pass", "exitCode": 0, "findings": [], "tip": 0}
if "--replay" in argv:
    assert pathlib.Path(after("--replay"), "answers").read_text() == "200"
    assert not pathlib.Path(".tic").exists()
    try:
        urllib.request.urlopen(after("--forge"))
        sys.exit(9)
    except urllib.error.URLError:
        REPLAYED
else:
    pathlib.Path(".tic").mkdir()
    pathlib.Path(after("--record")).mkdir()
    status = urllib.request.urlopen(after("--forge")).status
    pathlib.Path(after("--record"), "answers").write_text(str(status))
pathlib.Path(target).write_text(json.dumps(report))
sys.exit(report["exitCode"])
"""
REPLAYS = [
    ("pass", ""),
    ("report['tip'] = 1", "replay: the JSON report differs at $.tip: 0 / 1"),
    ("report['exitCode'] = 1", "replay: exit 1, the first run 0"),
    ("target = '/dev/null'", "replay: the JSON report differs"),
]


@pytest.mark.parametrize(("replayed", "said"), REPLAYS)
def test_a_replay_has_no_servers_and_must_give_the_same_bytes(
    replayed: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "tool.py").write_text(TOOL.replace("REPLAYED", replayed))
    scenario = _scenario(tmp_path, command_json='["gate", "--forge", "{forge}/rate_limit"]')
    options = Options(replay=True, tool=(sys.executable, str(tmp_path / "tool.py")))
    found = run(scenario, options).problems
    assert (found == ()) if not said else found[0].startswith(said), found


def test_without_replay_nothing_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text("import sys; sys.exit('--record' in sys.argv)")
    scenario = _scenario(tmp_path, command_json='["gate", "recipe"]')
    assert run(scenario, Options(tool=(sys.executable, str(tmp_path / "tool.py")))).problems == ()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_a_signal_ends_everything_and_leaves_nothing(number: int, code: int, tmp_path: Path) -> None:
    up = UP.replace("echo ready", f"cat up.pid child.pid > {tmp_path}/pids; echo ready")
    _scenario(
        tmp_path / "all", make=MAKE + f"pwd > {tmp_path}/where\n", up=up.replace("echo ready", "sleep 60")
    )
    program = Path(command_line.__file__).parents[1] / "run-scenarios"
    runner = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path / "all")], stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # the shell may have us ignore it
    )  # fmt: skip
    for _ in range(200):
        if (tmp_path / "pids").is_file() and (tmp_path / "pids").read_text().count("\n") == 2:
            break
        time.sleep(0.05)
    runner.send_signal(number)
    assert runner.wait(30) == code
    assert not [pid for pid in map(int, (tmp_path / "pids").read_text().split()) if _alive(pid)]
    assert not Path((tmp_path / "where").read_text().strip()).exists()
