"""The probe's bench: where it lies, what asks for it, and that a broken one is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from probebench import main as bench
from scenarios import main as command_line
from scenarios.folder import Scenario


def test_its_name_says_what_it_is_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIC_PROBE_BENCH", raising=False)
    monkeypatch.setenv("TIC_PROBE_BENCH_ROOT", str(tmp_path))
    assert bench.place().parent == tmp_path
    assert bench.name_of(b"torch==1\n") != bench.name_of(b"torch==2\n")


def test_path_says_where_and_that_it_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIC_PROBE_BENCH", str(tmp_path))
    assert bench.main(["path"]) == 3
    (tmp_path / "ready").write_text("")
    assert bench.main(["path"]) == bench.main(["up"]) == 0
    assert capsys.readouterr().out.splitlines() == [str(tmp_path)] * 3
    assert bench.main(["purge"]) == 3 and (tmp_path / "ready").exists()


def test_wrong_use_is_said() -> None:
    assert bench.main([]) == bench.main(["down"]) == 2


@pytest.mark.parametrize(("needs", "expected"), [("probe-bench\n", True), ("other\n", False), (None, False)])
def test_a_scenario_asks_for_it(needs: str | None, expected: bool, tmp_path: Path) -> None:
    if needs is not None:
        (tmp_path / "needs").write_text(needs)
    assert Scenario("one", tmp_path).needs_bench is expected


def test_without_it_no_scenario_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIC_TIME_SCALE", "1")
    monkeypatch.setenv("TIC_PROBE_BENCH", str(tmp_path / "none"))
    (tmp_path / "expect.json").write_text('{"exit": 0}')
    (tmp_path / "needs").write_text("probe-bench\n")
    assert command_line.main([str(tmp_path)]) == 3
    assert "no whole bench" in capsys.readouterr().err


def test_every_version_is_pinned() -> None:
    lines = [one for one in bench.REQUIREMENTS.read_text().splitlines() if not one.startswith("#")]
    assert len(lines) > 20 and all(one.count("==") == 1 for one in lines)
