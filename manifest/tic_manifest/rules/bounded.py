"""Many findings in little memory: the first are kept, all are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tic_manifest.model.verdict import Finding, Status, finding

MAX_FINDINGS = 100


class Bounded:
    """Findings as they come; notes are kept apart, as many of them."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._first: list[Finding] = []
        self._notes: list[Finding] = []
        self._counts: Counter[str] = Counter()
        self._failed: set[str] = set()

    def add(self, found: Iterable[Finding]) -> None:
        """Take findings, one after the other."""
        for one in found:
            kept = self._notes if one.note else self._first
            if len(kept) < MAX_FINDINGS:
                kept.append(one)
            if not one.note:
                self._counts[one.code] += 1
                self._failed |= {one.code} if one.status is Status.FAIL else set()

    def all(self) -> list[Finding]:
        """The first findings, where there are more one for each code that counts all, then the notes."""
        many = self._counts.total() > MAX_FINDINGS
        counts = [self._count(*one) for one in sorted(self._counts.items())] if many else []
        return [*self._first, *counts, *self._notes]

    def _count(self, code: str, count: int) -> Finding:
        """As bad as the worst that it counts."""
        status = Status.FAIL if code in self._failed else Status.INCONCLUSIVE
        what = f"{count} files in all; the first are listed"
        return finding(code, status, self._subject, what=what, actual=count)
