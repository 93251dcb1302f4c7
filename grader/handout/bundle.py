"""What students get: one folder with stubs, checks, the student rooms of grader/, the handout and the notebooks."""

from __future__ import annotations

import ast
import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from grader.checking.selection import Selection
from grader.handout.compare import Content, as_bytes
from grader.handout.compare import members as members_of
from grader.handout.pages import TEMPLATES, template_environment

FOLDER = "parallel-training"
WRITTEN = ("pyproject.toml", "README.md", "CLAUDE.md", "AGENTS.md", ".gitignore")  # templates/bundle/NAME.j2
PUBLIC = Path("tests/public")
SINGLE_FILES = ("grader/__init__.py", "grader/given.py", "grader/cli.py", "tests/__init__.py")
ROOMS = ("grader/world", "grader/cluster", "grader/checking")  # the other rooms are staff's
STAFF_FILES = frozenset({"grader/checking/course.py"})  # in a student room, for staff alone
SUFFIXES = frozenset({".py", ".json", ".toml"})
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip can name


class BundleError(ValueError):
    """The bundle cannot be made of this; the message names what is wrong."""


@dataclass(frozen=True)
class BundleFacts:
    """What a course and a term put into the bundle.

    version:   of this edition of the assignment, such as "2027.1"; it is also the package's.
    selection: what is offered.
    contact:   whom students ask, as one line of text.
    """

    course: str
    term: str
    version: str
    selection: Selection
    contact: str


def plan_bundle(
    root: Path,
    *,
    stubs: Mapping[str, str],
    handout: Mapping[str, Content],
    notebooks: Mapping[str, str],
    facts: BundleFacts,
) -> dict[str, bytes]:
    """The members of the bundle by their path below `FOLDER`, in order; reads `root`, writes nothing.

    root:      the checkout. stubs: text by filename (collectives.py); those of other modules are left out.
    handout:   what goes into handout/, by its path there. notebooks: text by filename, for notebooks/.
    Raises BundleError for a module that has no stub or no public checks, and a version that pip does not take.
    """
    _refuse_bad_version(facts.version)
    members = {**_written(root, facts), "VERSION": f"{facts.version}\n".encode()}
    modules = facts.selection.modules
    for module in modules:
        if f"{module}.py" not in stubs:
            raise BundleError(f"{module} is offered and has no stub")
        members[f"assignment/{module}.py"] = stubs[f"{module}.py"].encode()
    paths = [root / name for name in SINGLE_FILES]
    for folder in ("assignment/examples", *ROOMS):
        paths += _sources(root / folder)
    paths += public_files(root / PUBLIC, modules)
    by_name = {path.relative_to(root).as_posix(): path for path in paths}
    members |= {name: path.read_bytes() for name, path in by_name.items() if name not in STAFF_FILES}
    members |= {f"handout/{name}": as_bytes(content) for name, content in handout.items()}
    members |= {f"notebooks/{name}": text.encode() for name, text in notebooks.items()}
    return dict(sorted(members.items()))


def public_files(public: Path, modules: tuple[str, ...]) -> list[Path]:
    """The test files of these modules below `public`, with the oracles, runs and programs that they lead to.

    A program is named in a string, "NAME.function": it is kept where a string of a kept file begins with its name.
    Raises BundleError for a module without a test file.
    """
    waiting: list[Path] = []
    for module in modules:
        own = sorted(public.glob(f"test_{module}*.py"))
        if not own:
            raise BundleError(f"{module} is offered and has no public checks in {PUBLIC.as_posix()}")
        waiting += own
    kept: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in kept:
            kept.add(path)
            waiting += _imported(path, public)
    texts = [path.read_text(encoding="utf-8") for path in kept]
    for program in (public / "programs").glob("*.py"):
        if any(re.search(rf"[\"']{re.escape(program.stem)}\b", text) for text in texts):
            kept.add(program)
    return sorted(kept)


def zip_bytes(members: Mapping[str, bytes]) -> bytes:
    """The members as a zip with one folder, `FOLDER`; the same members give the same bytes with the same zlib."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(f"{FOLDER}/{name}", date_time=EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, wherever it is made
            info.external_attr = 0o100644 << 16
            archive.writestr(info, members[name], compresslevel=9)
    return buffer.getvalue()


def contents_of(packed: bytes) -> dict[str, bytes]:
    """The members of a zip of `zip_bytes`: to compare by content, since another zlib makes other bytes.

    Raises BundleError for what is not such a zip.
    """
    try:
        found = members_of(packed)
    except zipfile.BadZipFile as error:
        raise BundleError(f"not a zip: {error}") from None
    if outside := [name for name in found if not name.startswith(f"{FOLDER}/")]:
        raise BundleError(f"{outside[0]} is not in the folder {FOLDER}/")
    return {name.removeprefix(f"{FOLDER}/"): content for name, content in found.items()}


def _written(root: Path, facts: BundleFacts) -> dict[str, bytes]:
    environment = template_environment(root / TEMPLATES)
    environment.filters["toml"] = lambda text: json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    selection = facts.selection
    values = {**asdict(facts), "modules": selection.modules, "folder": FOLDER, "settings": selection.to_ini()}
    return {name: environment.get_template(f"bundle/{name}.j2").render(values).encode() for name in WRITTEN}


def _sources(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file() and "__pycache__" not in path.parts:
            yield path


def _imported(path: Path, public: Path) -> Iterator[Path]:
    """The files of the package tests.public that a file imports, and the `__init__.py` above each."""
    package = ".".join(PUBLIC.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name == package or name.startswith(f"{package}."):
                yield from _module_files(public, name.removeprefix(package).lstrip(".").split("."))
    yield from _module_files(public, [])


def _module_files(public: Path, parts: list[str]) -> Iterator[Path]:
    """The file of a module below `public`, and the packages that hold it; a name inside a module has no file."""
    candidates = [public.joinpath(*parts).with_suffix(".py")] if any(parts) else []
    candidates += [public.joinpath(*parts[:depth], "__init__.py") for depth in range(len(parts) + 1)]
    yield from (path for path in candidates if path.is_file())


def _refuse_bad_version(version: str) -> None:
    try:
        Version(version)
    except InvalidVersion:
        raise BundleError(f"version: {version!r} is not a version number such as 2027.1") from None
