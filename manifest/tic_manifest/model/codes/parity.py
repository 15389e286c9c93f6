"""Codes of final validation (rules/parity.md, 1.2: the admissibility ladder)."""

from __future__ import annotations

from tic_manifest.model.codes import Code

LADDER = "rules/parity.md 1.2"

CODES = (
    Code(
        name="PARITY_MISMATCH",
        meaning="selected-token log-probabilities differ in their bytes",
        remedy="localize the first mismatch: same inputs, operator by operator, on both sides",
        source="report template, Verification; rules/parity.md 1.4",
    ),
    Code(
        name="SCORES_INVALID",
        meaning="scores cannot be compared",
        remedy="run the worker again; its record, masks, lengths and bytes must agree",
        source=LADDER + ", row 3",
        variants={
            "missing": "a side of the comparison left no scores",
            "hash": "the bytes of the scores are not those that the record names",
            "shape": "the bytes of the scores do not have the shape that the record names",
        },
    ),
    Code(
        name="UNBOUND",
        meaning="the two sides are not about the same thing",
        remedy="score the same tokens with the same checkpoint on both sides",
        source=LADDER + ", row 4; VER-6",
        variants={
            "tokens": "the two sides scored different tokens",
            "checkpoint": "the two sides held different checkpoints",
            "shape": "the two sides differ in dtype, lengths or mask",
            "process": "both sides come from one process",
        },
    ),
    Code(
        name="VACUOUS",
        meaning="nothing was compared: there is no valid token",
        remedy="score at least one valid token",
        source=LADDER + ", row 5",
    ),
    Code(
        name="NONFINITE",
        meaning="a score of a valid token is not finite",
        remedy="find where the NaN or infinity comes from; equal bytes do not make it right",
        source=LADDER + ", row 6; rules/parity.md 1.4",
    ),
    Code(
        name="NO_TREATMENT",
        meaning="the recorded batches do not show the treatment that the comparison names",
        remedy="regroup or reorder the requests and let the engine record its batches",
        source=LADDER + ", row 8; real-inputs.md, traps",
        variants={"vacuous": "every step computed the same number of tokens: reordering changed no shape"},
    ),
    Code(
        name="INTERVENTION",
        meaning="a side ran with a diagnostic intervention",
        remedy="run the worker without it",
        source="report template, Cause and change",
    ),
    Code(
        name="GRAD_NOT_ENABLED",
        meaning="scores said to come from a grad-enabled forward carry no gradient",
        remedy="read requires_grad and grad_fn from the tensor that holds the scores",
        source="VER-7",
    ),
    Code(
        name="NOT_RUN",
        meaning="a required check was not run",
        remedy="run it, or let a person set it out of scope beforehand",
        source="contract, section 1",
    ),
    Code(
        name="NO_CONTROL",
        meaning="the control run (A/A) is not equal, so a difference under treatment says nothing",
        remedy="make the repeat equal first",
        source=LADDER + ", row 7",
    ),
)
