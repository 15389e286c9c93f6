"""The report shows trainer beside rollout: every difference with both sides, or why there is nothing to show."""

from __future__ import annotations

import copy
import json
from typing import Any

import deliveries as d
from observations import A, B, clean_report
from tic_manifest.model.document import Entry, Facts
from tic_manifest.model.receipt import ProbeBody
from tic_manifest.stages.report import document

RECIPE = d.RECIPE.replace(
    b"workers:\n",
    b"workers:\n  watch_a: {stage: probe, role: rollout, command: [a]}\n"
    b"  watch_b: {stage: probe, role: trainer, command: [b]}\n",
)


def observation(role: str, libc: str) -> dict[str, Any]:
    data = copy.deepcopy(clean_report())
    data["role"] = role
    data["files"][1]["sha256"] = libc
    return data


def entry(recipe: bytes, *seen: dict[str, Any]) -> Entry:
    loaded = d.lock(recipe)
    outputs = {f"watch_{key}": json.dumps(one).encode() for key, one in zip("ab", seen, strict=False)}
    runs = tuple(
        d.run(name, {"probe.json": raw}, role=json.loads(raw)["role"], command=(name[-1],))
        for name, raw in outputs.items()
    )
    files = d.evidence(loaded) | {f"runs/{name}/probe.json": raw for name, raw in outputs.items()}
    files["receipts/probe.json"] = d.receipt(loaded, ProbeBody(runs=runs))
    made = document(files, d.image(loaded), None)
    blocks = [block for section in made.sections for block in section.blocks if isinstance(block, Facts)]
    return next(f.entry for block in blocks for f in block.facts if f.label == "Trainer beside rollout")


def test_a_difference_is_shown_with_both_sides() -> None:
    shown = entry(RECIPE, observation("rollout", A), observation("trainer", B))
    assert shown.text.startswith("fail: rollout beside trainer: 1 differences, not declared: libc")
    (line,) = shown.lines
    assert line.startswith("fail, library family libc: rollout: [")
    assert f"sha256:{A} (dpkg libc6 2.36)" in line and f'trainer: ["/usr/lib/libc.so.6 sha256:{B}' in line


def test_equal_roles_say_so() -> None:
    shown = entry(RECIPE, observation("rollout", A), observation("trainer", A))
    assert shown.text == "pass: rollout beside trainer: 0 differences, none undeclared in code"
    assert shown.lines == ("nothing differs",)


def test_one_role_or_an_unseen_one_is_not_run() -> None:
    assert entry(d.RECIPE).text == "not run: the recipe does not probe two roles"
    assert entry(RECIPE, observation("rollout", A)).text == "not run: no process of trainer was looked at"
