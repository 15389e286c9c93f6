"""Code that runs against code that was shipped: live functions, foreign ones, torch's operators."""

from __future__ import annotations

from collections.abc import Iterable

from tic_manifest.model.probe_code import Operators, Override, Patched, Running
from tic_manifest.model.probe_parts import Failed, Owner
from tic_manifest.model.verdict import Finding, Status, finding, note
from tic_manifest.rules.probe_files import SHIPPED
from tic_manifest.rules.probe_view import View

TORCH = frozenset({"torch", "libtorch", "pytorch"})


def scans(view: View) -> tuple[Running, ...]:
    """Scans of the judged processes that could be read."""
    return tuple(v.running for v in view.insides() if isinstance(v.running, Running))


def not_source(view: View) -> list[Finding]:
    """CODE_NOT_SOURCE: a live function whose code its module's source does not compile to."""
    return [
        finding(
            "CODE_NOT_SOURCE",
            Status.FAIL,
            module.name,
            expected="live code that the source compiles to",
            actual=list(module.live_differs),
            evidence={"role": view.role, "file": module.file, "source_sha256": module.sha256},
        )
        for module in view.modules()
        if module.live_differs
    ]


def patched(view: View) -> list[Finding]:
    """CODE_PATCHED: fails for code that no package ships; a note names a package that patches another."""
    rows = [row for scan in scans(view) for row in scan.patched if not _made_by_class(row)]
    return [_patched(view, row) for row in rows if not _same_owner(row.owners, row.expected)]


def _made_by_class(row: Patched) -> bool:
    """A method that a package's decorator or metaclass adds to a class, as pydantic does."""
    last = row.attribute.rpartition(".")[2]
    made = (last.startswith("__") and last.endswith("__")) or "<locals>" in row.name
    return row.said == "absent" and made and _shipped(row.owners)


def _patched(view: View, row: Patched) -> Finding:
    fields = {
        "expected": names(row.expected) or ["the module's own source"],
        "actual": " ".join([f"{row.file}:{row.line}", row.name, *(f"({one})" for one in names(row.owners))]),
        "evidence": {"role": view.role, "owners": names(row.owners), "source_says": row.said},
    }
    subject = f"{row.module}.{row.attribute}"
    if _shipped(row.owners):
        return note("CODE_PATCHED", subject, **fields)
    return finding("CODE_PATCHED", Status.FAIL, subject, **fields)


def overridden(view: View) -> list[Finding]:
    """OP_OVERRIDE: fails for a kernel of a file that nobody ships; a package gives a note, torch none."""
    rows = [
        row for v in view.insides() if isinstance(v.operators, Operators) for row in v.operators.overrides
    ]
    return [_overridden(view, row) for row in rows if not _torch(row.owners)]


def _overridden(view: View, row: Override) -> Finding:
    fields = {
        "expected": row.inactive or "no kernel that Python registered",
        "actual": f"{row.file}:{row.line}",
        "evidence": {
            "role": view.role,
            "key": row.key,
            "owners": names(row.owners),
            "inactive": row.inactive,
        },
    }
    subject = f"{row.operator} {row.key}"
    if _shipped(row.owners):
        return note("OP_OVERRIDE", subject, **fields)
    return finding("OP_OVERRIDE", Status.FAIL, subject, **fields)


def not_compared(view: View) -> list[Finding]:
    """LEDGER_INCOMPLETE: live code that was not compared with its source, and why."""
    found = []
    for inside in view.insides():
        for part, value in (("live code", inside.running), ("operators", inside.operators)):
            reason = _lacking(value)
            if reason:
                evidence = {"role": view.role, "pid": inside.pid}
                found.append(
                    finding(
                        "LEDGER_INCOMPLETE",
                        Status.INCONCLUSIVE,
                        view.role,
                        actual=f"{part}: {reason}",
                        evidence=evidence,
                    )
                )
    return found


def _lacking(value: Running | Operators | Failed | None) -> str:
    if isinstance(value, Failed):
        return value.error
    if isinstance(value, Operators):
        return (
            "torch is loaded, but its dispatcher was not read"
            if value.torch_loaded and not value.read
            else ""
        )
    if isinstance(value, Running):
        return value.reason or ("not every module was scanned" if value.cut_short else "")
    return ""


def summary(view: View) -> str:
    """What was compared, in one sentence with figures."""
    found = scans(view)
    seen, compared = sum(s.functions for s in found), sum(s.compared for s in found)
    said = f"{compared} of {seen} live functions compared with the source of their module"
    parts = [v.operators for v in view.insides() if isinstance(v.operators, Operators)]
    own = sum(_torch(row.owners) for part in parts for row in part.overrides)
    asked = sum(p.operators for p in parts)
    return said + (
        f", {asked} operators asked for, {own} overrides and more are torch's own" if asked else ""
    )


def names(owners: Iterable[Owner]) -> list[str]:
    """Owners as findings name them."""
    return [" ".join(filter(None, (o.kind, o.name, o.version))) for o in owners]


def _shipped(owners: Iterable[Owner]) -> bool:
    return any(o.kind in SHIPPED for o in owners)


def _same_owner(left: Iterable[Owner], right: Iterable[Owner]) -> bool:
    return bool({(o.kind, o.name) for o in left if o.kind in SHIPPED} & {(o.kind, o.name) for o in right})


def _torch(owners: Iterable[Owner]) -> bool:
    return any(o.kind in SHIPPED and o.name in TORCH for o in owners)
