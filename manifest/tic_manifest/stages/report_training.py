"""Sections on training: proxy coverage and gradients, SFT controls, performance."""

from __future__ import annotations

from pydantic import JsonValue

from tic_manifest.model.document import Entry, Facts, Remark, Section, facts, listed, not_run, said
from tic_manifest.stages.report_context import Context, compact, of_check, per_record

TRAINING = "(when training is in scope)"
OVERLAP = Remark(text="Overlapping GPU ranges or percentages from separate ablations are not summed.")


def proxy_and_gradients(context: Context) -> Section:
    """Coverage of the full model by the proxy, and the gradient contract."""
    blocks = (_coverage(context), _modules(context), _reference(context), _gradients(context))
    return Section(heading=f"Proxy coverage and gradient contract {TRAINING}", blocks=blocks)


def _asked(context: Context, label: str, check_id: str) -> tuple[str, Entry]:
    """A place of the template that only a check of the checklist could fill."""
    return label, of_check(context, f"acceptance.{check_id}")


def _coverage(context: Context) -> Facts:
    return facts(
        "Proxy coverage",
        _asked(context, "Full-model feature: proxy layer/module and test artifact", "proxy_coverage"),
        _asked(context, "Omitted depth", "omitted_depth"),
        _asked(context, "Omitted geometry", "omitted_geometry"),
        _asked(context, "Omitted topology", "omitted_topology"),
        _asked(context, "Omitted execution paths", "omitted_paths"),
    )


def _modules(context: Context) -> Facts:
    names = sorted(_tensors(context))
    variables = [f"{name} ({len(_tensors(context)[name])} tensors)" for name in names]
    return facts(
        "Per module",
        _asked(context, "Visible forward semantics", "forward_semantics"),
        ("Trainable variables", listed(variables, not_run("no worker record lists trained tensors"))),
        _asked(context, "Master vs dequantized surrogate values", "surrogate_values"),
        _asked(context, "STE / clipping / scale rules", "ste_rules"),
        _asked(context, "Fixed discrete choices and differentiable scores", "discrete_choices"),
        _asked(context, "VJP accumulation / collectives", "vjp"),
        _asked(context, "Saved / recomputed state with its memory cost", "saved_state"),
    )


def _reference(context: Context) -> Facts:
    return facts(
        "Gradient contract",
        _asked(
            context,
            "Independent reference, and why it does not call the tested backward",
            "gradient_reference",
        ),
        _asked(context, "Shape / dtype / layout coverage", "gradient_shapes"),
        _asked(context, "Random upstream gradients", "gradient_random"),
        _asked(context, "Zero upstream gradients", "gradient_zero"),
        _asked(context, "Sparse upstream gradients", "gradient_sparse"),
        _asked(context, "Captured upstream gradients", "gradient_captured"),
    )


def _gradients(context: Context) -> Facts:
    return facts(
        "Per input / parameter",
        ("Missing / nonfinite gradients", _missing(context)),
        _asked(context, "Max absolute error", "gradient_max_abs"),
        _asked(context, "Relative L2", "gradient_relative_l2"),
        ("Norms", _per_tensor(context, "grad_norm")),
        _asked(context, "Cosine where defined", "gradient_cosine"),
        _asked(context, "Predefined thresholds with rationale", "gradient_thresholds"),
        ("Original forward-byte comparison", said("see Verification, one result for each comparison")),
        ("One-step master-parameter deltas", _per_tensor(context, "update_norm")),
    )


def _tensors(context: Context) -> dict[str, dict[str, dict[str, JsonValue]]]:
    """`run NAME` to the tensors of its recorded optimizer step; only runs that recorded one."""
    found: dict[str, dict[str, dict[str, JsonValue]]] = {}
    for name, record in context.records.items():
        update = (record.model_extra or {}).get("update")
        tensors = update.get("tensors") if isinstance(update, dict) else None
        if isinstance(tensors, dict):
            found[f"run {name}"] = {key: one for key, one in tensors.items() if isinstance(one, dict)}
    return found


def _missing(context: Context) -> Entry:
    """Counted over the tensors that the record lists: no gradient, or one that is not finite."""
    lines = []
    for run, tensors in _tensors(context).items():
        absent = [name for name, one in tensors.items() if one.get("grad_norm") is None]
        broken = [
            name for name, one in tensors.items() if one.get("grad_finite") is not True and name not in absent
        ]
        lines.append(f"{run}: {len(absent)} missing, {len(broken)} nonfinite, of {len(tensors)} tensors")
        lines += [f"{run}: missing {name}" for name in absent] + [
            f"{run}: nonfinite {name}" for name in broken
        ]
    return _recorded(lines, "a gradient")


def _per_tensor(context: Context, key: str) -> Entry:
    lines = [
        f"{run}: {name} {compact(one.get(key))}"
        for run, tensors in _tensors(context).items()
        for name, one in tensors.items()
    ]
    return _recorded(lines, key.replace("_", " "))


def _recorded(lines: list[str], what: str) -> Entry:
    """A worker's own figures: recorded, never judged."""
    if not lines:
        return not_run(f"no worker record holds {what}")
    return said("recorded by the worker, not judged", *lines)


def sft_controls(context: Context) -> Section:
    """The three SFT paths and what has to be recorded of each."""
    blocks = (_paths(context), _state(context), _curves(context))
    return Section(heading=f"SFT controls and quality {TRAINING}", blocks=blocks)


def _paths(context: Context) -> Facts:
    return facts(
        "Paths (labels are independent of replay packing variants)",
        _asked(context, "SFT-A (production)", "sft_a"),
        _asked(context, "SFT-B (same visible forward, independent surrogate)", "sft_b"),
        _asked(context, "SFT-C (verified native training)", "sft_c"),
        _asked(context, "Same-checkpoint / same-batch A/B gradients and optimizer deltas", "sft_ab"),
        _asked(context, "A/C differences (forward / quantization changes included)", "sft_ac"),
    )


def _state(context: Context) -> Facts:
    labels = (
        "Initial master and optimizer state", "Data / order", "Labels / masks", "Packing",
        "Effective-token normalization", "Batch / accumulation", "Learning-rate schedule", "Clipping",
        "Precision / loss scaling", "RNG / dropout / recompute", "Intentional differences",
    )  # fmt: skip
    return facts("Recorded of each path", *(_asked(context, label, "sft") for label in labels))


def _curves(context: Context) -> Facts:
    labels = (
        "Raw train, held-out and fixed-probe loss", "Gradient norm", "Update RMS",
        "Clipping / nonfinite / skipped-step counts", "Throughput", "Baseline / seed variation",
        "Axis (one optimizer step or effective tokens)", "Predefined windows / thresholds",
        "Missing controls",
    )  # fmt: skip
    short = (
        said("no SFT run is in the evidence")
        if not per_record(context, "sft")
        else said("recorded by the worker")
    )
    return facts(
        "Curves",
        *(_asked(context, label, "sft") for label in labels),
        ("Evidence is only a short smoke run", short),
    )


def performance(context: Context) -> Section:
    """Performance, which nothing on a machine without the target hardware can stand in for."""
    blocks = (_method(context), _acceptance(context), _resources(context), _honesty(context), OVERLAP)
    return Section(heading="Performance", blocks=blocks)


def _performance(context: Context, *labels: str) -> tuple[tuple[str, Entry], ...]:
    return tuple((label, of_check(context, "status.performance")) for label in labels)


def _method(context: Context) -> Facts:
    return facts(
        "",
        *_performance(
            context, "Matched work", "Warm / cold timing", "Node pool and paired order", "Repetitions",
            "Latency / throughput", "Kernel / rollout / full-step results", "Numerical receipts",
            "Measured improvements", "Rejected candidates", "Estimates",
        ),
    )  # fmt: skip


def _acceptance(context: Context) -> Facts:
    return facts(
        "8K/1K acceptance",
        *_performance(
            context, "Approved aggregation protocol", "Formula", "Repetitions", "Per-concurrency thresholds",
            "Invalid-leg replacement rules", "All raw pairs", "Exclusions with reasons",
            "Approved aggregate per c (median paired loss and loss from median throughputs are different "
            "statistics)",
        ),
    )  # fmt: skip


def _resources(context: Context) -> Facts:
    return facts(
        "Where relevant",
        *_performance(
            context, "Training time", "Peak memory", "Launch count vs token batch", "CPU gaps",
            "Repeated quantization / allocation", "Early feasibility profiles",
            "Final full-model optimization",
        ),
    )  # fmt: skip


def _honesty(context: Context) -> Facts:
    return facts(
        "Comparison",
        *_performance(
            context, "BI-only causal comparison or each side's best valid stack",
            "Differing flags / backends",
            "Prompt count vs expanded requests", "Actual input / output lengths", "Completed output tokens",
            "Wall-time denominator", "Fixed-length synthetic or natural-EOS",
        ),
    )  # fmt: skip
