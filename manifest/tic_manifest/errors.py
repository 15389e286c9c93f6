"""The three ways a command ends without a judgement, and the one message each gives (contract, section 2).

A judged `fail` is a report, never an exception. Anything that is not a `TicError` is a bug: exit 70.
"""

from __future__ import annotations

EXIT_PASS = 0
EXIT_FAIL = 1
EXIT_USAGE = 2
EXIT_INCONCLUSIVE = 3
EXIT_REFUSED = 4
EXIT_BUG = 70
EXIT_SIGINT = 130
EXIT_SIGTERM = 143


class TicError(Exception):
    """One clear message: what, where, expected, actual, what to do.

    `code` is a finding code of the registry, so a judging command can put the error into its report.
    """

    exit_code = EXIT_BUG

    def __init__(
        self,
        code: str,
        what: str,
        *,
        where: str = "",
        expected: str = "",
        actual: str = "",
        remedy: str = "",
    ) -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.where = where
        self.expected = expected
        self.actual = actual
        self.remedy = remedy

    def lines(self) -> list[str]:
        """The message as lines, most important first; the renderer escapes them."""
        first = f"{self.where}: {self.what}" if self.where else self.what
        rows = [("expected", self.expected), ("actual", self.actual), ("to do", self.remedy)]
        return [
            f"{first} [{self.code}]",
            *(line for name, text in rows if text for line in _indented(name, text)),
        ]


def _indented(name: str, text: str) -> list[str]:
    first, *rest = text.split("\n")
    return [f"  {name}: {first}", *(f"    {line}" for line in rest)]


class PersonError(TicError):
    """The command line or a file that a person writes is wrong: exit 2."""

    exit_code = EXIT_USAGE


class UnavailableError(TicError):
    """What is needed is not there - tool, engine, disk, rights, network, forge, registry: exit 3."""

    exit_code = EXIT_INCONCLUSIVE


class RefusedError(TicError):
    """A machine-written document is malformed, ambiguous or of an unknown schema: exit 4."""

    exit_code = EXIT_REFUSED
