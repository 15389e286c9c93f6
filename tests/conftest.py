"""Nothing of the caller's own set-up reaches a test."""

from __future__ import annotations

import os

for _name in [
    name for name in os.environ if name.startswith("TIC_") and name not in {"TIC_ENGINE_ROOT", "TIC_E2E_WORK"}
]:
    del os.environ[_name]
