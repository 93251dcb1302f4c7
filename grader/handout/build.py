"""What is generated: the stubs, and all that students and staff get, as path -> content. Pure; `publish` writes it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from jinja2 import Environment

from grader.checking.catalog import ListedCheck
from grader.checking.course import Course
from grader.cluster.svg import Figure
from grader.handout import facts, leaks, notebook, pages, pdf, points, questions, staff, stubs, tags
from grader.handout.bundle import BundleFacts, plan_bundle, zip_bytes
from grader.handout.compare import Content
from grader.handout.contract import read_contract
from grader.handout.messages import Messages
from grader.handout.web.printed import print_document
from grader.handout.web.site import Site, build_site

QUESTIONS = pages.TEMPLATES / "questions.toml"
MESSAGES = Path("handouts/messages.json")
GIVEN = ("grader/given.py", "assignment/examples/hello.py", "assignment/examples/train_mlp.py")
HARNESS = re.compile(r"(grader|tests)/.*\.py")  # members of the bundle that are the harness's own code


class HandoutError(ValueError):
    """The sources of the handout do not fit together; the message names the place."""


@dataclass(frozen=True)
class Handout:
    """All that a build makes: files for students, files for staff, and a line for each form that was left out."""

    student: Mapping[str, Content]
    staff: Mapping[str, Content]
    left_out: tuple[str, ...]


def plan_stubs(root: Path) -> dict[str, str]:
    """The stubs of assignment/, by filename. `root` is the checkout."""
    return stubs.build_stubs(stubs.read_sources(root / "reference"))


def plan_handout(
    root: Path,
    course: Course,
    listed: Sequence[ListedCheck],
    figures: Mapping[str, Figure],
    *,
    before: Sequence[Mapping[str, object]] = (),
) -> Handout:
    """The files of built/student/ and built/staff/.

    listed: every check there is. figures: by name, drawn already. before: the checks of the last build, for messages.
    Raises HandoutError for a check that needs a name which the module's stub does not define and for an output that
    shows a line of a solution; PointsError; and whatever the parts raise.
    """
    points.require_points(course, listed, before)
    sources = stubs.read_sources(root / "reference")
    stub_texts = stubs.build_stubs(sources)
    answers = questions.read_answers((root / QUESTIONS).read_text(encoding="utf-8"), QUESTIONS.name)
    asked = [answer.question for answer in answers]
    material = gather_material(root, course, listed, figures, sources, asked)
    environment = pages.template_environment(root / pages.TEMPLATES)
    texts = plan_texts(environment, material)
    site = _site(course)
    student: dict[str, Content] = {f"{stem}.md": text for stem, text in texts.items()}
    pictures = {name: figure.picture.svg() for name, figure in figures.items()}
    student |= build_site(texts, site=site, root=root, figures=pictures)
    student |= {f"figures/{name}.svg": picture for name, picture in pictures.items()}
    given = [question for question in asked if question.module in material.modules]
    student[facts.FILE_NAME] = facts.to_json(facts.facts_of(course, material.contracts, material.checks, given))
    handout = dict(student)
    plain = {name: figure.picture.plain() for name, figure in figures.items()}
    notebooks = _notebooks(environment, texts, stub_texts, plain, solved=False)
    student |= notebooks
    left_out = []
    if (missing := pdf.missing()) is None:
        document = print_document(texts, plain, site, root=root)
        student["handout.pdf"] = pdf.build_pdf(document, title=site.title)
    else:
        left_out.append(missing)
    bundle = _bundle(root, course, stub_texts, handout, notebooks)
    _refuse_leaks(student, bundle, root, sources)
    student["student.zip"] = zip_bytes(bundle)
    for_staff: dict[str, Content] = dict(staff.plan_staff(sources, answers, environment, material.modules))
    solved = {filename: tags.solved(source, filename) for filename, source in sources.items()}
    for_staff |= _notebooks(environment, texts, solved, plain, solved=True)
    return Handout(student, for_staff, tuple(left_out))


def gather_material(
    root: Path,
    course: Course,
    listed: Sequence[ListedCheck],
    figures: Mapping[str, Figure],
    sources: Mapping[str, str],
    asked: Sequence[questions.Question],
) -> pages.Material:
    """What the pages are made of. Raises HandoutError for a check that needs a name which no stub defines.

    sources: the tagged modules by filename. asked: the questions, without answers: no template can show what it never
    gets.
    """
    selection = course.selection
    public = {check.spec.name for check in listed if not check.spec.hidden}
    material = pages.Material(
        course=course,
        contracts={
            module: read_contract(tags.stub(sources[f"{module}.py"], f"{module}.py")) for module in selection.modules
        },
        checks=selection.given(check.spec for check in listed),
        questions=asked,
        figures=figures,
        messages=Messages.read((root / MESSAGES).read_text(encoding="utf-8"), MESSAGES.name, public=public),
    )
    _refuse_unknown_names(material)
    return material


def plan_texts(environment: Environment, material: pages.Material) -> dict[str, str]:
    """The pages as Markdown, by stem: "index" and the modules."""
    texts = {"index": pages.render_index(environment, material)}
    return texts | {module: pages.render_page(environment, material, module) for module in material.modules}


def _site(course: Course) -> Site:
    nav = [("index", "Overview"), *((module, module.replace("_", " ")) for module in course.selection.modules)]
    return Site(title=course.title, term=course.term, nav=tuple(nav), contact=course.contact.email)


def _notebooks(
    environment: Environment,
    texts: Mapping[str, str],
    code: Mapping[str, str],
    pictures: Mapping[str, str],
    *,
    solved: bool,
) -> dict[str, str]:
    """A notebook for each module's page; its cell to write holds code["MODULE.py"]: the stub or, for staff, the
    solution."""
    return {
        f"{stem}.ipynb": notebook.module_notebook(environment, stem, text, code[f"{stem}.py"], pictures, solved=solved)
        for stem, text in texts.items()
        if stem != "index"
    }


def _bundle(
    root: Path,
    course: Course,
    stub_texts: Mapping[str, str],
    handout: Mapping[str, Content],
    notebooks: Mapping[str, str],
) -> dict[str, bytes]:
    """The members of student.zip, with a version that names their contents."""
    number = version("allgrade")
    draft = BundleFacts(course.title, course.term, number, course.selection, course.contact.email)

    def planned(bundle_facts: BundleFacts) -> dict[str, bytes]:
        return plan_bundle(root, stubs=stub_texts, handout=handout, notebooks=notebooks, facts=bundle_facts)

    return planned(replace(draft, version=f"{number}+{_digest(planned(draft))}"))


def _digest(members: Mapping[str, bytes]) -> str:
    """What names a bundle: the same for the same contents."""
    total = hashlib.sha256()
    for name, data in sorted(members.items()):
        total.update(f"{name}:{len(data)}:".encode() + data)
    return total.hexdigest()[:12]


def _refuse_unknown_names(material: pages.Material) -> None:
    for check in material.checks:
        defined = material.contracts[check.module].names()
        for name in check.needs:
            if name not in defined:
                raise HandoutError(f"check {check.name} needs {name}, which {check.module}.py does not define")


def _refuse_leaks(
    files: Mapping[str, Content], bundle: Mapping[str, bytes], root: Path, sources: Mapping[str, str]
) -> None:
    """Looks for solutions in every file for students and in every member of the zip."""
    given = [(root / path).read_text(encoding="utf-8") for path in GIVEN if (root / path).is_file()]
    lines, passages = leaks.hidden_lines(sources, given), leaks.hidden_passages(sources, given)
    for name, content in sorted(files.items()):
        _refuse(name, leaks.find_leaks(leaks.text_of(name, content), lines))
    for name, data in sorted(bundle.items()):
        hidden = passages if HARNESS.fullmatch(name) else lines
        _refuse(f"student.zip: {name}", leaks.find_leaks(leaks.text_of(name, data), hidden))


def _refuse(name: str, found: Sequence[leaks.HiddenLine]) -> None:
    for leak in found:
        raise HandoutError(f"{name} shows {leak.filename}:{leak.line}, a line of the solution: {leak.text}")
