"""`report`: the whole report template, filled from the evidence of one delivery, which is judged again."""

from __future__ import annotations

from collections.abc import Mapping

from tic_manifest.model.base import Digest
from tic_manifest.model.delivery import Statement
from tic_manifest.model.document import Document, Section
from tic_manifest.model.oci import JudgedImage
from tic_manifest.model.verdict import Outcome, report
from tic_manifest.rules.delivery import Judged, judge_delivery, judge_evidence
from tic_manifest.rules.dossier import read_dossier
from tic_manifest.stages.report_context import Context, make_context
from tic_manifest.stages.report_delivery import delivery_manifest
from tic_manifest.stages.report_retention import corrections, experiment_record, remaining
from tic_manifest.stages.report_scope import immutable_experiment, outcome_and_scope
from tic_manifest.stages.report_training import performance, proxy_and_gradients, sft_controls
from tic_manifest.stages.report_verification import cause, symptom, verification

TITLE = "Train\u2013inference consistency report"


def document(
    evidence: Mapping[str, bytes], image: JudgedImage, attached: tuple[Statement, Digest] | None
) -> Document:
    """The report of a delivery. `attached` is its delivery manifest with the digest of its bytes.

    Raises RefusedError for evidence that is malformed.
    """
    dossier = read_dossier(evidence)
    judged = judge_evidence(dossier, image)
    if attached is not None:
        checks, findings = judge_delivery(attached[0], evidence, image)
        judged = Judged(checks=tuple(checks), findings=tuple(findings), rows=judged.rows)
    verdict = report("report", judged.checks, judged.findings, subjects=[image.platform_digest])
    context = make_context(dossier, judged, image, attached)
    return Document(
        schema_="tic/report/v1",
        title=TITLE,
        outcome=verdict.outcome,
        platform_digest=image.platform_digest,
        index_digest=image.index_digest,
        lock_digest=dossier.lock.digest,
        sections=_sections(context, verdict.outcome),
        verdict=verdict,
    )


def _sections(context: Context, outcome: Outcome) -> tuple[Section, ...]:
    """The sections of the template, in its order."""
    return (
        outcome_and_scope(context, outcome),
        immutable_experiment(context),
        delivery_manifest(context),
        proxy_and_gradients(context),
        symptom(context),
        cause(context),
        verification(context),
        sft_controls(context),
        performance(context),
        corrections(context),
        remaining(context),
        experiment_record(context),
    )
