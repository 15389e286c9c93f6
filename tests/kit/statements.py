"""A small delivery manifest about an image, for tests and scenarios."""

from __future__ import annotations

from typing import Any

from layouts import digest_of
from tic_manifest.adapters.attach import artifact_of
from tic_manifest.formats.statement import make_statement, statement_bytes
from tic_manifest.model.delivery import Cell, Delivery, ImageRow, PullRequestRow, RecipeRow, ValidationRow
from tic_manifest.model.oci import Descriptor
from tic_manifest.model.verdict import Status

WHEN = "2026-01-01T00:00:00Z"
EVIDENCE: dict[str, bytes] = {"lock.json": b"{}", "runs/rollout/scores.bin": b"\0" * 40}


def delivery(
    platform: str, index: str | None, evidence: dict[str, Any], supersedes: str | None = None
) -> bytes:
    """The bytes of a small Statement about an image."""
    cell = Cell(status=Status.NOT_RUN, reason="a test")
    file = artifact_of("recipe.yaml", b"schema: tic/recipe/v1\n")
    pull = PullRequestRow(
        name="alpha", row="vllm", url="https://forge.invalid/o/alpha/pull/1", owner="o", repo="alpha", branch="main",
        base="a" * 40, head="b" * 40, tree="c" * 40, gate=cell, build=cell,
    )  # fmt: skip
    image = ImageRow(
        platform="linux/amd64", base_platform_digest=None, platform_digest=platform, index_digest=index,
        config_digest=digest_of(b"config"), pins=(), build_log=None, build=cell, probe=cell,
    )  # fmt: skip
    recipe = RecipeRow(script=file, resolved=file, checklist=file, approval=None, approved=cell)
    predicate = Delivery(
        schema_="tic/delivery/v1", run_id="0" * 32, lock_digest=digest_of(EVIDENCE["lock.json"]),
        supersedes=supersedes, created_at=WHEN, tool_version="0",
        rows=(pull, image, recipe, ValidationRow(platform_digest=platform, statuses=())), receipts=(),
        evidence=tuple(artifact_of(name, data) for name, data in sorted(evidence.items())),
    )  # fmt: skip
    subjects = [("platform manifest", platform), *([("image index", index)] if index else [])]
    return statement_bytes(make_statement(predicate, subjects))


def descriptor(data: dict[str, Any]) -> Descriptor:
    return Descriptor(media_type=data["mediaType"], digest=data["digest"], size=data["size"])
