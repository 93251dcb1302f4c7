"""A page's Markdown as HTML: what the reader gets, and what stops the build."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from grader.handout.web.links import PageError, Target, check_links, slug_of
from grader.handout.web.markdown import Rendered, render
from grader.handout.web.mathematics import Typesetter
from grader.handout.web.site import Screen

ROOT = Path(__file__).parents[2]
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 500 200" width="500" height="200"></svg>'


@pytest.fixture(scope="module")
def typesetter() -> Typesetter:
    return Typesetter(ROOT)


@pytest.fixture(scope="module")
def page(typesetter: Typesetter):
    def of(text: str) -> Rendered:
        return render(f"# Title\n\n{text}\n", "rings", Screen({"ring": SVG}), typesetter)

    return of


def test_formula_is_set_with_mathml_inside(page) -> None:
    body = page(r"The bubble is $\frac{p - 1}{m + p - 1}$.").body
    assert "<mfrac>" in body
    assert 'class="katex-html" aria-hidden="true"' in body


def test_formula_on_its_own_line_lies_in_a_box(page) -> None:
    for text in ("$$\nS \\cdot W\n$$", "So $$S \\cdot W$$ bytes."):
        body = page(text).body
        assert re.search(
            r'class="scroll equation" tabindex="0" role="group" aria-label="Equation"><span class="katex-d', body
        )


@pytest.mark.parametrize("formula", [r"\frac{1}{", r"\nonsense", "é", r"\href{https://example.org}{x}"])
def test_broken_formula_names_page_and_formula(page, formula: str) -> None:
    with pytest.raises(PageError, match="page rings: the formula") as raised:
        page(f"As ${formula}$ says.")
    assert formula in str(raised.value)


@pytest.mark.parametrize("text", ["It costs $5 and $6.", "$6 x, or $7 y", r"\$x\$", "`$x$`", "US$5 to US$9"])
def test_prices_are_no_formulas(page, text: str) -> None:
    assert "katex" not in page(text).body


def test_html_in_the_text_is_shown_and_not_run(page) -> None:
    body = page("<script>alert(1)</script> and `<b>`\n\n```python\nx = '<script>'\n```\n").body
    assert "<script" not in body
    assert "<b>" not in body
    assert body.count("&lt;script&gt;") == 2


def test_html_in_a_heading_an_alternative_text_and_a_table_is_shown(page) -> None:
    text = '## A `<i>`\n\n![<b> "q"](figures/ring.svg)\n*<u>*\n\n| <s> | b |\n|---|---|\n| 1 | 2 |'
    rendered = page(text)
    assert rendered.headings[0].html == "A <code>&lt;i&gt;</code>"
    assert 'alt="&lt;b&gt; &quot;q&quot;"' in rendered.body
    assert 'aria-label="Table: &lt;s&gt;, b"' in rendered.body
    assert not re.search(r"<(b|u|s|i)>", rendered.body)


def test_javascript_link_is_no_link(page) -> None:
    assert "<a " not in page("[x](javascript:alert(1))").body


def test_table_has_a_name_and_says_what_each_head_heads(page) -> None:
    body = page("| | rank 0 | rank 1 |\n|---|---|---|\n| before | 1 | 2 |\n| after | 3 | 3 |").body
    assert 'role="group" aria-label="Table: rank 0, rank 1"><table>' in re.sub(r">\s+<", "><", body)
    assert body.count('<th scope="col">') == 2
    assert body.count('<th scope="row">') == 2
    assert "<th></th>" not in body


def test_table_whose_columns_all_have_heads_has_no_row_heads(page) -> None:
    body = page("| a | b |\n|---|---|\n| 1 | 2 |").body
    assert 'scope="row"' not in body
    assert body.count('scope="col"') == 2


def test_code_is_coloured_and_reachable(page) -> None:
    body = page("```python\ndef f() -> int:\n    return 1\n```").body
    assert '<div class="scroll code" tabindex="0" role="group" aria-label="Code, python"><pre><code>' in body
    assert '<span class="k">def</span>' in body


def test_code_keeps_its_text(page) -> None:
    source = "\n\nif a < b and c:\n    x = '&amp;'\n"
    body = page(f"```python\n{source}```").body
    assert unescape(re.sub(r"<[^>]*>", "", body)).strip("\n") == source.strip("\n")
    assert "    x" in unescape(re.sub(r"<[^>]*>", "", body))


def test_unknown_language_is_an_error(page) -> None:
    with pytest.raises(PageError, match="page rings: code in 'pyhton'"):
        page("```pyhton\nx\n```")


def test_picture_becomes_a_figure_with_a_caption(page) -> None:
    body = page("![Four ranks in a ring](figures/ring.svg)\n*Rank $r$ sends to rank `r + 1`.*").body
    assert body.startswith('<figure>\n<div class="scroll picture" tabindex="0" role="group" aria-label="Figure">')
    assert '<img src="figures/ring.svg" alt="Four ranks in a ring" width="500" height="200"' in body
    caption = body[body.index("<figcaption>") :]
    assert "katex" in caption
    assert "<code>r + 1</code>" in caption
    assert "<em>" not in caption


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("![a](figures/ring.svg)", "caption"),
        ("![a](figures/ring.svg)\nplain", "caption"),
        ("![](figures/ring.svg)\n*caption*", "what it shows"),
        ("![a](https://example.org/x.png)\n*caption*", "figures/NAME.svg"),
        ("![a](figures/rung.svg)\n*caption*", "no figure 'rung'"),
        ("Here ![a](figures/ring.svg)", "within a line"),
    ],
)
def test_picture_in_another_form_is_an_error(page, text: str, problem: str) -> None:
    with pytest.raises(PageError, match=f"page rings: .*{re.escape(problem)}"):
        page(text)


def test_quotation_with_a_bold_title_is_a_box(page) -> None:
    body = page("> **Sizes need not divide**\n>\n> Because.\n>\n> > nested\n\nAfter.").body
    assert '<div class="box" role="note">\n<p class="box-title"><strong>Sizes need not divide</strong></p>' in body
    assert body.count("<blockquote>") == body.count("</blockquote>") == 1
    assert body.rstrip().endswith("</div>\n<p>After.</p>")


@pytest.mark.parametrize("text", ["> Plain.", "> **Bold** and more.", "> **a** and **b**", "> - x", "> "])
def test_other_quotations_stay_quotations(page, text: str) -> None:
    body = page(text).body
    assert "box" not in body
    assert "<blockquote>" in body


def test_lettered_options_have_no_bullets(page) -> None:
    assert '<ul class="lettered">' in page("- (a) One.\n- (b) Two.").body
    assert "lettered" not in page("- (a) One.\n- Two.").body


def test_headings_in_order_have_slugs_that_differ(page) -> None:
    rendered = page("## Example\n\n### `all_reduce`\n\n## Example\n\n## What the lecture says: 2(W − 1)")
    assert [(heading.level, heading.slug) for heading in rendered.headings] == [
        (2, "example"),
        (3, "all_reduce"),
        (2, "example-1"),
        (2, "what-the-lecture-says-2w--1"),
    ]
    assert '<h3 id="all_reduce"><code>all_reduce</code></h3>' in rendered.body
    assert rendered.title == "Title"
    assert "<h1" not in rendered.body


@pytest.mark.parametrize("text", ["### Too deep", "## A\n\n#### Too deep", "# A second title", "## A\n\n# Too late"])
def test_headings_out_of_order_are_an_error(page, text: str) -> None:
    with pytest.raises(PageError, match="page rings: the heading"):
        page(text)


def test_page_without_a_title_is_an_error(typesetter: Typesetter) -> None:
    with pytest.raises(PageError, match="page x: it has no heading of level 1"):
        render("Text.", "x", Screen(), typesetter)


def test_links_lead_to_pages_of_the_set(page) -> None:
    rendered = page("[a](index.md) [b](index.md#words) [c](#here) [d](https://example.org/x.md)")
    assert re.findall(r'href="([^"]*)"', rendered.body) == [
        "index.html",
        "index.html#words",
        "#here",
        "https://example.org/x.md",
    ]
    assert rendered.targets == (Target("index", ""), Target("index", "words"), Target("rings", "here"))


@pytest.mark.parametrize("address", ["../secret.md", "docs/x.md", "x.html", "/index.md", "file:///x"])
def test_link_to_another_kind_of_file_is_an_error(page, address: str) -> None:
    try:
        body = page(f"[a]({address})").body
    except PageError as error:
        assert address in str(error)  # noqa: PT017  # Markdown itself refuses some of them: then it is no link
    else:
        assert "<a " not in body


def test_check_links_names_the_page_and_what_is_missing() -> None:
    slugs = {"a": ["one"], "b": ["two"]}
    check_links({"a": [Target("b", "two"), Target("b", "")], "b": [Target("b", "two")]}, slugs)
    with pytest.raises(PageError, match=r"page a: a link leads to c\.md"):
        check_links({"a": [Target("c", "")]}, slugs)
    with pytest.raises(PageError, match=r"page b: a link leads to a\.md#two"):
        check_links({"b": [Target("a", "two")]}, slugs)


def test_slug_of_a_heading_of_signs_alone() -> None:
    assert slug_of("!?", []) == "section"
    assert slug_of("!?", ["section"]) == "section-1"
