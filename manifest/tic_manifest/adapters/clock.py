"""The time."""

from __future__ import annotations

from datetime import UTC, datetime


class SystemClock:
    """The machine's own clock."""

    def now(self) -> str:
        """UTC as `YYYY-MM-DDTHH:MM:SSZ`."""
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
