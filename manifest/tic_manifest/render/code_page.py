"""A finding code as a page of the documentation and as the text of `explain`."""

from __future__ import annotations

from collections.abc import Mapping

from tic_manifest.model.codes import Code

GENERATED = "<!-- Written by scripts/make-docs from the registry of finding codes; do not edit. -->"


def page(code: Code) -> str:
    """Markdown of one code: what it says, its variants, what to do, where the rule comes from."""
    parts = [GENERATED, f"# {code.name}", _sentence(code.meaning)]
    if code.variants:
        rows = [f"| `{code.name}/{name}` | {_cell(text)} |" for name, text in sorted(code.variants.items())]
        parts.append("\n".join(["## Variants", "", "| code | says |", "| --- | --- |", *rows]))
    parts += ["## What to do", _sentence(code.remedy), "## Source of the rule", _sentence(code.source)]
    return "\n\n".join(parts) + "\n"


def index(codes: Mapping[str, Code]) -> str:
    """Markdown list of every code, in the order of names."""
    rows = [f"| [{name}]({name}.md) | {_cell(codes[name].meaning)} |" for name in sorted(codes)]
    head = ["| code | says |", "| --- | --- |"]
    intro = (
        "Every finding has a code; codes are a stable API. `tic-manifest explain CODE` prints the same "
        "words, `tic-manifest explain --list` all of them."
    )
    return "\n\n".join([GENERATED, "# Finding codes", intro, "\n".join([*head, *rows])]) + "\n"


def text(code: Code, variant: str = "") -> str:
    """What `explain` prints: of one variant when it is asked for, else of the family with all variants."""
    name = f"{code.name}/{variant}" if variant else code.name
    lines = [name, f"  says: {code.variants.get(variant) or code.meaning}"]
    if variant:
        lines.append(f"  family: {code.name}: {code.meaning}")
    elif code.variants:
        lines += [f"  {code.name}/{one}: {words}" for one, words in sorted(code.variants.items())]
    return "\n".join([*lines, f"  to do: {code.remedy}", f"  source: {code.source}"]) + "\n"


def listing(codes: Mapping[str, Code]) -> str:
    """One line a code, variants below their family."""
    width = max(map(len, codes), default=0)
    return "".join(_lines(codes[name], width) for name in sorted(codes))


def _lines(code: Code, width: int) -> str:
    variants = [f"  {code.name}/{name}  {words}" for name, words in sorted(code.variants.items())]
    return "\n".join([f"{code.name.ljust(width)}  {code.meaning}", *variants]) + "\n"


def _sentence(words: str) -> str:
    """The registry's words as a sentence."""
    shown = words.replace("<", "&lt;")
    return shown[:1].upper() + shown[1:] + ("" if shown.endswith((".", ":")) else ".")


def _cell(words: str) -> str:
    return words.replace("<", "&lt;").replace("|", "&#124;")
