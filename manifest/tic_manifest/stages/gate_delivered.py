"""The lock of a delivered image, from the delivery manifest that is attached to it."""

from __future__ import annotations

from tic_manifest.model.base import Digest
from tic_manifest.ports import ImageSource
from tic_manifest.stages.attached import EvidenceFiles, head_statement
from tic_manifest.stages.verify_image import read_image


def lock_of(source: ImageSource, digest: Digest) -> bytes | None:
    """The lock that an image's delivery manifest carries; None where there is no single one."""
    platforms = [one.platform_digest for one in read_image(source, digest).images] or [digest]
    for platform in platforms:
        statement = head_statement(source, platform)
        if statement is not None:
            return EvidenceFiles(source, statement.value).get("lock.json")
    return None
