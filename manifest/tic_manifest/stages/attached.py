"""What is attached to an image: artifacts, Statements, evidence by name (contract, section 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tic_manifest.errors import RefusedError
from tic_manifest.formats.canonical import digest_of
from tic_manifest.formats.oci import parse_manifest
from tic_manifest.formats.statement import (
    MAX_STATEMENT_BYTES,
    Envelope,
    ReadStatement,
    is_delivery,
    read_bundle,
    read_envelope,
    read_statement,
)
from tic_manifest.model.base import Digest
from tic_manifest.model.delivery import (
    BUNDLE_TYPE,
    DSSE_TYPE,
    EVIDENCE_TYPE,
    SBOM_TYPE,
    STATEMENT_TYPE,
    Statement,
)
from tic_manifest.model.oci import MANIFEST_TYPES, Descriptor, ImageManifest
from tic_manifest.model.receipt import Artifact
from tic_manifest.model.verdict import Finding, Status, finding, note
from tic_manifest.ports import ImageSource
from tic_manifest.rules.chain import Candidate, heads
from tic_manifest.rules.image import check_document, refusal

MAX_ARTIFACTS = 1000
MAX_EVIDENCE_BYTES = 64 << 20
KEPT_BYTES = 1 << 20

Signers = Callable[[Envelope], set[str]]
"""The names of accepted keys that signed an envelope."""


@dataclass(kw_only=True)
class Attached:
    """Everything found attached to the documents of one image."""

    candidates: dict[Digest, Candidate] = field(default_factory=dict)
    blobs: list[tuple[Descriptor, str]] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    sboms: dict[str, set[Digest]] = field(default_factory=dict)
    """Artifacts of CycloneDX documents and their layers: ours only where they are evidence."""
    findings: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)

    def foreign_sboms(self) -> list[Finding]:
        """Notes on the SBOMs that no delivery manifest names as evidence; they are listed, not parsed."""
        predicates = [one.statement.value.predicate for one in self.candidates.values()]
        named = {file.digest for one in predicates for file in one.evidence}
        strange = [where for where, layers in self.sboms.items() if not layers or layers - named]
        return [note("FOREIGN_ARTIFACT", where, actual=SBOM_TYPE) for where in strange]


def find_attached(
    source: ImageSource, subjects: Iterable[Digest], signers: Signers | None = None
) -> Attached:
    """Read what refers to each subject; without `signers` no signature is looked at.

    Raises UnavailableError; malformed documents become findings.
    """
    finder = _Finder(source, signers)
    for subject in subjects:
        finder.read(subject)
    return finder.found


def head_statement(source: ImageSource, platform: Digest) -> ReadStatement | None:
    """The delivery manifest that a new one supersedes; None where there is none or no single one."""
    found = find_attached(source, [platform]).candidates
    about = {digest: one for digest, one in found.items() if one.statement.value.names(platform)}
    first = heads(about)
    return about[first[0]].statement if len(first) == 1 else None


class EvidenceFiles(Mapping[str, bytes]):
    """The evidence of a delivery manifest by name, read when asked for and hashed each time it is read.

    A file that is absent, changed or longer than 64 MiB is not in the mapping.
    """

    def __init__(self, source: ImageSource, statement: Statement) -> None:
        self._source = source
        self._named = {one.name: one for one in statement.predicate.evidence}
        self._kept: dict[Digest, bytes | None] = {}
        self._bytes = 0

    def __getitem__(self, name: str) -> bytes:
        one = self._named.get(name)
        data = (
            None if one is None else self._kept[one.digest] if one.digest in self._kept else self._read(one)
        )
        if data is None or (one is not None and len(data) != one.size):
            raise KeyError(name)
        return data

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._named if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _read(self, one: Artifact) -> bytes | None:
        """Kept by digest and only while all that is kept is small: names cost no memory."""
        data = _read_exact(self._source, one)
        size = 0 if data is None else len(data)
        if size <= KEPT_BYTES and self._bytes + size <= MAX_EVIDENCE_BYTES:
            self._kept[one.digest] = data
            self._bytes += size
        return data


def check_named_twice(statement: Statement, subject: str) -> list[Finding]:
    """A name of evidence stands once, so that two readers take the same file."""
    counted = Counter(one.name for one in statement.predicate.evidence)
    twice = sorted(name for name, count in counted.items() if count > 1)
    what = "a name of evidence stands twice"
    return [
        finding("SCHEMA", Status.INCONCLUSIVE, subject, what=what, actual=twice, refused=True)
    ] if twice else []  # fmt: skip


def _read_exact(source: ImageSource, one: Artifact) -> bytes | None:
    if one.size > MAX_EVIDENCE_BYTES:
        return None
    pieces = source.blob(one.digest, one.size)
    data = None if pieces is None else b"".join(pieces)
    return data if data is not None and digest_of(data) == one.digest else None


def _invalid(via: str, problem: str) -> Finding:
    return finding("REFERRERS_INVALID", Status.INCONCLUSIVE, via, actual=problem)


class _Finder:
    """Reads artifacts of subjects into one `Attached`."""

    def __init__(self, source: ImageSource, signers: Signers | None) -> None:
        self._source = source
        self._signers = signers
        self._kept: dict[Digest, bytes] = {}
        self.found = Attached()

    def read(self, subject: Digest) -> None:
        """Everything that refers to one document."""
        answer = self._source.referrers(subject)
        problems = list(answer.problems)
        if len(answer.entries) > MAX_ARTIFACTS:
            problems.append(f"more than {MAX_ARTIFACTS} artifacts")
        self.found.findings += [_invalid(answer.via, problem) for problem in problems]
        for entry in answer.entries[:MAX_ARTIFACTS]:
            self._artifact(entry, subject, answer.via)
        if self._signers is not None:
            self._tagged(subject)

    def _artifact(self, entry: Descriptor, subject: Digest, via: str) -> None:
        where = f"artifact {entry.digest}"
        raw = self._source.manifest(entry.digest)
        if raw is None:
            self.found.findings.append(_invalid(via, f"{entry.digest} is listed and absent"))
            return
        wrong = check_document(raw, entry, entry.digest, where)
        self.found.findings += wrong
        if any(one.code == "MANIFEST_DIGEST" for one in wrong):
            return
        self.found.kinds[entry.digest] = "artifact"
        if entry.media_type not in MANIFEST_TYPES:
            self.found.notes.append(note("FOREIGN_ARTIFACT", where, actual=entry.media_type))
            return
        try:
            artifact = parse_manifest(raw, where, entry.media_type).value
            problem = _not_about(artifact, entry.digest, subject)
            if problem:
                self.found.findings.append(_invalid(via, problem))
            else:
                self._known(artifact, subject, where)
        except RefusedError as error:
            self.found.findings.append(refusal(error, where))

    def _known(self, artifact: ImageManifest, subject: Digest, where: str) -> None:
        kind = artifact.type_of_artifact
        if kind == SBOM_TYPE:
            self.found.sboms[where] = {layer.digest for layer in artifact.layers}
            return
        if kind not in {STATEMENT_TYPE, BUNDLE_TYPE, EVIDENCE_TYPE}:
            self.found.notes.append(note("FOREIGN_ARTIFACT", where, actual=kind))
            return
        self.found.blobs += [(layer, f"blob {layer.digest} of {where}") for layer in artifact.layers]
        if kind == EVIDENCE_TYPE:
            return
        _one_layer(artifact, kind, where)
        raw = self._layer(artifact.layers[0], where)
        if raw is not None and kind == STATEMENT_TYPE:
            self._add(raw, subject, where)
        elif raw is not None:
            self._add_envelope(read_bundle(raw, where), subject, where)

    def _layer(self, layer: Descriptor, where: str) -> bytes | None:
        subject = f"blob {layer.digest} of {where}"
        if layer.size > 2 * MAX_STATEMENT_BYTES:
            raise RefusedError(
                "SCHEMA", "a Statement is too long", where=where, actual=f"{layer.size} bytes",
                expected=f"at most {MAX_STATEMENT_BYTES} bytes",
            )  # fmt: skip
        if layer.digest in self._kept:  # one Statement is attached to platform manifest and image index
            return self._kept[layer.digest]
        pieces = self._source.blob(layer.digest, layer.size)
        raw = None if pieces is None else b"".join(pieces)
        if raw is not None and digest_of(raw) == layer.digest:
            self._kept[layer.digest] = raw
            return raw
        code, actual = ("BLOB_MISSING", None) if raw is None else ("BLOB_DIGEST", digest_of(raw))
        said = finding(code, Status.FAIL, subject, expected=layer.digest, actual=actual)
        self.found.findings.append(said)
        return None

    def _add(self, raw: bytes, subject: Digest, where: str) -> Candidate | None:
        if not is_delivery(raw, where):
            said = note("FOREIGN_ARTIFACT", where, actual="a Statement with another predicate")
            self.found.notes.append(said)
            return None
        statement = read_statement(raw, where)
        one = self.found.candidates.setdefault(statement.digest, Candidate(statement=statement))
        one.attached_to.add(subject)
        self.found.kinds[statement.digest] = "delivery manifest"
        return one

    def _add_envelope(self, envelope: Envelope, subject: Digest, where: str) -> None:
        one = self._add(envelope.payload, subject, where)
        if one is not None:
            one.signed = True
            one.signers |= self._signers(envelope) if self._signers else set()

    def _tagged(self, subject: Digest) -> None:
        """The tag `sha256-<hex>.att`, of cosign 2: an image whose layers are envelopes."""
        digest = self._source.resolve(f"{subject.replace(':', '-', 1)}.att")
        raw = None if digest is None else self._source.manifest(digest)
        if digest is None or raw is None:
            return
        where = f"attestation {digest}"
        wrong = check_document(raw, None, digest, where)
        self.found.findings += wrong
        if wrong:
            return
        try:
            for layer in parse_manifest(raw, where).value.layers[:MAX_ARTIFACTS]:
                data = self._layer(layer, where) if layer.media_type == DSSE_TYPE else None
                if data is not None:
                    self._add_envelope(read_envelope(data, where), subject, where)
        except RefusedError as error:
            self.found.findings.append(refusal(error, where))


def _not_about(artifact: ImageManifest, digest: Digest, subject: Digest) -> str:
    named = artifact.subject.digest if artifact.subject else "no subject"
    return "" if named == subject else f"{digest} is about {named}, not {subject}"


def _one_layer(artifact: ImageManifest, kind: str, where: str) -> None:
    types = [layer.media_type for layer in artifact.layers]
    if types != [kind]:
        raise RefusedError(
            "SCHEMA", "an attachment has one layer of its own type", where=where, expected=kind,
            actual=", ".join(types) or "none",
        )  # fmt: skip
