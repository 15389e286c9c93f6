"""The report: every place of the template in its order, filled from evidence or marked, never blank."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import deliveries as d
import pytest
import yaml
from reports import EVIL, RECIPE, delivered, empty, entries, everything, measured, place, row
from tic_manifest.model.document import Entry, Facts, Grid, Listing, said
from tic_manifest.render import REPORT_FORMATS, report_renderer
from tic_manifest.stages.report import document

TEMPLATE = Path(__file__).resolve().parents[4] / "shared" / "mission" / "report-template.txt"
TITLE = "Train\u2013inference consistency report"
HEADINGS = (
    "Outcome and scope",
    "Immutable experiment",
    "Delivery manifest",
    "Proxy coverage and gradient contract (when training is in scope)",
    "Symptom and localization",
    "Cause and change",
    "Verification",
    "SFT controls and quality (when training is in scope)",
    "Performance",
    "Evidence corrections and retention",
    "Remaining work",
    "Experiment record (YAML)",
)
TABLES = (
    (
        ("Deliverable", "Review / source identity", "Build or acceptance evidence"),
        ("vLLM PR", "Megatron PR", "verl PR", "Unified image", "Approved recipe", "Final validation"),
    ),
    (
        ("Proxy upgrade gate", "Status (pass/fail/inconclusive/not run)",
         "Bound command / artifact and valid-token count", "Decision"),
        ("Proxy feature/operator coverage", "Proxy inference BI and prefill/decode parity",
         "Proxy inference \u2194 native old-logprob recomputation",
         "Proxy inference \u2194 actual grad-enabled actor forward", "Backward / SFT / RL, if in proxy scope",
         "Upgrade to full-model BI work"),
    ),
    (
        ("Gate", "Command / artifact", "Result and count", "Scope limitation"),
        ("Original failing replay", "Operator / metadata regression", "Engine and production layouts",
         "Independent module VJP and one optimizer update", "Controlled proxy SFT (A/B/C paths)",
         "Real backward/update", "\u03b80 / \u03b81 / \u03b82 parity",
         "First post-checkpoint-resume export / parity", "Model quality", "Clean shutdown / sustained run",
         "Final immutable image, without development overlays"),
    ),
)  # fmt: skip
PLACES = """outcome|model / layers|independent samples|valid tokens|dtype|topology|graph / cache paths|update count
untested conditions|acceptance checklist|required checks|out-of-scope checks|recipe revision|two-update stop condition
quality coverage|resume coverage|submission requirements|source commits|dirty patch hashes|loaded libraries
image digest|gpu|checkpoint / policy identity|input bundle digest|score semantics|resolved config|commands
resource budget|artifacts|installed wheel|loaded native libraries|jit specializations|identical|training context
rollout length distribution|concurrency|packing / token batch|interconnect|master|deployment|activation|kv
accumulation|gradient|quantization granularity|scale / update rules|quality budget|throughput budget|memory budget
omitted depth|omitted geometry|omitted topology|omitted execution paths|visible forward semantics
trainable variables|surrogate values|ste / clipping / scale rules|differentiable scores|vjp accumulation / collectives
memory cost|independent reference|shape / dtype / layout|random|zero|sparse|captured|missing / nonfinite gradients
max absolute error|relative l2|norms|cosine|thresholds with rationale|forward-byte comparison|master-parameter deltas
per-request / token differences|a/a results|a/c results|side-isolation|semantic boundary|operator comparison
competing explanations|counterexamples|smallest triggering input|actual repair|diagnostic interventions|code changes
preserved regression|proxy upgrade decision|later training gates|sft-a|sft-b|sft-c|initial master and optimizer state
data / order|labels / masks|effective-token normalization|batch / accumulation|learning-rate schedule|clipping
precision / loss scaling|rng / dropout / recompute|intentional differences|held-out|update rms|skipped-step
smoke run|matched work|warm / cold timing|node pool|repetitions|latency / throughput|kernel / rollout / full-step
numerical receipts|rejected candidates|estimates|aggregation protocol|formula|per-concurrency thresholds|invalid-leg
raw pairs|exclusions with reasons|approved aggregate|training time|peak memory|launch count|cpu gaps
early feasibility profiles|bi-only causal|differing flags|prompt count vs expanded requests|input / output lengths
completed output tokens|wall-time denominator|natural-eos|superseded claims|failure bundles|checkpoints
small receipts|storage budget / location|missing eval steps|concrete gaps|smallest next experiment
production hooks / config restored|raw evidence kept"""
MADE = {"nothing": empty, "delivered": delivered}


@pytest.mark.parametrize("name", MADE)
def test_sections_and_tables_are_those_of_the_template_in_its_order(name: str) -> None:
    made = MADE[name]()
    assert (made.title, tuple(one.heading for one in made.sections)) == (TITLE, HEADINGS)
    grids = [block for section in made.sections for block in section.blocks if isinstance(block, Grid)]
    for head, labels in TABLES:
        found = next(grid for grid in grids if grid.head == head)
        assert tuple(one.label for one in found.rows)[: len(labels)] == labels


@pytest.mark.parametrize("wanted", [one.strip() for one in re.split(r"[|\n]", PLACES)])
def test_every_thing_that_the_template_asks_for_has_a_place(wanted: str) -> None:
    labels = [label.lower() for label, _ in entries(empty())]
    titles = [
        block.title.lower()
        for section in empty().sections
        for block in section.blocks
        if isinstance(block, Facts)
    ]
    assert any(wanted in label for label in (*labels, *titles)), wanted


def test_the_words_are_those_of_the_template_itself() -> None:
    if not TEMPLATE.exists():
        print(f"\nNOT COMPARED WITH THE TEMPLATE: {TEMPLATE} is absent", file=sys.stderr)
        pytest.skip(f"{TEMPLATE} is absent: the words were not compared with the template")
    text = TEMPLATE.read_text()
    places = [text.index("\n" + heading + "\n") for heading in HEADINGS]
    assert places == sorted(places)
    for head, labels in TABLES:
        assert "\t".join(head) in text
        starts = [text.index("\n" + label) for label in labels]
        assert starts == sorted(starts)


def test_where_nothing_was_measured_nothing_passes() -> None:
    made = empty()
    assert made.outcome.value == "inconclusive"
    wrong = [
        (label, entry)
        for label, entry in entries(made)
        if re.search(r"\bpass\b", entry.text) and entry.missing is None
    ]
    assert wrong == []
    passed = {line for _, entry in entries(made) for line in entry.lines if re.search(r": pass\b", line)}
    assert passed <= {"delivery.bound: pass"}, (
        "the label of the image names the lock; nothing else was looked at"
    )
    cells = [cell for label in TABLES[2][1] for cell in row(made, label)[1:2]]
    assert all(cell.missing or cell.text.startswith(("not run", "unverified")) for cell in cells)


def test_a_place_cannot_be_blank() -> None:
    for bad in (
        {},
        {"words": " "},
        {"lines": ("",)},
        {"missing": "not_run"},
        {"missing": "unknown", "reason": " "},
    ):
        with pytest.raises(ValueError, match=r"blank|reason"):
            Entry.model_validate(bad)
    assert said("", "", " ").missing == "unknown"


def test_measured_places_hold_what_was_measured() -> None:
    made = delivered()
    assert "graded: 2 valid tokens" in everything(place(made, "Valid tokens"))
    assert everything(place(made, "Approval")).splitlines()[1] == "approved by: A Person"
    assert "self-declared" in place(made, "Approval").text
    assert everything(place(made, "A/A results")).startswith("pass\n")
    assert everything(place(made, "A/C results")).startswith("fail\n")
    assert "packed: rollout/scores against reversed/scores: 1 of 2 valid tokens differ" in everything(
        place(made, "A/C")
    )
    assert "run trainer: 1 missing, 0 nonfinite, of 2 tensors" in everything(
        place(made, "Missing / nonfinite")
    )
    assert "run trainer: 1 optimizer step" in everything(place(made, "Update count"))
    assert "99999 of 100000 mapped bytes have an owner (99.99 %)" in everything(place(made, "Loaded native"))
    assert "/tmp/o.so" in everything(place(made, "Delivery gaps"))
    assert "inductor /tmp/k.so" in everything(place(made, "JIT specializations"))
    assert "supersed" in everything(place(made, "Superseded claims"))
    assert d.digest("earlier") in everything(place(made, "Superseded claims"))


def test_the_six_rows_hold_full_identities_with_labelled_digests() -> None:
    made = delivered()
    source, built = row(made, "vLLM PR")
    assert {"base SHA " + "a" * 40, "head SHA: " + "b" * 40} <= set(
        re.findall(r"(?:base|head) SHA:? [0-9a-f]+", everything(source))
    )
    assert f"wheel digest {d.digest('wheel')}" in everything(built)
    image, evidence = map(everything, row(made, "Unified image"))
    for label, digest in (("platform manifest", "platform"), ("image index", "index"), ("config", "config")):
        assert f"{label} digest: {d.digest(digest)}" in image
    assert "model held by VLLM::Worker (by memory)" in evidence
    assert "mount /src covers 2 loaded files" in evidence
    assert "import failed: alpha._C in alpha.ops" in evidence
    assert row(made, "verl PR")[0].missing == "not_run"
    assert "quality status: unverified" in everything(row(made, "Final validation")[1])


def test_inference_only_and_cross_stack_parity_stay_apart_and_a_fail_blocks_escalation() -> None:
    made = delivered()
    inference = row(made, TABLES[1][1][1])
    quiet, graded = row(made, TABLES[1][1][2]), row(made, TABLES[1][1][3])
    assert inference[0].text == "fail"
    assert [inference[2].text, quiet[2].text, graded[2].text] == [
        "blocks escalation",
        "does not block",
        "does not block",
    ]
    assert "cross" in everything(quiet[0])
    assert "graded" not in everything(quiet[0])
    assert "graded" in everything(graded[0])
    assert place(made, "Proxy upgrade decision").text.startswith("no escalation")
    assert row(made, "Upgrade to full-model BI work")[2].text.startswith("no")


def test_no_grad_scores_never_stand_for_the_grad_enabled_forward() -> None:
    facts = {"calls": 1, "requires_grad": False, "any_requires_grad": False, "grad_fn": []}
    files, image = measured(grad=facts)
    made = document(files, image, None)
    assert row(made, TABLES[1][1][3])[0].text == "inconclusive"
    assert "requires_grad" not in place(made, "Output requires_grad").text


def test_out_of_scope_is_unverified_even_when_it_was_equal() -> None:
    recipe = RECIPE.replace(b"{id: cross, state: required", b"{id: cross, state: out_of_scope")
    made = document(*measured(recipe), None)
    assert row(made, TABLES[1][1][2])[0].text.startswith("unverified")
    assert "cross: unverified" in everything(place(made, "Out-of-scope checks"))


def test_owned_bytes_are_rounded_down() -> None:
    from tic_manifest.stages.report_identity import _percent

    assert _percent(99_999_999, 100_000_000) == "99.99 %"
    assert _percent(3, 3) == "100 %"


def test_the_experiment_record_is_yaml_with_three_variants() -> None:
    listing = delivered().sections[-1].blocks[0]
    assert isinstance(listing, Listing)
    data = yaml.safe_load(listing.text)
    assert list(data) == [
        "purpose",
        "target",
        "rollout",
        "checkpoint",
        "environment",
        "topology",
        "state",
        "budget",
        "variants",
    ]
    assert [one["name"] for one in data["variants"]] == ["A", "B", "C"]
    assert [one["exit"] for one in data["variants"]] == [0, 0, 0]
    assert "1 of 2 valid tokens differ" in data["variants"][2]["result"]
    none = yaml.safe_load(empty().sections[-1].blocks[0].text)  # type: ignore[union-attr]
    assert all(
        str(one["result"]).startswith("validation") or "not run" in one["result"] for one in none["variants"]
    )


@pytest.mark.parametrize("name", REPORT_FORMATS)
def test_formats_are_pure_whole_and_inert(name: str) -> None:
    hostile = {"model": EVIL, "topology": {EVIL: EVIL}, "quantity": EVIL, "backends": {EVIL: EVIL}}
    files, image = measured(**hostile)
    made = document(files, image, None)
    text = report_renderer(name)(made)
    assert text == report_renderer(name)(document(files, image, None))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert not re.search(r"sha256:[0-9a-f]{1,63}(?![0-9a-f])", text)
    text = re.sub(r"(?s)```yaml\n.*?\n```", "", text)
    if name != "json":
        assert "<b>" not in text
    if name in ("markdown", "pr"):
        assert "\n## <b>" not in text
        assert "@octocat" not in re.sub(r"`[^`\n]*`", "", text)


def test_markdown_tables_are_as_wide_as_their_heads_and_hold_no_blank() -> None:
    width = 0
    for line in report_renderer("markdown")(delivered()).splitlines():
        if not line.startswith("| "):
            width = 0
            continue
        cells = line.strip("|").split(" | ")
        width = width or len(cells)
        assert len(cells) == width, line
        if not re.fullmatch(r"[| -]+", line):
            assert all(cell.strip() for cell in cells), line


def test_the_comment_form_fits_and_says_what_it_leaves_out() -> None:
    made = delivered()
    entry = Entry(lines=tuple(f"{d.digest(str(i))} {'y' * 5000}" for i in range(30)))
    section = made.sections[1]
    big = section.model_copy(
        update={"blocks": (Facts(facts=tuple({"label": f"l{i}", "entry": entry} for i in range(9))),)}
    )  # type: ignore[arg-type]
    text = report_renderer("pr")(
        made.model_copy(update={"sections": (made.sections[0], big, *made.sections[2:])})
    )
    assert len(text) <= 65_536
    assert "Too long for a comment" in text
    assert "Immutable experiment" in text
    assert "Final validation" in text
    assert not re.search(r"sha256:[0-9a-f]{1,63}(?![0-9a-f])", text)


def test_json_holds_the_document_and_the_verdict() -> None:
    data = json.loads(report_renderer("json")(delivered()))
    assert data["schema"] == "tic/report/v1"
    assert [one["heading"] for one in data["sections"]] == list(HEADINGS)
    assert data["outcome"] == data["verdict"]["outcome"] == "fail"
