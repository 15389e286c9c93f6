"""The mini delivery for integration tests: made once a session, by the tool itself."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "images/recipes/mini.yaml"
TOOL = [sys.executable, "-m", "tic_manifest"]
STAGES = ("gate", "build", "probe", "validate")
DIGEST = r"sha256:[0-9a-f]{64}"


@dataclass(frozen=True)
class Delivery:
    """A work folder after `image`, with the recipe that it was made from."""

    work: Path
    recipe: Path
    out: str
    env: dict[str, str]

    def digest(self, label: str) -> str:
        found = re.search(rf"^{label} digest: ({DIGEST})$", self.out, re.M)
        assert found, f"no line '{label} digest' in\n{self.out}"
        return found[1]

    @property
    def reference(self) -> str:
        return f"oci:{self.work / 'layout'}@{self.digest('platform manifest')}"

    def receipts(self) -> dict[str, tuple[int, int]]:
        folder = self.work / "receipts" / self.digest("lock")
        return {path.stem: (path.stat().st_mtime_ns, path.stat().st_ino) for path in folder.glob("*.json")}


def tool(env: dict[str, str], *argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TOOL, *argv], env=env, text=True, capture_output=True, timeout=600, cwd=ROOT, **options
    )


def image(env: dict[str, str], recipe: Path, work: Path) -> Delivery:
    ran = tool(env, "image", str(recipe), "--work", str(work))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return Delivery(work, recipe, ran.stdout, env)


def verify(delivery: Delivery, *more: str, reference: str = "") -> tuple[int, dict[str, Any]]:
    ran = tool(delivery.env, "verify", reference or delivery.reference, "--output", "json", *more)
    return ran.returncode, json.loads(ran.stdout)


def codes(report: dict[str, Any]) -> set[str]:
    return {one["code"].partition("/")[0] for one in report["findings"]}
