"""A small, whole delivery with real digests, and ways to spoil it. Used by the tests of rules and stages."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

from tic_manifest.formats.canonical import canonical_bytes, digest_of
from tic_manifest.formats.lock import (
    LoadedLock,
    checklist_digest,
    read_lock,
    recipe_data,
    recipe_digest,
    resolved_digest,
)
from tic_manifest.formats.recipe import read_recipe
from tic_manifest.model.lock import DebianRoot, Lock, LockedFile, LockedPullRequest, LockedPython, Material
from tic_manifest.model.oci import (
    CONFIG,
    MANIFEST,
    Descriptor,
    ImageConfig,
    ImageManifest,
    JudgedImage,
    Platform,
)
from tic_manifest.model.receipt import (
    Approval,
    Artifact,
    BuildBody,
    BuiltWheel,
    Host,
    ProbeBody,
    Receipt,
    ValidateBody,
    WorkerRun,
)

WHEN = "2026-01-01T00:00:00Z"
RUN_ID = "0123456789abcdef" * 2
RECIPE = b"""schema: tic/recipe/v1
name: example
base: {debian: {suite: bookworm, packages: [python3]}}
forge: {api: "https://forge.invalid/api/v3"}
pull_requests:
  alpha:
    url: https://forge.invalid/demo/alpha/pull/1
    target: {owner: demo, branch: main}
    base: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    head: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    row: vllm
workers:
  rollout: {stage: validate, role: rollout, command: [rollout]}
  trainer: {stage: validate, role: trainer, command: [trainer], needs: [rollout]}
validation:
  comparisons:
    - {id: cross, kind: cross_stack, left: rollout/scores, right: trainer/scores, scope_limitation: none}
acceptance:
  - {id: cross, state: required, limit: 0, rationale: bytes}
  - {id: quality, state: out_of_scope, rationale: no data}
"""


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def digest(text: str) -> str:
    return "sha256:" + sha(text)


def lock(recipe: bytes = RECIPE) -> LoadedLock:
    said = read_recipe(recipe, "recipe.yaml")
    file = LockedFile(name="python3", version="3.11", file="python3.deb", sha256=sha("deb"), size=7)
    root = DebianRoot(suite="bookworm", architecture="amd64", packages=(file,))
    pulls = tuple(
        LockedPullRequest(
            name=name, row=pull.row or name, url=pull.url, number=1, git="https://forge.invalid/demo/alpha.git",
            owner="demo", repo="alpha", branch="main", base=pull.base, base_tree="c" * 40, head=pull.head,
            head_tree="d" * 40, merge_base=pull.base, merge_tree="d" * 40,
        )
        for name, pull in said.pull_requests.items()
    )  # fmt: skip
    made = Lock(
        schema_="tic/lock/v1", recipe_digest=recipe_digest(said), recipe=recipe_data(said), pull_requests=pulls,
        base=root, builder=root, python=LockedPython(version="3.11", runtime=(), build=()),
        materials=(Material(name="Dockerfile.unified", sha256=sha("dockerfile")),),
    )  # fmt: skip
    return read_lock(canonical_bytes(made), "lock.json")


def image(loaded: LoadedLock, label: str | None = None) -> JudgedImage:
    layer = Descriptor(
        media_type="application/vnd.oci.image.layer.v1.tar+zstd", digest=digest("layer"), size=5
    )
    config = Descriptor(media_type=CONFIG, digest=digest("config"), size=6)
    return JudgedImage(
        index_digest=digest("index"), platform_digest=digest("platform"),
        platform=Platform(architecture="amd64", os="linux"),
        manifest=ImageManifest(media_type=MANIFEST, config=config, layers=(layer,)),
        config=ImageConfig(
            architecture="amd64", os="linux", diff_ids=(digest("diff"),),
            labels={"org.tic-manifest.lock": label or loaded.digest},
        ),
    )  # fmt: skip


def receipt(loaded: LoadedLock, body: Any, **changes: Any) -> bytes:
    host = Host(machine="x86_64", cpu_model="cpu", cpu_flags=("avx2",), kernel="6")
    fields: dict[str, Any] = {
        "schema_": "tic/receipt/v1", "run_id": RUN_ID, "lock_digest": loaded.digest,
        "platform_digest": digest("platform"), "started_at": WHEN, "finished_at": WHEN, "tool_version": "0",
        "host": host, "body": body,
    }  # fmt: skip
    return canonical_bytes(Receipt(**(fields | changes)))


def build_body(**changes: Any) -> BuildBody:
    fields: dict[str, Any] = {
        "index_digest": digest("index"), "config_digest": digest("config"), "layers": (digest("layer"),),
        "base_platform_digest": digest("base"), "hermetic": True, "builder": "buildx", "command": ("docker",),
        "wheels": (BuiltWheel(name="alpha", tree="d" * 40, file="alpha.whl", digest=digest("wheel"), size=3),),
        "log": Artifact(name="build.log", digest=digest("log"), size=1),
    }  # fmt: skip
    return BuildBody(**(fields | changes))


def scores(role: str, *values: float, **changes: Any) -> dict[str, bytes]:
    """A record and its score file, as a worker leaves them."""
    payload = struct.pack(f"<{len(values)}f", *values)
    record = {
        "schema": "tic/worker-record/v1", "role": role, "pid": 1, "checkpoint": {"w": sha("w")},
        "tokens_sha256": sha("t"), "mask": [[1] * len(values)], "dtype": "float32", "byte_order": "little",
        "scores": {"file": "scores.bin", "sha256": hashlib.sha256(payload).hexdigest(), "shape": [1, len(values)], "count": len(values)},
    }  # fmt: skip
    return {"record.json": json.dumps(record | changes).encode(), "scores.bin": payload}


def run(name: str, files: dict[str, bytes], **changes: Any) -> WorkerRun:
    outputs = tuple(
        Artifact(name=one, digest=digest_of(data), size=len(data)) for one, data in sorted(files.items())
    )
    fields: dict[str, Any] = {
        "name": name, "role": name, "command": (name,), "needs": (), "exit_code": 0, "started_at": WHEN,
        "finished_at": WHEN, "outputs": outputs,
    }  # fmt: skip
    return WorkerRun(**(fields | changes))


def evidence(
    loaded: LoadedLock, rollout: dict[str, bytes] | None = None, trainer: dict[str, bytes] | None = None
) -> dict[str, bytes]:
    """All evidence of a delivery whose two sides are equal, unless others are given."""
    left = scores("rollout", -1.0, -2.0) if rollout is None else rollout
    right = scores("trainer", -1.0, -2.0) if trainer is None else trainer
    runs = (run("rollout", left), run("trainer", right, needs=("rollout",)))
    files = {
        "lock.json": loaded.raw,
        "receipts/build.json": receipt(loaded, build_body()),
        "receipts/probe.json": receipt(loaded, ProbeBody(runs=())),
        "receipts/validate.json": receipt(loaded, ValidateBody(runs=runs)),
        "build.log": b"log",
    }
    for one, named in (("rollout", left), ("trainer", right)):
        files |= {f"runs/{one}/{name}": data for name, data in named.items()}
    return files


def approval(loaded: LoadedLock, **changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "schema_": "tic/approval/v1", "recipe_digest": loaded.lock.recipe_digest,
        "checklist_digest": checklist_digest(loaded.recipe), "resolved_digest": resolved_digest(loaded),
        "approved_by": "A Person", "approved_at": WHEN,
    }  # fmt: skip
    return canonical_bytes(Approval(**(fields | changes)))
