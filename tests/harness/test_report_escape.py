"""Text that others wrote, shown as text in every view."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from grader.report.escape import clipped, code, fenced, markdown, one_line, plain, spreadsheet

NASTY = st.text(st.sampled_from("`*_[]()<>&!#|~$\\-+=.:/@1 \n\tahtpwx\x1b\u202e\udcff\u2028\r'\"")) | st.text(
    st.characters(), max_size=60
)
RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def tokens(text: str) -> list[Token]:
    """All tokens, inline ones too."""
    found = []
    for token in RENDERER.parse(text):
        found.append(token)
        found += token.children or []
    return found


@given(NASTY)
def test_plain_text_holds_printable_lines(text: str) -> None:
    shown = plain(text)
    assert all(sign.isprintable() or sign == "\n" for sign in shown)
    assert plain(shown) == shown
    shown.encode()


def test_what_terminals_and_readers_would_obey_is_spelled_out() -> None:
    assert plain("\x1b[31mred\a \u202egpj.\u2066 \udcff\r\nnext\tcolumn") == (
        "\\x1b[31mred\\x07 \\u202egpj.\\u2066 \\udcff\nnext    column"
    )


@given(NASTY)
def test_markdown_shows_the_text_and_nothing_else(text: str) -> None:
    found = tokens(markdown(text))
    assert {token.type for token in found} <= {"paragraph_open", "inline", "text", "text_special", "paragraph_close"}
    shown = "".join(token.content for token in found if token.type in ("text", "text_special"))
    assert shown == one_line(text)


@given(NASTY)
def test_markdown_holds_no_address_that_becomes_a_link(text: str) -> None:
    escaped = markdown(text)
    assert "<" not in escaped
    assert "://" not in escaped
    assert "www." not in escaped
    assert "@" not in escaped


@given(NASTY)
def test_a_cell_of_a_table_stays_one_cell(text: str) -> None:
    table = f"| a | b |\n|---|---|\n| {markdown(text)} | 1 |\n"
    assert [token.type for token in tokens(table)].count("td_open") == 2


@given(NASTY)
def test_a_fence_is_closed_by_itself_alone(text: str) -> None:
    found = RENDERER.parse(fenced(text) + "\n\nafter")
    assert [token.type for token in found] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert found[0].content == plain(text).strip("\n") + "\n"
    assert found[2].content == "after"


@given(NASTY.filter(lambda text: one_line(text) != ""))
def test_a_code_span_shows_the_text(text: str) -> None:
    (span,) = [token for token in tokens(f"see {code(text)} there") if token.type == "code_inline"]
    assert span.content == one_line(text)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0", " =1"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert spreadsheet(text).lstrip()[0] not in "=+-@\t\r"


@given(NASTY)
def test_a_cell_survives_the_file(text: str) -> None:
    file = io.StringIO()
    csv.writer(file).writerow([spreadsheet(text), "1"])
    assert list(csv.reader(io.StringIO(file.getvalue(), newline=""))) == [[spreadsheet(text), "1"]]


def test_long_texts_are_cut_and_say_so() -> None:
    assert clipped("a\nb", lines=2, signs=10) == "a\nb"
    assert clipped("a\nb\nc", lines=2, signs=10) == "a\nb\n[cut here]"
    assert clipped("abcdef", lines=2, signs=3) == "abc\n[cut here]"
