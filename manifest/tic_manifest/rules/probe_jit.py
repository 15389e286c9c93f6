"""The JIT ledger judged: code from elsewhere, code that cannot be made again, code older than its source."""

from __future__ import annotations

from pydantic import JsonValue

from tic_manifest.model.probe_jit import JitEntry
from tic_manifest.model.verdict import Finding, Status, finding, note
from tic_manifest.rules.probe_view import View
from tic_manifest.rules.probe_worker import compiled_at_run

SOURCE_BUILT = frozenset({"cpp_extension", "flashinfer", "deep_gemm"})
"""Families that are made again from a source that people edit: a difference there is an edit."""
TUNED = "autotune"
"""The key of an entry that is no kernel but the choice of an autotuner."""
CERTAIN = ("version ", "the process holds ")
"""Reasons for staleness that are no matter of times."""


def foreign(view: View) -> list[Finding]:
    """JIT_FOREIGN: an artifact that lies, or was made, outside the caches of this worker."""
    found = []
    for one in view.report.jit.ledger:
        if not one.foreign:
            continue
        if one.loaded is False:
            found.append(
                note("JIT_FOREIGN", _name(one), actual=list(one.foreign), evidence=_facts(view, one))
            )
            continue
        status = Status.FAIL if one.loaded else Status.INCONCLUSIVE
        found.append(_of("JIT_FOREIGN", status, view, one, actual=list(one.foreign)))
    return found


def mismatch(view: View) -> list[Finding]:
    """JIT_MISMATCH: made again from what the entry names, other code came out."""
    return [
        _of("JIT_MISMATCH", Status.FAIL, view, one, actual=one.sha256, expected=_made_again(one))
        for one in view.report.jit.ledger
        if _differs(one) and not (one.family in SOURCE_BUILT and one.stale)
    ]


def stale(view: View) -> list[Finding]:
    """JIT_STALE: the source is another one than the artifact was made of; by times alone inconclusive."""
    found = []
    for one in view.report.jit.ledger:
        if not one.stale or one.loaded is False or (one.rederived and one.rederived.verdict == "same"):
            continue
        certain = _differs(one) or any(reason.startswith(CERTAIN) for reason in one.stale)
        status = Status.FAIL if certain else Status.INCONCLUSIVE
        found.append(_of("JIT_STALE", status, view, one, actual=list(one.stale)))
    return found


def no_effect(view: View) -> list[Finding]:
    """EDIT_NO_EFFECT: a shipped source was edited, and what is loaded was made before, or without it."""
    found = []
    for one in view.report.jit.ledger:
        edited = sorted(p for p, record in one.records.items() if record == "differs" and p != one.artifact)
        shipped = one.records.get(one.artifact or "") == "match"
        if one.loaded and edited and (shipped or one.stale):
            found.append(_of("EDIT_NO_EFFECT", Status.FAIL, view, one, actual=list(edited)))
    return found


def edited_sources(view: View) -> list[Finding]:
    """RECORD_HASH: a source that a wheel ships was edited, and code of its place is loaded."""
    rows: dict[tuple[str, str | None], list[str | None]] = {}
    for one in view.report.jit.ledger:
        for path, record in one.records.items():
            if one.loaded and record == "differs" and path != one.artifact:
                rows.setdefault((path, one.inputs.get(path)), []).append(one.artifact)
    return [
        finding(
            "RECORD_HASH",
            Status.FAIL,
            path,
            expected="the hash in RECORD",
            actual=digest,
            evidence={"role": view.role, "source_of": list(artifacts)},
        )
        for (path, digest), artifacts in sorted(rows.items(), key=str)
    ]


def made_now(view: View) -> list[Finding]:
    """JIT_REBUILT_AT_RUN: specializations other than libraries that were compiled while the worker ran."""
    ledger = view.report.jit.ledger
    rows = [o for o in ledger if o.origin == "this_run" and not _library(o) and o.key != TUNED]
    if not rows:
        return []
    names = sorted({shape(one) for one in rows})
    actual = f"{len(rows)} specializations: {'; '.join(names[:20])}"
    return [compiled_at_run(view, actual, {"entries": [_short(o) for o in rows[:50]]})]


def looked_at(view: View) -> str:
    """What the ledger holds, in one sentence, with every family that could not be read."""
    jit = view.report.jit
    if not jit.families:
        return "no ledger"
    origins = [one.origin for one in jit.ledger]
    counted = ", ".join(f"{origins.count(name)} {name}" for name in sorted(set(origins)))
    verdicts = [one.rederived.verdict if one.rederived else "not asked for" for one in jit.ledger]
    again = ", ".join(f"{verdicts.count(name)} {name}" for name in sorted(set(verdicts)))
    unread = "; ".join(f"{f.family}: {f.reason}" for f in jit.families if f.state in ("unread", "disk_only"))
    said = f"{len(jit.ledger)} ledger entries" + (f" ({counted}); made again: {again}" if jit.ledger else "")
    return said + _choices(view) + _modules(view) + (f"; not read: {unread}" if unread else "")


def shape(one: JitEntry) -> str:
    """A specialization in one line: `add(x *fp32/16, n=1, SIZE=128)`; `/16`: known to be divisible by it."""
    signature, constants = one.specialization.get("signature"), one.specialization.get("constants")
    name = one.kernel or one.key or one.family
    if isinstance(signature, list):
        return f"{name}({', '.join(map(str, signature))})"
    if not isinstance(signature, dict):
        return name
    known = constants if isinstance(constants, dict) else {}
    attributes = one.specialization.get("attributes")
    given = attributes if isinstance(attributes, dict) else {}
    order = one.specialization.get("arguments")
    words = []
    for argument in map(str, order) if isinstance(order, list) else signature:
        by = "/16" if "divisibility" in str(given.get(argument)) else ""
        value = f"={known[argument]}" if argument in known else f" {signature.get(argument)}{by}"
        words.append(argument + value)
    return f"{name}({', '.join(words)})"


def _choices(view: View) -> str:
    """What autotuners settled on: in a process, or pinned by a file."""
    rows = [one for one in view.report.jit.ledger if one.key == TUNED]
    said = [
        f"{one.kernel} {'in a process' if one.loaded else 'pinned'}: {one.specialization.get('choice')}"
        for one in rows
    ]
    return f"; autotuned: {'; '.join(said[:10])}" if said else ""


def _modules(view: View) -> str:
    """The file that each compiled module runs from; FlashInfer's interface may name one that failed."""
    ledger = view.report.jit.ledger
    held = [o for o in ledger if o.family in ("flashinfer", "inductor") and o.loaded and o.kernel]
    return "".join(f"; {one.kernel} runs from {one.artifact}" for one in held[:10])


def _library(one: JitEntry) -> bool:
    return (one.artifact or "").endswith(".so")


def _differs(one: JitEntry) -> bool:
    return one.rederived is not None and one.rederived.verdict == "differs"


def _made_again(one: JitEntry) -> str | None:
    return one.rederived.sha256 or one.rederived.code_sha256 if one.rederived else None


def _name(one: JitEntry) -> str:
    return f"{one.family} {one.kernel or one.key or one.artifact}"


def _of(code: str, status: Status, view: View, one: JitEntry, **more: JsonValue) -> Finding:
    return finding(code, status, _name(one), evidence=_facts(view, one), **more)


def _facts(view: View, one: JitEntry) -> dict[str, JsonValue]:
    again = one.rederived.model_dump(mode="json") if one.rederived else None
    return {"role": view.role, **_short(one), "inputs": dict(one.inputs), "rederived": again}


def _short(one: JitEntry) -> dict[str, JsonValue]:
    return {
        "kernel": one.kernel,
        "key": one.key,
        "artifact": one.artifact,
        "sha256": one.sha256,
        "code_sha256": one.code_sha256,
        "origin": one.origin,
        "loaded": one.loaded,
        "compiler": one.compiler,
        "specialization": dict(one.specialization),
    }
