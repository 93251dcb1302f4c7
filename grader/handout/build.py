"""What is generated and committed, as filename -> text; then written, or compared with what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment

from grader.checking.spec import MODULES, CheckSpec
from grader.handout import contract, leaks, notebook, pages, questions, stubs

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
    templates = root / "handouts" / "templates"
    choices = templates / "choices.toml"
    course = pages.Course(
        stubs=stubs.build_stubs(sources),
        checks=tuple(checks),
        questions=tuple(questions.read_questions(choices.read_text(encoding="utf-8"), choices.name)),
    )
    _refuse_unknown_names(course)
    environment = pages.template_environment(templates)
    files = {"index.md": pages.render_index(environment, course)}
    for module in MODULES:
        files[f"{module}.md"] = pages.render_page(environment, course, module, notebook=False)
        text = pages.render_page(environment, course, module, notebook=True)
        cells = _code_cells(environment, course, module)
        _refuse_leaks(f"{module}.ipynb", "\n".join([text, *cells.values()]), sources)
        files[f"{module}.ipynb"] = notebook.build_notebook(module, text, cells)
    for name in ("index.md", *(f"{module}.md" for module in MODULES)):
        _refuse_leaks(name, files[name], sources)
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


def _code_cells(environment: Environment, course: pages.Course, module: str) -> dict[str, str]:
    stub = course.stubs[f"{module}.py"]
    return {
        name: environment.get_template(f"cells/{name}.py.j2").render(module=module, stub=stub) for name in CODE_CELLS
    }


def _refuse_unknown_names(course: pages.Course) -> None:
    for check in course.checks:
        defined = contract.read_contract(course.stubs[f"{check.module}.py"]).names()
        for name in check.needs:
            if name not in defined:
                raise HandoutError(f"check {check.name} needs {name}, which {check.module}.py does not define")


def _refuse_leaks(name: str, text: str, sources: Mapping[str, str]) -> None:
    for leak in leaks.find_leaks(text, sources):
        raise HandoutError(f"{name} shows {leak.filename}:{leak.line}, a line of the solution: {leak.text}")


def _read(path: Path) -> str | None:
    return path.read_bytes().decode("utf-8") if path.is_file() else None
