"""Codes of the effective file system of an image (contract, section 7: Files)."""

from __future__ import annotations

from tic_manifest.model.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        name="RECORD_HASH",
        meaning="an installed file is not the one that its distribution's RECORD names",
        remedy="find the layer that the finding names and move the change into the pull request",
        source="rules/image-verify.md S17, C9",
    ),
    Code(
        name="RECORD_MISSING",
        meaning="a file that a distribution's RECORD names is not in the effective tree",
        remedy="find the layer that removes it; remove files in the step that installs them",
        source="rules/image-verify.md S16",
    ),
    Code(
        name="WHEEL_HASH",
        meaning="a wheel or its RECORD is not the one that the lock names",
        remedy="build again from the lock",
        source="rules/image-verify.md S18",
    ),
    Code(
        name="TREE_MISMATCH",
        meaning="a file is not the one in the tree of the pull request's head",
        remedy="put the change into the pull request, or build again from the head",
        source="rules/image-verify.md S33; issue 4",
    ),
    Code(
        name="NATIVE_NOT_FROM_SOURCE",
        meaning="native code does not come from the sources that the pull request names",
        remedy="compile it from the head, or name the commit that the wheel was built from",
        source="contract, section 5; rules/image-verify.md C15",
    ),
    Code(
        name="UNOWNED_FILE",
        meaning="a file below a package folder belongs to no distribution",
        remedy="install it with a wheel, so that a RECORD names it",
        source="rules/image-verify.md C9",
    ),
    Code(
        name="NOT_IN_TREE",
        meaning="files of a built wheel that the head's tree does not hold, or the other way round, by kind",
        remedy="read the list: generated, compiled and prebuilt files are not proved by the tree",
        source="issue 4; docs/adr/0010",
    ),
    Code(
        name="NATIVE_TRACED",
        meaning="how many native files are from built wheels and how many from locked ones",
        remedy="nothing to do",
        source="rules/image-verify.md C15; issue 4",
    ),
)
