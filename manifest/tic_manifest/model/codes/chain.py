"""Codes of the chain from lock to delivery manifest: what binds one stage to the next."""

from __future__ import annotations

from tic_manifest.model.codes import Code

CODES = (
    Code(
        name="NOT_CLEAN",
        meaning="final validation was asked for something else than the clean build",
        remedy="run tic-manifest build and validate its image",
        source="rules/image-verify.md AC-21",
    ),
    Code(
        name="OVERCLAIM",
        meaning="the delivery manifest says something that does not follow from its evidence",
        remedy="assemble again from the receipts",
        source="contract, section 2: exit 4; design.md: verify believes no recorded verdict",
    ),
    Code(
        name="HERMETIC",
        meaning="a step of the build could reach a network",
        remedy="build with the Dockerfile of the project: every RUN is without network",
        source="rules/image-verify.md AC-1",
    ),
    Code(
        name="BASE_LAYERS",
        meaning="the image does not begin with the layers of the locked base",
        remedy="build again from the lock",
        source="rules/image-verify.md AC-5",
    ),
    Code(
        name="PYC_MTIME",
        meaning="two builds of one lock differ in byte code alone, which holds the times of its sources",
        remedy="compile with PYTHONDONTWRITEBYTECODE or unchecked hashes, or set times before compiling",
        source="rules/image-verify.md S36",
    ),
    Code(
        name="NOT_REPRODUCIBLE",
        meaning="two builds of one lock by one builder gave different platform manifests",
        remedy="see which paths differ, and make what writes them independent of time, place and order",
        source="rules/image-verify.md AC-2, AC-21",
    ),
    Code(
        name="VERSION_UNPROVEN",
        meaning="a wheel has a version that builds fall back to where they find no git; the lock names none",
        remedy="name the version in build.env of the pull request (SETUPTOOLS_SCM_PRETEND_VERSION)",
        source="rules/image-verify.md S32",
    ),
    Code(
        name="PROBE_MISSING",
        meaning="the probe has no observation of a role",
        remedy="run tic-manifest probe for this image",
        source="rules/image-verify.md, 2a: probe of one role missing",
    ),
    Code(
        name="HOLDER_MISSING",
        meaning="no process of a role was seen to hold the model",
        remedy="let the worker wait at its ready mark while it holds the policy",
        source="design.md: the real process",
    ),
    Code(
        name="SELF_DECLARED",
        meaning="the approval is a person's own word, signed by no key that the policy names",
        remedy="nothing to do, or sign the delivery manifest",
        source="contract, section 3",
    ),
)
