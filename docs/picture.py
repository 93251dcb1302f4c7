"""`make picture`: draws docs/demo.svg, the terminal at the end of `make demo`, from the gradebook of that run."""

from __future__ import annotations

import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

from grader.batch.gradebook import FILE_NAME, read
from grader.report.table import table_text

ROOT = Path(__file__).resolve().parents[1]
GRADED = Path("out/demo")
WIDTH = 80


def main() -> None:
    """Writes the picture; its font is the reader's own, so that nothing is loaded from elsewhere."""
    book = read(ROOT / GRADED / FILE_NAME)
    console = Console(record=True, width=WIDTH, file=(ROOT / "out" / "picture.txt").open("w"), force_terminal=True)
    console.print("$ grader grade tests/samples --out out/demo", style="bold", highlight=False)
    console.print(Text.from_ansi(table_text(book, width=WIDTH, color=True)))
    svg = console.export_svg(title="grader grade", unique_id="demo")
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas")
    title = "<title>The table of a graded class: scores by module, bonus, total and worst verdict</title>"
    svg = svg.replace(">", f' role="img">{title}', 1)
    (ROOT / "docs" / "demo.svg").write_text(re.sub(r"[ \t]+\n", "\n", svg))


if __name__ == "__main__":
    main()
