"""Codes of the delivery manifest and of what it binds together (contract, section 7)."""

from __future__ import annotations

from tic_manifest.model.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        name="DELIVERY_MISSING",
        meaning="no delivery manifest is attached to this image here",
        remedy="copy the tag sha256-<hex of the digest> as well (skopeo copy --all), or copy with oras cp -r",
        source="issue 4: the image alone is inconclusive and says how to carry the rest",
    ),
    Code(
        name="EVIDENCE_MISSING",
        meaning="a delivery manifest names evidence that is not attached here",
        remedy="copy the evidence artifact as well (skopeo copy --all of the tag sha256-<hex>; oras cp -r)",
        source="design.md: what was not looked at is never a pass",
    ),
    Code(
        name="SBOM_MISMATCH",
        meaning="the SBOM that travels is not the one that follows from the lock and the build receipt",
        remedy="assemble again; nobody writes an SBOM by hand",
        source="rules/image-verify.md AC-7: derived from the lock, not from scanning",
    ),
    Code(
        name="SUBJECT",
        meaning="a delivery manifest is about another image than the one it is attached to",
        remedy="attach the delivery manifest of this image",
        source="rules/image-verify.md S21, C11",
    ),
    Code(
        name="CONFLICT",
        meaning="several delivery manifests of one image stand side by side and none supersedes the others",
        remedy="assemble again, so that one supersedes the others, or demand a signature with --key",
        source="contract, section 1; rules/image-verify.md C12",
    ),
    Code(
        name="RUN_MIX",
        meaning="receipts of different deliveries are bound into one delivery manifest",
        remedy="run the stages again for one lock and one image",
        source="rules/image-verify.md C13",
    ),
    Code(
        name="STALE",
        meaning="evidence is about an earlier input than the one that is delivered",
        remedy="run the stage that the finding names again",
        source="report template: a changed input requires reassessing affected evidence",
    ),
    Code(
        name="UNAPPROVED",
        meaning="no person has approved this recipe, checklist and resolved configuration",
        remedy="run tic-manifest approve RECIPE --as NAME, then assemble again",
        source="contract, section 3",
    ),
    Code(
        name="UNSIGNED",
        meaning="a signature is demanded and there is none",
        remedy="assemble with --sign-key",
        source="rules/image-verify.md S25",
    ),
    Code(
        name="IDENTITY",
        meaning="what is attached is signed, but by nobody whom the policy or --key accepts",
        remedy="check who signed; name the right key with --key, or have an accepted signer sign",
        source="rules/image-verify.md S24",
    ),
    Code(
        name="PLATFORM_EMULATED",
        meaning="the image is for another platform than the host's, so nothing was run in it natively",
        remedy="probe and validate on a host of the image's platform",
        source="issue 2, item 9",
    ),
    Code(
        name="SIGNER_IGNORED",
        meaning="a delivery manifest that no accepted signer signed was not counted",
        remedy="nothing to do",
        source="contract, section 6",
    ),
)
