"""`verify`: judge a delivered image again, from its bytes and evidence alone; no recorded verdict counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tic_manifest.errors import RefusedError
from tic_manifest.formats.strict_json import read_model
from tic_manifest.model.base import Digest
from tic_manifest.model.delivery import Statement, VerifyReport
from tic_manifest.model.files import EffectiveTree
from tic_manifest.model.lock import Lock
from tic_manifest.model.oci import ImageReference, JudgedImage
from tic_manifest.model.policy import Policy
from tic_manifest.model.verdict import Check, Finding, Report, State, Status, check_of, finding, note, report
from tic_manifest.ports import BlobReader, ImageSource, Progress, TreeReader
from tic_manifest.rules import chain, start
from tic_manifest.rules import image as rules
from tic_manifest.rules.dossier import read_dossier
from tic_manifest.rules.policy import check_base, with_states, without_unasked
from tic_manifest.rules.records import check_records
from tic_manifest.rules.source_evidence import Sources, read_sources
from tic_manifest.rules.sources import CHECK, check_sources, row_of, with_blob_id
from tic_manifest.rules.tree import check_tree, lay_over
from tic_manifest.stages import verify_image
from tic_manifest.stages.attached import (
    EvidenceFiles,
    Signers,
    check_named_twice,
    find_attached,
)
from tic_manifest.stages.verify_archive import reencoded

DeliveryJudge = Callable[
    [Statement, Mapping[str, bytes], JudgedImage], tuple[Sequence[Check], Sequence[Finding]]
]
"""Judges a delivery manifest by its evidence; raises RefusedError for evidence that is malformed."""

LOCK = "lock.json"


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the caller asks for. `keys` names accepted signers; none means that no signature is asked."""

    depth: verify_image.Depth = "content"
    all_platforms: bool = False
    keys: Sequence[str] = ()
    signers: Signers | None = None
    policy: Policy = field(default_factory=lambda: Policy(schema="tic/policy/v1"))


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What judging needs from outside: who reads blobs, who judges evidence, whom to tell."""

    reader: BlobReader
    judge: DeliveryJudge
    progress: Progress
    trees: TreeReader | None = None
    """Needed for the depth `files` alone."""


def verify(source: ImageSource, reference: ImageReference, options: Options, tools: Tools) -> VerifyReport:
    """Judge the image that `reference` names by digest.

    Raises PersonError DIGEST_KIND, UnavailableError (NOT_FOUND, NETWORK, AUTH).
    """
    if reference.digest is None:
        raise ValueError("verify needs a digest; see formats.reference.require_digest")
    made = _Verification(source, reference.digest, options, tools).run()
    other = any(one.code == "MANIFEST_DIGEST" for one in made.findings)
    if reference.archive is None or not other:
        return made
    said = reencoded(source, reference.digest)
    return made.model_copy(update={"findings": (*made.findings, *said)})


class _Verification:
    """One run: what was read, and the checks and findings that followed."""

    def __init__(self, source: ImageSource, digest: Digest, options: Options, tools: Tools) -> None:
        self._options, self._tools = options, tools
        self._digest = digest
        self._read = verify_image.read_image(source, digest)
        self._source = self._read.source
        self._attached = find_attached(self._source, self._subjects(), options.signers)
        self._counted: dict[Digest, chain.Candidate] = {}
        self._sources: dict[Digest, Sources | Finding | str] = {}
        self._checks: list[Check] = []
        self._findings: list[Finding] = []

    def run(self) -> VerifyReport:
        """Judge in order: what is attached, which platforms, blobs, then each delivery manifest."""
        self._deliveries()
        platforms = self._platforms()
        content = self._blobs(platforms)
        for image in platforms:
            self._platform(image)
            if self._options.depth == "files":
                self._files(image)
        read = self._read
        rows = [*verify_image.checks_of(read, self._options.depth, content), *self._checks]
        checks = with_states(rows, self._options.policy)
        findings = [*read.documents, *read.presence, *(content or []), *self._findings]
        findings = without_unasked(findings, checks)
        notes = [*read.notes, *self._attached.notes, *self._attached.foreign_sboms()]
        return self._report(report("verify", checks, [*findings, *notes], subjects=self._labels()))

    def _row(self, check_id: str, found: Sequence[Finding], subject: str = "") -> None:
        check = check_of(check_id, found, subject=subject)
        codes = sorted({one.code for one in found if not one.note and one.status is check.status})
        self._checks.append(check.model_copy(update={"reason": f"see {', '.join(codes)}" if codes else ""}))
        self._findings += found

    def _subjects(self) -> list[Digest]:
        index = [self._read.index_digest] if self._read.index_digest else []
        return [*(one.platform_digest for one in self._read.images), *index]

    def _deliveries(self) -> None:
        """The delivery manifests that count; rows for what is attached and who signed."""
        candidates, keys = self._attached.candidates, self._options.keys
        self._row("delivery.attached", [*self._attached.findings, *chain.check_subjects(candidates)])
        if keys:
            missing = [] if candidates else [_missing("delivery manifest")]
            self._row("authenticity", missing or chain.check_signed(candidates, keys))
        else:
            reason = "not checked: neither --key nor the policy names a signer"
            self._checks.append(_out_of_scope("authenticity", reason))
        self._counted, said = chain.accepted(candidates, keys)
        self._findings += said

    def _platforms(self) -> list[JudgedImage]:
        """The platforms that are judged: those with a delivery manifest, all where none has one."""
        images = self._read.images
        covered = [image for image in images if self._about(image)]
        bare = [image for image in images if image not in covered] if covered else []
        if self._options.all_platforms and images:
            found = [_uncovered(image) for image in bare]
            self._row("platforms", found)
        else:
            self._findings += [
                note("PLATFORM_UNCOVERED", _name(image), actual=str(image.platform)) for image in bare
            ]
        return covered or list(images)

    def _about(self, image: JudgedImage) -> dict[Digest, chain.Candidate]:
        return {
            digest: one
            for digest, one in self._counted.items()
            if one.statement.value.names(image.platform_digest)
        }

    def _blobs(self, platforms: Sequence[JudgedImage]) -> list[Finding] | None:
        verify_image.select(self._read, [one.platform_digest for one in platforms])
        for descriptor, subject in self._attached.blobs:
            verify_image.register(self._read, descriptor, subject)
            self._read.wanted.append((descriptor.digest, descriptor.size))
        verify_image.check_presence(self._read)
        if self._options.depth == "identity":
            return None
        if self._options.depth == "files" and self._tools.trees:
            self._sources = {one.platform_digest: self._sources_of(one) for one in platforms}
            wanted = with_blob_id(one for one in self._sources.values() if isinstance(one, Sources))
            return verify_image.check_files(self._read, self._tools.trees, self._tools.progress, wanted)
        return verify_image.check_bytes(self._read, self._tools.reader, self._tools.progress)

    def _files(self, image: JudgedImage) -> None:
        """The effective tree of a platform: paths, RECORDs, wheels and the trees of the heads."""
        name, trees = _name(image), verify_image.layers_of(self._read, image)
        layers = [tree for tree in trees if tree is not None]
        if len(layers) != len(trees) or not layers:
            self._checks.append(_undecided("files.tree", "a layer could not be read"))
            return
        tree = lay_over(layers)
        self._row("files.tree", check_tree(tree, layers, name), name)
        if any(layer.limit for layer in layers):
            reason = "a layer holds more than is kept in memory"
            self._checks += [_undecided(one, reason) for one in ("files.records", CHECK)]
        else:
            self._row("files.records", check_records(tree, name), name)
            self._from_sources(tree, image)

    def _from_sources(self, tree: EffectiveTree, image: JudgedImage) -> None:
        """Files against wheels and heads; malformed evidence is refused, absent evidence is not run."""
        name, sources = _name(image), self._sources.get(image.platform_digest, "nothing was read")
        if isinstance(sources, str):
            rows = (CHECK, start.CHECK)
            self._checks += [
                Check(id=one, status=Status.NOT_RUN, subject=name, reason=sources) for one in rows
            ]
        elif isinstance(sources, Finding):
            self._row(CHECK, [sources], name)
        else:
            self._start(image, sources)
            found = check_sources(tree, sources, name)
            self._row(CHECK, found, name)
            row = row_of(found, sources, name)
            if row.status is Status.NOT_RUN:
                self._checks[-1] = row

    def _start(self, image: JudgedImage, sources: Sources) -> None:
        """How the image starts: as its base does, with the recipe's and the policy's variables."""
        declared = {**sources.env, **self._options.policy.env}
        where, base = f"config {image.manifest.config.digest}", sources.base
        found = None if base is None else start.check_start(image.config, base, declared, where)
        self._findings += found or []
        self._checks.append(start.row_of(found, _name(image)))

    def _sources_of(self, image: JudgedImage) -> Sources | Finding | str:
        """Evidence about sources; a finding where it is refused, words where there is none."""
        about = self._about(image)
        heads = chain.heads(about)
        if len(heads) != 1:
            return "no delivery manifest says what the image is made from"
        files = EvidenceFiles(self._source, about[heads[0]].statement.value)
        if LOCK not in files:
            return "the lock is not attached here"
        try:
            return read_sources(read_dossier(files))
        except RefusedError as error:
            return rules.refusal(error)

    def _platform(self, image: JudgedImage) -> None:
        about, name = self._about(image), _name(image)
        heads = chain.heads(about)
        if len(heads) != 1:
            self._row("delivery.manifest", chain.check_chain(about, name) or [_missing(name)], name)
            self._row("image.environment", self._environment(image, None), name)
            return
        statement, said = about[heads[0]].statement.value, f"delivery manifest {heads[0]}"
        files = EvidenceFiles(self._source, statement)
        self._row("delivery.manifest", check_named_twice(statement, said), name)
        missing = _evidence(files, statement)
        self._row("delivery.evidence", missing, said)
        if self._options.policy.base_images:
            self._row("image.base", check_base(statement, self._options.policy, name), name)
        self._evidence(statement, files, image, whole=not missing)

    def _evidence(
        self, statement: Statement, files: EvidenceFiles, image: JudgedImage, *, whole: bool
    ) -> None:
        try:
            lock = files.get(LOCK)
            self._row("image.environment", self._environment(image, lock), _name(image))
            if lock is None and not whole:
                self._checks.append(_undecided("delivery.documents", "the lock is not attached here"))
                return
            checks, findings = self._tools.judge(statement, files, image)
            self._checks += checks if whole else [_unproven(check) for check in checks]
            self._findings += findings if whole else [one for one in findings if one.code != "OVERCLAIM"]
        except RefusedError as error:
            self._row("delivery.documents", [rules.refusal(error)])

    def _environment(self, image: JudgedImage, lock: bytes | None) -> list[Finding]:
        allowed: dict[str, str] | None = dict(self._options.policy.env) or None
        if lock is not None:
            env = read_model(lock, Lock, "lock.json").recipe.get("env")
            declared = env if isinstance(env, dict) else {}
            allowed = {**{name: str(value) for name, value in declared.items()}, **(allowed or {})}
        return rules.check_environment(image.config, allowed, f"config {image.manifest.config.digest}")

    def _labels(self) -> list[str]:
        read = self._read
        index = [f"image index {read.index_digest}"] if read.index_digest else []
        rows = [
            f"platform manifest {one.platform_digest} ({one.platform}), config {one.manifest.config.digest}"
            for one in read.images
        ]
        return [*index, *rows] or [f"{read.kinds.get(self._digest, 'document')} {self._digest}"]

    def _report(self, made: Report) -> VerifyReport:
        signers = {name for one in self._counted.values() for name in one.signers}
        names = sorted(signers & set(self._options.keys))
        unsigned = "no accepted signature" if self._options.keys else "not checked"
        return VerifyReport(
            **dict(made),
            depth=self._options.depth,
            authenticity=f"signed by {', '.join(names)}" if names else unsigned,
            not_read=verify_image.not_read(self._read, self._options.depth),
            kinds={**self._read.kinds, **self._attached.kinds},
        )


def _out_of_scope(check_id: str, reason: str) -> Check:
    return Check(id=check_id, state=State.OUT_OF_SCOPE, status=Status.NOT_RUN, reason=reason)


def _undecided(check_id: str, reason: str) -> Check:
    return Check(id=check_id, status=Status.INCONCLUSIVE, reason=reason)


def _unproven(check: Check) -> Check:
    """What a delivery manifest says cannot be held against evidence that is not there."""
    if check.id != "delivery.claims":
        return check
    return check.model_copy(update={"status": Status.INCONCLUSIVE, "reason": "evidence is missing"})


def _name(image: JudgedImage) -> str:
    return f"platform manifest {image.platform_digest}"


def _uncovered(image: JudgedImage) -> Finding:
    return finding("PLATFORM_UNCOVERED", Status.INCONCLUSIVE, _name(image), actual=str(image.platform))


def _evidence(files: EvidenceFiles, statement: Statement) -> list[Finding]:
    return [
        finding(
            "EVIDENCE_MISSING", Status.INCONCLUSIVE, one.name, expected=one.digest,
            evidence={"size": one.size},
        )
        for one in statement.predicate.evidence
        if one.name not in files
    ]  # fmt: skip


def _missing(subject: str) -> Finding:
    remedy = "copy what is attached as well: skopeo copy --all of the tag sha256-<hex>, or oras cp -r"
    return finding("DELIVERY_MISSING", Status.INCONCLUSIVE, subject, remedy=remedy)
