"""Reports for tests: a delivery with nothing, one that was measured, and ways to find a place in a report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import deliveries as d
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.delivery import Statement
from tic_manifest.model.document import Document, Entry, Facts, Grid
from tic_manifest.model.receipt import ProbeBody, ValidateBody
from tic_manifest.stages.assemble import Earlier, assemble
from tic_manifest.stages.report import document

EVIL = "x|`y`\x1b[31m\n## <b>h</b> @octocat {{ 7*7 }} </code></td> \u202e"

RECIPE = d.RECIPE.replace(
    b"    - {id: cross,",
    b"    - {id: again, kind: inference_only, left: rollout/scores, right: repeat/scores, scope_limitation: one}\n"
    b"    - {id: packed, kind: inference_only, left: rollout/scores, right: reversed/scores,"
    b" treatment: packing reversed, scope_limitation: two}\n"
    b"    - {id: graded, kind: cross_stack, left: rollout/scores, right: trainer/scores_grad,"
    b" scope_limitation: three}\n"
    b"    - {id: cross,",
).replace(
    b"workers:\n",
    b"workers:\n"
    b"  repeat: {stage: validate, role: rollout, command: [rollout]}\n"
    b"  reversed: {stage: validate, role: rollout, command: [rollout, --packing, reversed]}\n",
)


def empty() -> Document:
    loaded = d.lock(RECIPE)
    return document({"lock.json": loaded.raw}, d.image(loaded), None)


def batches(*steps: tuple[int, ...]) -> list[list[dict[str, Any]]]:
    return [[{"request": "0", "tokens": tokens} for tokens in step] for step in steps]


def trainer_files(**changes: Any) -> dict[str, bytes]:
    facts = {"calls": 1, "requires_grad": True, "any_requires_grad": True, "grad_fn": ["SumBackward0"]}
    quiet = {"calls": 1, "requires_grad": False, "any_requires_grad": False, "grad_fn": []}
    files = d.scores("trainer", -1.0, -2.0)
    record = json.loads(files["record.json"])
    tensors = {
        "w": {"grad_norm": 0.5, "grad_finite": True, "changed": 3, "count": 4, "update_norm": 0.25},
        "n": {"grad_norm": None, "grad_finite": False, "changed": 0, "count": 4, "update_norm": 0.0},
    }
    record |= {
        "scores_grad": dict(record["scores"]) | {"file": "scores_grad.bin"}, "grad": facts, "no_grad": quiet, "backends": {"gemm": ["mm"]},
        "update": {"tensors": tensors, "tensors_changed": 1, "tensors_total": 2}, "quantity": "raw logprob",
    } | changes  # fmt: skip
    return files | {"record.json": json.dumps(record).encode(), "scores_grad.bin": files["scores.bin"]}


def observation() -> bytes:
    so = {"path": "/opt/venv/a.so", "sha256": d.sha("a"), "elf": {"build_id": "b1"},
          "owners": [{"kind": "wheel", "name": "alpha", "version": "1"}]}  # fmt: skip
    orphan = {"path": "/tmp/o.so", "sha256": d.sha("o"), "elf": {"build_id": None}, "owners": []}
    jit = {
        "path": "/tmp/k.so",
        "family": "inductor",
        "sha256": d.sha("k"),
        "origin": "this_run",
        "mapped": True,
    }
    seen = {
        "files": [so, orphan],
        "ownership": {"mapped_bytes": 100_000, "owned_bytes": 99_999, "orphans": [{"path": "/tmp/o.so"}]},
        "jit": {"artifacts": [jit], "compilers": [{"path": "/usr/bin/g++", "sha256": d.sha("g"), "seen_running": 2}]},
        "holders": [{"title": "VLLM::Worker", "by": "memory"}],
        "mounts": [{"mount_point": "/", "covers": 9}, {"mount_point": "/src", "covers": 2}],
        "imports": [{"broken": [{"module": "alpha._C", "importer": "alpha.ops"}]}],
        "inside": [{"modules": [{"name": "alpha"}, {"name": "torch"}]}],
    }  # fmt: skip
    return json.dumps(seen).encode()


def measured(recipe: bytes = RECIPE, **record: Any) -> tuple[dict[str, bytes], Any]:
    """Evidence in which every kind of place that evidence can fill is filled."""
    loaded = d.lock(recipe)
    sides = {
        "rollout": d.scores("rollout", -1.0, -2.0, batches=batches((2, 3)), packing="batch"),
        "repeat": d.scores("rollout", -1.0, -2.0),
        "reversed": d.scores("rollout", -1.0, -2.5, batches=batches((2,), (3,)), packing="reversed"),
        "trainer": trainer_files(**record),
    }
    roles = {"repeat": "rollout", "reversed": "rollout"}
    workers = loaded.recipe.workers
    runs = tuple(
        d.run(
            name, files, role=roles.get(name, name), needs=workers[name].needs, command=workers[name].command
        )
        for name, files in sides.items()
    )
    probed = d.run("watch", {"probe.json": observation()}, role="rollout")
    files = d.evidence(loaded) | {
        "receipts/probe.json": d.receipt(loaded, ProbeBody(runs=(probed,))),
        "receipts/validate.json": d.receipt(loaded, ValidateBody(runs=runs)),
        "runs/watch/probe.json": observation(),
        "approval.json": d.approval(loaded),
    }
    for name, outputs in sides.items():
        files |= {f"runs/{name}/{one}": data for one, data in outputs.items()}
    return files, d.image(loaded)


class Clock:
    def now(self) -> str:
        return d.WHEN


def delivered() -> Document:
    files, image = measured()
    unapproved = {name: data for name, data in files.items() if name != "approval.json"}
    first = assemble(unapproved, image, None, Clock(), "0")
    old = read_model(first.statement, Statement, "statement")
    made = assemble(
        files, image, Earlier(digest=d.digest("earlier"), statement=old, raw=first.statement), Clock(), "0"
    )
    statement = read_model(made.statement, Statement, "statement")
    return document(files, image, (statement, d.digest("delivery")))


def entries(made: Document) -> Iterator[tuple[str, Entry]]:
    for section in made.sections:
        for block in section.blocks:
            if isinstance(block, Facts):
                yield from ((fact.label, fact.entry) for fact in block.facts)
            elif isinstance(block, Grid):
                yield from ((row.label, cell) for row in block.rows for cell in row.cells)


def place(made: Document, label: str) -> Entry:
    return next(entry for name, entry in entries(made) if name.startswith(label))


def row(made: Document, label: str) -> tuple[Entry, ...]:
    grids = [block for section in made.sections for block in section.blocks if isinstance(block, Grid)]
    return next(one.cells for grid in grids for one in grid.rows if one.label == label)


def everything(entry: Entry) -> str:
    return "\n".join([entry.text, *entry.lines])
