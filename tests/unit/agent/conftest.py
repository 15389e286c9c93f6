"""Loads the agent as it ships: the one generated file, by path."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
AGENT = ROOT / "images" / "agent" / "probe_agent.py"


def load_agent() -> ModuleType:
    """The agent's module, loaded once."""
    name = "tic_probe_agent_under_test"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, AGENT)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def agent() -> ModuleType:
    """The agent under test."""
    return load_agent()
