"""What is generated and committed, as filename -> text; then written, or compared with what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment

from grader.checking.spec import MODULES, CheckSpec
from grader.handout import leaks, notebook, pages, questions, stubs, tags
from grader.handout.contract import read_contract

TEMPLATES = Path("handouts/templates")
CODE_CELLS = ("folder", "stub", "checks")  # templates/cells/NAME.py.j2


class HandoutError(ValueError):
    """The sources of the handout do not fit together; the message names the place."""


def plan_stubs(root: Path) -> dict[str, str]:
    """The stubs of assignment/, by filename. `root` is the checkout."""
    return stubs.build_stubs(stubs.read_sources(root / "reference"))


def plan_pages(root: Path, checks: Sequence[CheckSpec]) -> dict[str, str]:
    """The files of handouts/built/, by name: index.md, and a page and a notebook for each module.

    Raises HandoutError for a check that needs a name which the module's stub does not define and where a page
    shows a line of a solution, and whatever the parts raise.
    """
    sources = stubs.read_sources(root / "reference")
    stub_texts = stubs.build_stubs(sources)
    hidden = leaks.hidden_lines(sources)
    course = pages.Course(
        contracts={module: read_contract(tags.stub(sources[f"{module}.py"], f"{module}.py")) for module in MODULES},
        checks=tuple(checks),
        questions=_read_questions(root),
    )
    _refuse_unknown_names(course)
    environment = pages.template_environment(root / TEMPLATES)
    files = {"index.md": pages.render_index(environment, course)}
    _refuse_leaks("index.md", files["index.md"], hidden)
    for module in MODULES:
        page = pages.render_page(environment, course, module, notebook=False)
        text = pages.render_page(environment, course, module, notebook=True)
        cells = _code_cells(environment, module, stub_texts[f"{module}.py"])
        _refuse_leaks(f"{module}.md", page, hidden)
        _refuse_leaks(f"{module}.ipynb", "\n".join([text, *cells.values()]), hidden)
        files[f"{module}.md"] = page
        files[f"{module}.ipynb"] = notebook.build_notebook(module, text, cells)
    return files


def differing(files: Mapping[str, str], folder: Path) -> list[str]:
    """The names of the files that the folder lacks or that hold something else there, in order."""
    return [name for name, text in sorted(files.items()) if _read(folder / name) != text]


def write(files: Mapping[str, str], folder: Path) -> list[str]:
    """Writes the files that differ into the folder and returns their names."""
    folder.mkdir(parents=True, exist_ok=True)
    changed = differing(files, folder)
    for name in changed:
        (folder / name).write_text(files[name], encoding="utf-8", newline="\n")
    return changed


def _read_questions(root: Path) -> tuple[questions.Question, ...]:
    path = root / TEMPLATES / "choices.toml"
    return tuple(questions.read_questions(path.read_text(encoding="utf-8"), path.name))


def _code_cells(environment: Environment, module: str, stub: str) -> dict[str, str]:
    return {
        name: environment.get_template(f"cells/{name}.py.j2").render(module=module, stub=stub) for name in CODE_CELLS
    }


def _refuse_unknown_names(course: pages.Course) -> None:
    for check in course.checks:
        defined = course.contracts[check.module].names()
        for name in check.needs:
            if name not in defined:
                raise HandoutError(f"check {check.name} needs {name}, which {check.module}.py does not define")


def _refuse_leaks(name: str, text: str, hidden: Sequence[leaks.HiddenLine]) -> None:
    for leak in leaks.find_leaks(text, hidden):
        raise HandoutError(f"{name} shows {leak.filename}:{leak.line}, a line of the solution: {leak.text}")


def _read(path: Path) -> str | None:
    return path.read_bytes().decode("utf-8") if path.is_file() else None
