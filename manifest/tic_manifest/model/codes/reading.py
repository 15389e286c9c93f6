"""Codes of reading an image: documents, blobs, references, attachments (contract, sections 6 and 7)."""

from __future__ import annotations

from tic_manifest.model.codes import Code

_STRICT = "contract, section 6; rules/image-verify.md 1b C7"

CODES: tuple[Code, ...] = (
    Code(
        name="JSON_DUPLICATE_KEY",
        meaning="a key stands twice in one JSON object, so two readers may read different documents",
        remedy="have the document written again by a tool that writes each key once",
        source=_STRICT,
    ),
    Code(
        name="JSON_CASE_VARIANT",
        meaning="a key differs from a known key by letter case alone; readers written in Go mix them up",
        remedy="have the document written again with the key as the specification spells it",
        source=_STRICT,
    ),
    Code(
        name="JSON_MALFORMED",
        meaning="not a JSON document that every reader reads alike",
        remedy="get the document again from where it was made",
        source=_STRICT,
    ),
    Code(
        name="JSON_DEPTH",
        meaning="a JSON document is nested too deeply",
        remedy="have the document written again, flatter",
        source=_STRICT,
    ),
    Code(
        name="SCHEMA",
        meaning="a machine-written document does not fit its schema",
        remedy="get the document again from where it was made; do not edit it",
        source="rules/image-verify.md S20",
    ),
    Code(
        name="SCHEMA_VERSION",
        meaning="a machine-written document has a schema version that this release does not know",
        remedy="use a release of tic-manifest that knows the version",
        source="rules/image-verify.md S20",
    ),
    Code(
        name="MEDIATYPE_CONFUSION",
        meaning="a document can be read as two kinds, or its media type is not that of its descriptor",
        remedy="push the image again with a tool that writes one kind per document",
        source="rules/image-verify.md S15; CVE-2021-41190",
    ),
    Code(
        name="MANIFEST_DIGEST",
        meaning="the bytes of a platform manifest, image index or artifact are not those its digest names",
        remedy="the store returns other bytes than were pushed: push again, or read from another copy",
        source="rules/image-verify.md S10, C3",
    ),
    Code(
        name="BLOB_DIGEST",
        meaning="the bytes of a blob are not those its digest names",
        remedy="the copy is damaged or was changed: copy the image again from where it is whole",
        source="rules/image-verify.md S09, C2",
    ),
    Code(
        name="BLOB_MISSING",
        meaning="a blob that a document names is not there",
        remedy="copy the image again, with everything it refers to",
        source="rules/image-verify.md S11, C4",
    ),
    Code(
        name="DESCRIPTOR_SIZE",
        meaning="a blob has another length than its descriptor says",
        remedy="have the document written again from the blobs as they are",
        source="rules/image-verify.md S13, C5",
    ),
    Code(
        name="DIFFID",
        meaning="an unpacked layer is not the one that the config names, or the numbers of layers differ",
        remedy="build the image again; a config and its layers must come from one build",
        source="rules/image-verify.md C6",
    ),
    Code(
        name="LAYER_ENCODING",
        meaning="the bytes of a layer are not in the encoding that its media type names",
        remedy="write the layer again with the media type of its encoding",
        source="rules/image-verify.md C6, S36",
        variants={
            "undecodable": "a layer cannot be unpacked",
            "mismatch": "a layer is in another encoding than its media type names",
            "unknown": "a layer has a media type that this release cannot unpack",
            "rebuilt": "two builds packed the same layers differently; their diff ids are equal",
        },
    ),
    Code(
        name="AMBIGUOUS_PATH",
        meaning="a layer holds a path that tools unpack differently",
        remedy="build the layer again with plain, relative, unique paths",
        source="rules/image-verify.md 1b C10",
    ),
    Code(
        name="ENV_INJECTION",
        meaning="the config sets a variable that changes which code is loaded and that nothing declares",
        remedy="remove the variable, or declare it with its value in the recipe's env",
        source="rules/image-verify.md 1b C8",
        variants={
            "start": "user, entry point, command or working folder are not those of the base image",
            "undeclared": "the config sets a variable that neither the base image nor the recipe sets so",
        },
    ),
    Code(
        name="LAYOUT",
        meaning="a folder is not an OCI image layout",
        remedy="name the folder that holds oci-layout, index.json and blobs",
        source="OCI image-spec, image-layout.md",
    ),
    Code(
        name="MUTABLE_REF",
        meaning="an image is named by a tag, which can move",
        remedy="name the image by the digest that the message prints, if it is the one you mean",
        source="rules/image-verify.md S01, C1",
    ),
    Code(
        name="DIGEST_KIND",
        meaning="the digest is not that of a platform manifest or an image index",
        remedy="name the platform manifest or the image index",
        source="rules/image-verify.md S03, S04",
        variants={
            "config": "the digest is that of a config",
            "layer": "the digest is that of a layer",
            "artifact": "the digest is that of an attached artifact",
            "unknown": "the digest is that of some other blob",
        },
    ),
    Code(
        name="REFERRERS_INVALID",
        meaning="what is listed as attached to this image is not an artifact about this image",
        remedy="the registry's fallback tag is broken: attach again, or read from another copy",
        source="rules/image-verify.md S23, AC-10",
    ),
    Code(
        name="PLATFORM_UNCOVERED",
        meaning="the image index holds a platform that no delivery manifest covers",
        remedy="deliver evidence for that platform, or leave --all-platforms out",
        source="rules/image-verify.md S06, AC-14",
    ),
    Code(
        name="PLATFORM_MISMATCH",
        meaning="the image index names another platform than the config of the image",
        remedy="write the image index again from the configs",
        source="image-spec, image-index.md; rules/image-verify.md AC-14",
    ),
    Code(
        name="BASE_NOT_ALLOWED",
        meaning="the base image is not one that the policy accepts",
        remedy="build on an accepted base image, or add its platform digest to base_images of the policy",
        source="issue 4: policy",
    ),
    Code(
        name="BASE_IMAGE_GONE",
        meaning="the base image is neither at its source nor in a mirror",
        remedy="mirror the base image by its digest",
        source="rules/image-verify.md S35",
    ),
    Code(
        name="UNKNOWN_KEY",
        meaning="an OCI document holds a key that this release does not know; it was ignored",
        remedy="nothing to do; check that the tools that run the image ignore it as well",
        source="contract, section 6",
    ),
    Code(
        name="FOREIGN_ARTIFACT",
        meaning="an artifact of a type that is not ours is attached; it was listed, not parsed",
        remedy="nothing to do",
        source="contract, section 6",
    ),
    Code(
        name="REGISTRY",
        meaning="a registry gave an answer that the Distribution specification does not allow",
        remedy="try another registry, or copy the image into a layout first",
        source="OCI distribution-spec",
    ),
    Code(
        name="AUTH",
        meaning="a registry refused the credentials, or asks for some",
        remedy="log in with docker login or podman login, or name the file with REGISTRY_AUTH_FILE",
        source="rules/image-verify.md AC-15",
    ),
    Code(
        name="NOT_FOUND",
        meaning="no document has this digest here",
        remedy="check repository and digest; a digest stays only where the image was copied unchanged",
        source="rules/image-verify.md S07",
    ),
)
