"""The delivery half of `verify`: subjects, chains, platforms, evidence (rules/image-verify.md C11, C12, S05, S06, S21)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tic_manifest.adapters.attach import attach
from tic_manifest.adapters.blobs import read_blobs
from tic_manifest.adapters.layout import LayoutSource
from tic_manifest.errors import RefusedError
from tic_manifest.formats.reference import parse_reference
from tic_manifest.model.delivery import VerifyReport
from tic_manifest.model.verdict import Check, Status, finding
from tic_manifest.stages.verify import Options, Tools, verify

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from layouts import Layout, compact, digest_of
from quiet import Quiet
from statements import EVIDENCE, delivery, descriptor

FILES = {"runs/rollout/scores.bin": EVIDENCE["runs/rollout/scores.bin"]}


def agree(*_: Any) -> tuple[list[Check], list[Any]]:
    return [Check(id="judged", status=Status.PASS)], []


def judge(layout: Layout, digest: str, decide: Any = agree, **options: Any) -> VerifyReport:
    tools = Tools(reader=read_blobs, judge=decide, progress=Quiet())
    reference = parse_reference(f"oci:{layout.root}@{digest}")
    return verify(LayoutSource(layout.root), reference, Options(**options), tools)


def codes(report: VerifyReport) -> set[str]:
    return {one.code for one in report.findings if not one.note}


def notes(report: VerifyReport) -> set[str]:
    return {one.code for one in report.findings if one.note}


class Made:
    """A layout with an index of some platforms."""

    def __init__(self, root: Path, *architectures: str) -> None:
        self.layout = Layout(root)
        children = [self.layout.image(architecture=one) for one in architectures]
        self.images = [descriptor(one) for one in children]
        self.index = descriptor(self.layout.index(children))
        self.layout.save(self.layout.index(children))

    def deliver(self, which: int = 0, supersedes: str | None = None, **evidence: bytes) -> str:
        files = FILES | evidence
        raw = delivery(self.images[which].digest, self.index.digest, files, supersedes)
        attach(self.layout.root, self.images[which], self.index, raw, files)
        return digest_of(raw)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "layout", "amd64")


def test_a_delivered_image_passes_by_index_and_by_platform(made: Made) -> None:
    made.deliver()
    for digest in (made.index.digest, made.images[0].digest):
        report = judge(made.layout, digest)
        assert (report.outcome.value, codes(report), notes(report)) == ("pass", set(), set())
        assert report.authenticity == "not checked"


def test_the_judge_gets_evidence_by_name_and_the_image(made: Made) -> None:
    seen: list[Any] = []

    def decide(statement: Any, evidence: Any, image: Any) -> Any:
        seen.append((dict(evidence), image.platform_digest, image.index_digest))
        return [Check(id="judged", status=Status.FAIL)], [finding("STALE", Status.FAIL, "receipt")]

    made.deliver()
    report = judge(made.layout, made.index.digest, decide)
    assert seen == [(FILES, made.images[0].digest, made.index.digest)]
    assert (report.exit_code, codes(report)) == (1, {"STALE"})


def test_evidence_that_is_refused_keeps_every_other_finding(made: Made) -> None:
    def decide(*_: Any) -> Any:
        raise RefusedError("SCHEMA", "a receipt is malformed", where="receipts/build.json")

    made.deliver()
    made.layout.flip(next(iter(made.layout.path(made.images[0].digest).parent.iterdir())).name)
    report = judge(made.layout, made.index.digest, decide)
    assert report.exit_code == 4 and len(codes(report)) > 1


def test_a_delivery_of_another_image_fails(tmp_path: Path) -> None:
    made = Made(tmp_path / "layout", "amd64", "arm64")
    raw = delivery(made.images[0].digest, None, FILES)
    attach(made.layout.root, made.images[1], None, raw, FILES)
    report = judge(made.layout, made.images[1].digest)
    assert report.exit_code == 1 and codes(report) == {"SUBJECT", "DELIVERY_MISSING"}


def test_two_heads_are_refused_and_a_chain_has_one(made: Made) -> None:
    first = made.deliver()
    made.deliver(**{"approval.json": b"{}"})
    report = judge(made.layout, made.index.digest)
    assert (report.exit_code, codes(report)) == (4, {"CONFLICT"})
    second = digest_of(delivery(made.images[0].digest, made.index.digest, FILES | {"approval.json": b"{}"}))
    assert {one.code: one.actual for one in report.findings}["CONFLICT"] == sorted([first, second])


def test_the_head_of_a_chain_is_judged(made: Made) -> None:
    first = made.deliver()
    second = made.deliver(supersedes=first, **{"approval.json": b"{}"})
    seen: list[Any] = []

    def decide(statement: Any, *_: Any) -> Any:
        seen.append(statement.predicate.supersedes)
        return agree()

    report = judge(made.layout, made.index.digest, decide)
    assert report.outcome.value == "pass" and seen == [first]
    assert report.kinds[second] == report.kinds[first] == "delivery manifest"


def test_a_platform_without_evidence_is_noted_and_counts_when_asked(tmp_path: Path) -> None:
    made = Made(tmp_path / "layout", "amd64", "arm64")
    made.deliver()
    report = judge(made.layout, made.index.digest)
    assert report.outcome.value == "pass" and notes(report) == {"PLATFORM_UNCOVERED"}
    report = judge(made.layout, made.index.digest, all_platforms=True)
    assert (report.exit_code, codes(report)) == (3, {"PLATFORM_UNCOVERED"})
    assert [one.actual for one in report.findings] == ["linux/arm64"]


def test_missing_and_changed_evidence_is_no_pass(made: Made) -> None:
    made.deliver()
    blob = digest_of(FILES["runs/rollout/scores.bin"])
    made.layout.flip(blob, at=0)
    report = judge(made.layout, made.index.digest)
    assert (report.exit_code, codes(report)) == (1, {"BLOB_DIGEST", "EVIDENCE_MISSING"})
    assert judge(made.layout, made.index.digest, depth="identity").exit_code == 3
    made.layout.path(blob).unlink()
    assert codes(judge(made.layout, made.index.digest)) == {"BLOB_MISSING", "EVIDENCE_MISSING"}


def test_a_foreign_artifact_is_listed_and_not_parsed(made: Made) -> None:
    made.deliver()
    layout = made.layout
    subject = {
        "mediaType": made.images[0].media_type,
        "digest": made.images[0].digest,
        "size": made.images[0].size,
    }
    config = layout.blob(b"{}", "application/vnd.oci.empty.v1+json")
    foreign = layout.manifest(
        config, [layout.blob(b"\0not json", "text/plain")], subject=subject, artifactType="a/b"
    )
    source = LayoutSource(layout.root)
    old = source.referrers(made.images[0].digest).entries
    listed = [one.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True) for one in old]
    layout.entries = [
        {"mediaType": made.index.media_type, "digest": made.index.digest, "size": made.index.size}
    ]
    layout.save(layout.index([*listed, foreign]), made.images[0].digest.replace(":", "-"))
    report = judge(layout, made.images[0].digest)
    assert report.outcome.value == "pass" and notes(report) == {"FOREIGN_ARTIFACT"}


STATEMENTS = [
    ("unknown field", lambda raw: raw.replace(b'"predicate":{', b'"predicate":{"extra":1,'), "SCHEMA"),
    (
        "wrong type",
        lambda raw: raw.replace(b'"createdAt":"2026-01-01T00:00:00Z"', b'"createdAt":5'),
        "SCHEMA",
    ),
    ("missing", lambda raw: raw.replace(b'"createdAt":"2026-01-01T00:00:00Z",', b""), "SCHEMA"),
    ("later predicate", lambda raw: raw.replace(b"/delivery/v1", b"/delivery/v9", 1), "SCHEMA_VERSION"),
    ("later schema", lambda raw: raw.replace(b"tic/delivery/v1", b"tic/delivery/v2"), "SCHEMA_VERSION"),
    ("case", lambda raw: raw.replace(b'"predicate":{', b'"Predicate":{},"predicate":{'), "JSON_CASE_VARIANT"),
    ("inner case", lambda raw: raw.replace(b'"runId":', b'"RunId":"","runId":'), "JSON_CASE_VARIANT"),
    (
        "twice",
        lambda raw: raw.replace(b'"predicate":{', b'"predicate":{},"predicate":{'),
        "JSON_DUPLICATE_KEY",
    ),
    ("not json", lambda raw: raw[:-3], "JSON_MALFORMED"),
    ("a list", lambda raw: b"[" + raw + b"]", "SCHEMA"),
]


@pytest.mark.parametrize(
    ("edit", "code"), [row[1:] for row in STATEMENTS], ids=[row[0] for row in STATEMENTS]
)
def test_a_statement_that_does_not_fit_is_refused(made: Made, edit: Any, code: str) -> None:
    raw = delivery(made.images[0].digest, made.index.digest, FILES)
    spoiled = edit(raw)
    assert spoiled != raw
    attach(made.layout.root, made.images[0], made.index, spoiled, FILES)
    report = judge(made.layout, made.images[0].digest)
    assert report.exit_code == 4
    assert codes(report) == {code, "DELIVERY_MISSING"}


def test_another_predicate_is_foreign_and_not_ours(made: Made) -> None:
    raw = compact(
        {"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://slsa.dev/provenance/v1"}
    )
    attach(made.layout.root, made.images[0], None, raw, {})
    report = judge(made.layout, made.images[0].digest)
    assert (codes(report), notes(report)) == ({"DELIVERY_MISSING"}, {"FOREIGN_ARTIFACT"})


class Key:
    """A key pair made for one test."""

    def __init__(self, name: str) -> None:
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from tic_manifest.formats.signing import read_public_key

        key = Ed25519PrivateKey.generate()
        self.pem = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
        spki = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
        self.public = read_public_key(spki, name, name)


def signed_by(made: Made, key: Key | None, supersedes: str | None = None, **evidence: bytes) -> str:
    from tic_manifest.formats.signing import sign_statement

    files = FILES | evidence
    raw = delivery(made.images[0].digest, made.index.digest, files, supersedes)
    signed = sign_statement(raw, key.pem, None, "key") if key else None
    attach(made.layout.root, made.images[0], made.index, raw, files, signed=signed)
    return digest_of(raw)


def demand(made: Made, *keys: Key) -> VerifyReport:
    from functools import partial

    from tic_manifest.formats.signing import signers_of

    public = [key.public for key in keys]
    names = [key.name for key in public]
    return judge(made.layout, made.index.digest, keys=names, signers=partial(signers_of, public))


def test_a_signed_delivery_names_who_signed(made: Made) -> None:
    alice, bob = Key("alice"), Key("bob")
    signed_by(made, alice)
    report = demand(made, alice, bob)
    assert (report.outcome.value, report.authenticity) == ("pass", "signed by alice")
    plain = judge(made.layout, made.index.digest)
    assert (plain.outcome.value, plain.authenticity) == ("pass", "not checked")


def test_a_good_signature_by_somebody_else_is_an_identity_and_none_is_unsigned(made: Made) -> None:
    signed_by(made, Key("mallory"))
    report = demand(made, Key("alice"))
    assert report.exit_code == 1 and codes(report) >= {"IDENTITY"} and "UNSIGNED" not in codes(report)


def test_no_signature_where_one_is_demanded(made: Made) -> None:
    signed_by(made, None)
    report = demand(made, Key("alice"))
    assert report.exit_code == 1 and codes(report) >= {"UNSIGNED"} and "IDENTITY" not in codes(report)


def test_others_do_not_disturb_a_signed_delivery(made: Made) -> None:
    alice = Key("alice")
    first = signed_by(made, alice)
    signed_by(made, None, supersedes=first, **{"a.json": b"unsigned"})
    signed_by(made, Key("mallory"), supersedes=first, **{"b.json": b"signed by another"})
    report = demand(made, alice)
    assert (report.outcome.value, notes(report)) == ("pass", {"SIGNER_IGNORED"})
    assert judge(made.layout, made.index.digest).exit_code == 4, "without a key the two are in conflict"


def test_the_form_of_cosign_2_alone_is_read_too(made: Made) -> None:
    alice = Key("alice")
    signed_by(made, alice)
    source = LayoutSource(made.layout.root)
    tags = {f"{one.digest.replace(':', '-')}.att": source for one in (made.images[0], made.index)}
    found = {tag: source.resolve(tag) for tag in tags}
    assert all(found.values())
    made.layout.entries = [
        {"mediaType": made.index.media_type, "digest": made.index.digest, "size": made.index.size}
    ]
    for tag, digest in found.items():
        path = made.layout.path(str(digest))
        media = "application/vnd.oci.image.manifest.v1+json"
        made.layout.save({"mediaType": media, "digest": digest, "size": path.stat().st_size}, tag)
    assert demand(made, alice).outcome.value == "pass"
