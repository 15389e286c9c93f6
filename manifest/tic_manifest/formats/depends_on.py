"""`Depends-On:` lines of a pull request's text, outside HTML comments and code (rules/pr-gate.md F8)."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_TEXT = 1 << 18
MAX_LINES = 50

_HIDDEN = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|^ {0,3}(?P<mark>`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}(?P=mark)[`~]*[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""A comment or a fence, whichever begins first: neither counts within the other."""

_LINE = re.compile(r"^[ \t*-]*Depends-On:[ \t]*(\S[^\n]*?)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_SHORT = re.compile(r"^(?:(?P<owner>[\w.-]+)/(?P<repo>[\w.-]+))?#(?P<number>[1-9][0-9]{0,9})$", re.ASCII)
_LONG = re.compile(
    r"^(?P<web>https?://[^/\s]+)/(?P<owner>[\w.-]+)/(?P<repo>[\w.-]+)/pull/(?P<number>[1-9][0-9]{0,9})/?(?:[?#]\S*)?$",
    re.ASCII,
)
_PLACEHOLDER = re.compile(r"\bTODO_[A-Z0-9_]*(?:URL|LINK|PR)[A-Z0-9_]*\b")


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A target: `web` is empty for the same forge, `owner` for our repository, `number` 0 for neither."""

    text: str
    web: str = ""
    owner: str = ""
    repo: str = ""
    number: int = 0


def declared(text: str) -> tuple[Declared, ...]:
    """Every target that a text declares, each once, in order of appearance; bounded."""
    lines = (found[1] for found in _LINE.finditer(visible(text)))
    words = dict.fromkeys(word.strip("<>(),") for line in lines for word in line.replace(",", " ").split())
    targets = (_target(word) for word in list(words)[:MAX_LINES])
    return tuple(one for one in targets if one is not None)


def placeholders(text: str) -> tuple[str, ...]:
    """Placeholders left in a text where a link should be, such as `TODO_VLLM_PR_URL`."""
    return tuple(sorted(set(_PLACEHOLDER.findall(visible(text)))))[:10]


def visible(text: str) -> str:
    """The text without HTML comments and fenced code, with plain line ends."""
    plain = text[:MAX_TEXT].replace("\r\n", "\n").replace("\r", "\n")
    return _HIDDEN.sub("", plain)


def _target(word: str) -> Declared | None:
    found = _LONG.match(word) or _SHORT.match(word)
    if found is None:
        return Declared(text=word[:300]) if word.startswith(("http://", "https://")) else None
    parts = found.groupdict()
    return Declared(
        text=word[:300],
        web=parts.get("web") or "",
        owner=parts["owner"] or "",
        repo=parts["repo"] or "",
        number=int(parts["number"]),
    )
