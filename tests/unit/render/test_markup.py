"""Text from evidence comes out of a Markdown reader as the text that went in, and as nothing else."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tic_manifest.render.escape import printable
from tic_manifest.render.markup import code, prose, table

READER = MarkdownIt("commonmark").enable("table").enable("strikethrough")
NASTY = st.text(
    alphabet=st.one_of(
        st.sampled_from(list("`|\\*_~[]()<>!#&;:+-=.{}@/\"' \n\t0aZ")), st.characters(codec="utf-8")
    ),
    max_size=40,
)
CASES = [
    "a|b", "a\\|b", "`", "``a`", "<script>", "</code>", "&amp;", "&#124;", "[x](http://e.test)", "![x](y)",
    "# h", "- a", "1. a", "1) a", "=== ", "---", "* * *", "__a__", "_a_", "~~a~~", "a_b_c", "https://e.test/a_b",
    "www.e.test", "\x1b[31m", "a\nb", "<!-- x -->", "\u202eabc", "  lead", "\\", "a\\",
]  # fmt: skip


def expected(text: str) -> str:
    shown = printable(text).replace("\t", " ").strip()
    return re.sub(" +", " ", shown) if shown else "(empty)"


def cells(markdown: str) -> list[str]:
    """Inner HTML of the body cells."""
    return re.findall(r"<td>(.*?)</td>", READER.render(markdown), re.S)


def in_table(*parts: str) -> list[str]:
    return cells("\n".join(table(["a", "b", "c"], [[*parts]])))


@pytest.mark.parametrize("text", CASES)
def test_code_and_prose_keep_known_bad_text(text: str) -> None:
    check(text)


@given(NASTY)
@settings(max_examples=400, deadline=None)
def test_code_and_prose_keep_any_text(text: str) -> None:
    check(text)


def check(text: str) -> None:
    found = in_table(code(text), prose(text), "`end`")
    assert len(found) == 3
    assert found[2] == "<code>end</code>"
    inner = re.sub(r"^<code>(.*)</code>$", r"\1", found[0], flags=re.S)
    assert "<" not in inner
    assert re.sub(" +", " ", html.unescape(inner)).strip() == expected(text)
    plain = found[1].replace("<!-- -->", "")
    assert "<" not in plain
    assert re.sub(" +", " ", html.unescape(plain)).strip() == expected(text)


@given(NASTY)
@settings(max_examples=200, deadline=None)
def test_prose_starts_no_block(text: str) -> None:
    shown = READER.render(prose(text)).replace("<!-- -->", "")
    assert re.fullmatch(r"<p>[^<]*</p>\n", shown), shown


def test_nobody_is_notified() -> None:
    assert prose("@octocat fixes #12") == "@<!-- -->octocat fixes #<!-- -->12"
    assert code("@octocat #12") == "`@octocat #12`"


def test_our_own_words_stay_readable() -> None:
    for words in (
        "Out-of-scope checks (unverified)",
        "Output requires_grad",
        "\u03b80 / \u03b81 / \u03b82 parity",
        "100 % + more",
    ):
        assert prose(words) == words
    assert code("\u03b80\u2013\u03b82 status: pass") == "`\u03b80\u2013\u03b82 status: pass`"
