"""Which of several delivery manifests of one image counts (contract, section 1: delivery manifest).

A later one names the earlier in `supersedes`; the single head of that chain is judged, the rest is history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tic_manifest.formats.statement import ReadStatement
from tic_manifest.model.base import Digest
from tic_manifest.model.verdict import Finding, Status, finding, note


@dataclass(kw_only=True)
class Candidate:
    """A delivery manifest that was found: what it is attached to and who is proved to have signed it.

    `signed` says whether there was any signature at all, good or not.
    """

    statement: ReadStatement
    attached_to: set[Digest] = field(default_factory=set)
    signers: set[str] = field(default_factory=set)
    signed: bool = False


def heads(candidates: Mapping[Digest, Candidate]) -> list[Digest]:
    """The delivery manifests that no other one of the set supersedes, sorted."""
    replaced = {one.statement.value.predicate.supersedes for one in candidates.values()}
    return sorted(digest for digest in candidates if digest not in replaced)


def check_chain(candidates: Mapping[Digest, Candidate], subject: str) -> list[Finding]:
    """Exactly one head; two heads or a cycle are ambiguous and refused (C12)."""
    found = heads(candidates)
    if len(found) == 1 or not candidates:
        return []
    what = (
        "several delivery manifests stand side by side and none supersedes the others"
        if found
        else "delivery manifests supersede each other in a circle"
    )
    actual = found or sorted(candidates)
    return [
        finding("CONFLICT", Status.FAIL, subject, what=what, expected="one head", actual=actual, refused=True)
    ]


def check_subjects(candidates: Mapping[Digest, Candidate]) -> list[Finding]:
    """A delivery manifest names the document that it is attached to (C11)."""
    found: list[Finding] = []
    for digest, one in candidates.items():
        named = ["sha256:" + subject.digest.sha256 for subject in one.statement.value.subject]
        found += [
            finding("SUBJECT", Status.FAIL, f"delivery manifest {digest}", expected=about, actual=named)
            for about in sorted(one.attached_to)
            if about not in named
        ]
    return found


def accepted(
    candidates: Mapping[Digest, Candidate], names: Sequence[str]
) -> tuple[dict[Digest, Candidate], list[Finding]]:
    """The delivery manifests that count, and what is to be said of the others (contract, section 6).

    `names` are the accepted signers; none means that no signature is asked for.
    """
    if not names:
        return dict(candidates), []
    counted = {digest: one for digest, one in candidates.items() if one.signers & set(names)}
    said = [
        note("SIGNER_IGNORED", f"delivery manifest {digest}", actual=_who(one))
        for digest, one in candidates.items()
        if digest not in counted
    ]
    return counted, said


def _who(one: Candidate) -> str:
    if one.signers:
        return "signed by " + ", ".join(sorted(one.signers))
    return "signed" if one.signed else "not signed"


def check_signed(candidates: Mapping[Digest, Candidate], keys: Sequence[str]) -> list[Finding]:
    """At least one delivery manifest is signed by an accepted signer (S24, S25)."""
    if not candidates or any(one.signers & set(keys) for one in candidates.values()):
        return []
    code = "IDENTITY" if any(one.signed for one in candidates.values()) else "UNSIGNED"
    others = sorted({name for one in candidates.values() for name in one.signers})
    return [finding(code, Status.FAIL, "delivery manifest", expected=list(keys), actual=others or None)]
