"""An engine, the demo forge and one mini delivery, for every integration test that asks for them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from mini import RECIPE, ROOT, Delivery, image


@pytest.fixture(scope="session")
def mini_env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An environment in which an engine and the demo forge answer; what we started is ended."""
    root = tmp_path_factory.mktemp("forge")
    subprocess.run([ROOT / "scripts/engine", "up"], check=True, capture_output=True)
    said = subprocess.run([ROOT / "scripts/engine", "env"], check=True, capture_output=True, text=True).stdout
    host = re.search(r"DOCKER_HOST=(\S+)", said)
    up = [ROOT / "scripts/demo-forge", "up", "--set", "mini", "--root", str(root)]
    clean = {key: value for key, value in os.environ.items() if key != "TIC_FORGE_MAP"}
    made = subprocess.run(up, check=True, capture_output=True, text=True, env=clean)
    clean["TIC_FORGE_MAP"] = made.stdout.strip().splitlines()[-1]
    yield clean | ({"DOCKER_HOST": host[1].strip("'\"")} if host else {})
    subprocess.run(
        [ROOT / "scripts/demo-forge", "down", "--root", str(root)], check=True, capture_output=True
    )


@pytest.fixture(scope="session")
def delivery(mini_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Delivery:
    folder = tmp_path_factory.mktemp("delivery")
    recipe = Path(shutil.copy(RECIPE, folder / "mini.yaml"))
    return image(mini_env, recipe, folder / "work")
