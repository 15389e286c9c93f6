"""The fuzzer behind `scripts/fuzz`: targets with their oracles, seeds, the process that fuzzes, its parent.

The kit of the tests, which makes whole deliveries, is put on the path here.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / folder) for folder in ("tests/scenarios/lib", "tests/kit", "tests/unit")]
