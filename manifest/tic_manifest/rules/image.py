"""What an image's documents and bytes must be: one function per rule, values in, findings out.

Source: rules/image-verify.md, attack table 1b (C2 to C8).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tic_manifest.errors import RefusedError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.formats.oci import is_foreign, layer_encoding
from tic_manifest.model.base import Digest
from tic_manifest.model.oci import (
    ATTESTATION_KIND,
    BlobFact,
    Descriptor,
    ImageConfig,
    ImageManifest,
    Kind,
    Platform,
)
from tic_manifest.model.verdict import Finding, Status, finding, note

LOADS_CODE = frozenset(
    {
        "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_ORIGIN_PATH", "LD_DEBUG_OUTPUT", "GLIBC_TUNABLES",
        "GCONV_PATH", "LOCPATH", "NLSPATH", "BASH_ENV", "ENV", "PROMPT_COMMAND", "PERL5LIB", "PERL5OPT",
        "RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "CUDA_INJECTION64_PATH",
        "OPENSSL_CONF", "OPENSSL_MODULES", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN",
    }
)  # fmt: skip
_HARMLESS_PYTHON = frozenset(
    {
        "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONUTF8",
        "PYTHONFAULTHANDLER", "PYTHONNOUSERSITE", "PYTHONSAFEPATH", "PYTHON_VERSION", "PYTHON_SHA256",
        "PYTHON_PIP_VERSION", "PYTHON_SETUPTOOLS_VERSION", "PYTHONCOERCECLOCALE",
    }
)  # fmt: skip


def loads_code(name: str) -> bool:
    """Whether a variable changes which code a process loads; any PYTHON* does unless known not to."""
    return name in LOADS_CODE or (name.startswith("PYTHON") and name not in _HARMLESS_PYTHON)


def check_document(raw: bytes, descriptor: Descriptor | None, digest: Digest, subject: str) -> list[Finding]:
    """Bytes of a document against the digest that names it, and its descriptor's size (C3, C5)."""
    found: list[Finding] = []
    actual = digest_of(raw)
    if actual != digest:
        found.append(
            finding("MANIFEST_DIGEST", Status.FAIL, subject, expected=digest, actual=actual, remedy=_COPY)
        )
    if descriptor is not None and actual == digest and len(raw) != descriptor.size:
        found.append(_size(subject, descriptor, len(raw)))
    return found


def check_presence(descriptor: Descriptor, length: int | None, subject: str) -> list[Finding]:
    """A blob is there and has the length that its descriptor says (C4, C5)."""
    if length is None:
        foreign = is_foreign(descriptor.media_type)
        status = Status.INCONCLUSIVE if foreign else Status.FAIL
        why = "the layer lies outside the registry; links to there are never followed" if foreign else None
        return [
            finding("BLOB_MISSING", status, subject, expected=descriptor.digest, actual=why, remedy=_COPY)
        ]
    return [] if length == descriptor.size else [_size(subject, descriptor, length)]


def check_layers(manifest: ImageManifest, config: ImageConfig, subject: str) -> list[Finding]:
    """As many layers as diff ids, each of a type that can be unpacked (C6)."""
    found: list[Finding] = []
    if len(manifest.layers) != len(config.diff_ids):
        found.append(
            finding(
                "DIFFID",
                Status.FAIL,
                subject,
                what="the numbers of layers and of diff ids differ",
                expected=len(config.diff_ids),
                actual=len(manifest.layers),
            )
        )
    for number, layer in enumerate(manifest.layers, 1):
        if layer_encoding(layer.media_type) is None:
            found.append(
                finding(
                    "LAYER_ENCODING/unknown",
                    Status.INCONCLUSIVE,
                    f"layer {number}",
                    actual=layer.media_type,
                    evidence={"digest": layer.digest},
                )
            )
    return found


def check_platform(described: Platform | None, config: ImageConfig, subject: str) -> list[Finding]:
    """The index and the config name the same platform; a variant counts where both name one."""
    if described is None:
        return []
    actual = config.platform
    same = (described.os, described.architecture) == (actual.os, actual.architecture)
    variants = {one for one in (described.variant, actual.variant) if one}
    if same and len(variants) < 2:
        return []
    return [finding("PLATFORM_MISMATCH", Status.FAIL, subject, expected=str(described), actual=str(actual))]


def check_read(fact: BlobFact, subject: str) -> list[Finding]:
    """What was read of a blob against its descriptor and its diff id (C2, C5, C6)."""
    descriptor = fact.blob.descriptor
    if fact.length is None or fact.digest is None:
        return check_presence(descriptor, None, subject)
    if fact.digest != descriptor.digest:
        return [_damaged(fact, subject)]
    found = check_presence(descriptor, fact.length, subject)
    return found if fact.blob.encoding is None else found + _check_unpacked(fact, subject)


def check_environment(config: ImageConfig, allowed: Mapping[str, str] | None, subject: str) -> list[Finding]:
    """No variable that changes which code is loaded, but those declared with their value (C8).

    `allowed` is None where the lock is not at hand: then such a variable leaves the check undecided.
    """
    found: list[Finding] = []
    for entry in config.env:
        name, _, value = entry.partition("=")
        if loads_code(name) and (allowed is None or allowed.get(name) != value):
            found.append(
                finding(
                    "ENV_INJECTION",
                    Status.INCONCLUSIVE if allowed is None else Status.FAIL,
                    subject,
                    expected=None if allowed is None else allowed.get(name),
                    actual=entry[:400],
                )
            )
    return found


def check_twice(env: Iterable[str], subject: str) -> list[Finding]:
    """A variable stands once: runtimes disagree whether the first or the last of two counts."""
    names = [entry.partition("=")[0] for entry in env]
    twice = sorted({name for name in names if names.count(name) > 1})
    what = "the config sets a variable twice"
    return [
        finding("ENV_INJECTION", Status.FAIL, subject, what=what, expected="each variable once", actual=name)
        for name in twice
    ]


def unknown_keys(keys: Iterable[str], subject: str) -> list[Finding]:
    """The note for keys of an OCI document that were ignored (contract, section 6)."""
    named = sorted(keys)
    return [note("UNKNOWN_KEY", subject, actual=named[:20])] if named else []


def refusal(error: RefusedError, subject: str = "") -> Finding:
    """A refused document as a finding, so that everything else that was found is still listed."""
    return finding(
        error.code, Status.INCONCLUSIVE, subject or error.where, what=error.what,
        expected=error.expected or None, actual=error.actual or None, remedy=error.remedy, refused=True,
        evidence={"document": error.where} if error.where else {},
    )  # fmt: skip


def is_attestation(descriptor: Descriptor) -> bool:
    """Whether an entry of an image index is BuildKit's attestation child, not a platform."""
    platform = descriptor.platform
    unknown = platform is not None and (platform.os, platform.architecture) == ("unknown", "unknown")
    return unknown and descriptor.annotations.get(ATTESTATION_KIND) == "attestation-manifest"


def label(kind: Kind, digest: Digest, platform: Platform | None = None) -> str:
    """A digest with its kind, never shortened."""
    return f"{kind.value} {digest}" + (f" ({platform})" if platform else "")


_COPY = "copy the image again from where it is whole"


def _size(subject: str, descriptor: Descriptor, length: int) -> Finding:
    return finding(
        "DESCRIPTOR_SIZE", Status.FAIL, subject, expected=descriptor.size, actual=length,
        evidence={"digest": descriptor.digest},
    )  # fmt: skip


def _damaged(fact: BlobFact, subject: str) -> Finding:
    descriptor = fact.blob.descriptor
    return finding(
        "BLOB_DIGEST", Status.FAIL, subject, expected=descriptor.digest, actual=fact.digest,
        evidence={"bytesRead": fact.length, "size": descriptor.size}, remedy=_COPY,
    )  # fmt: skip


def _check_unpacked(fact: BlobFact, subject: str) -> list[Finding]:
    said, shown = fact.blob.encoding, fact.encoding
    code, expected, actual = "", "", ""
    if said is not shown:
        code, expected, actual = "LAYER_ENCODING/mismatch", str(said), str(shown)
    elif fact.error:
        code, actual = "LAYER_ENCODING/undecodable", fact.error
    elif fact.blob.diff_id is not None and fact.diff_id != fact.blob.diff_id:
        code, expected, actual = "DIFFID", fact.blob.diff_id, str(fact.diff_id)
    evidence = {"digest": fact.blob.descriptor.digest}
    return [
        finding(code, Status.FAIL, subject, expected=expected or None, actual=actual, evidence=evidence)
    ] if code else []  # fmt: skip
