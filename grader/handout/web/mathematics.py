"""Formulas as HTML, set by KaTeX while the handout is built: the pages themselves run no script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import quickjs  # type: ignore[import-untyped]

MathOutput = Literal["htmlAndMathml", "html"]

KATEX = Path("handouts/assets/katex/katex.min.js")
MEMORY = 256 * 2**20  # bytes; a formula that expands without end stops here
SECONDS = 10  # for one formula; the longest of ours takes some milliseconds
UNDERLINE = "\u0332"  # KaTeX underlines the place of an error with it

# KaTeX shows a command that it does not trust (a link, a picture) in red and goes on: here it is an error too.
# A string that JavaScript built piece by piece does not cross to Python; one made by JSON.stringify does.
_RENDER = """
function refuse(context) { throw new Error(context.command + " is not allowed"); }
function render(formula, display, output) {
    try {
        return JSON.stringify({html: katex.renderToString(formula, {
            displayMode: display, output: output, throwOnError: true, strict: "error", trust: refuse})});
    } catch (error) {
        return JSON.stringify({error: String(error.message)});
    }
}
"""


class FormulaError(ValueError):
    """KaTeX refuses a formula."""

    def __init__(self, formula: str, reason: str) -> None:
        super().__init__(f"the formula ${formula}$ cannot be set: {reason}")
        self.formula = formula
        self.reason = reason


class Typesetter:
    """KaTeX, loaded once for all formulas of a build."""

    def __init__(self, root: Path) -> None:
        """root: the checkout, which holds KaTeX's file."""
        context = quickjs.Context()
        context.set_memory_limit(MEMORY)
        context.set_time_limit(SECONDS)
        context.eval((root / KATEX).read_text(encoding="utf-8"))
        context.eval(_RENDER)
        self._render = context.get("render")

    def html(self, formula: str, *, display: bool, output: MathOutput) -> str:
        """The formula (LaTeX, without its dollars) as HTML that katex.min.css styles.

        display: on a line of its own. output: "htmlAndMathml" for the web, where MathML is what a screen reader
        reads; "html" for paper, whose text would hold each formula twice otherwise. Raises FormulaError for what
        KaTeX refuses, and KaTeX is strict here: unknown commands, unbalanced braces, letters outside ASCII, links.
        """
        try:
            answer = json.loads(self._render(formula, display, output))
        except quickjs.JSException as error:  # out of memory or of time
            raise FormulaError(formula, str(error)) from error
        if "error" in answer:
            reason = str(answer["error"]).removeprefix("KaTeX parse error: ").replace(UNDERLINE, "")
            raise FormulaError(formula, reason)
        return str(answer["html"])
