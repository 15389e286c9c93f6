"""Text from anywhere made safe to print: no control characters, no terminal sequences."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """The text with control, format and surrogate characters written as \\xNN or \\uNNNN; tabs are kept."""
    return "".join(_shown(one) for one in text)


def _shown(char: str) -> str:
    if char == "\t" or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
