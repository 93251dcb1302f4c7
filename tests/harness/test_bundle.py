"""The student bundle: what is in it, and a student's first ten minutes with it in an environment of its own."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from grader.checking import catalog
from grader.checking.selection import Selection, from_ini
from grader.checking.spec import MODULES
from grader.handout import bundle, stubs, tags
from grader.handout.bundle import BundleError, BundleFacts, contents_of, plan_bundle, zip_bytes
from grader.jail import packages

ROOT = Path(__file__).resolve().parents[2]
FACTS = BundleFacts(
    course='Training "Large" Models',
    term="Spring 2027",
    version="2027.1",
    selection=Selection(),
    contact="the course staff, staff@course.example",
)
SOURCES = stubs.read_sources(ROOT / "reference")
IMPORTABLE = {"torch", "numpy", "safetensors", "pytest", "click"}


def planned(facts: BundleFacts = FACTS) -> dict[str, bytes]:
    built = [path for path in (ROOT / "handouts/built").rglob("*") if "staff" not in path.parts]
    return plan_bundle(
        ROOT,
        stubs=stubs.build_stubs(SOURCES),
        handout={"figures/one.svg": b"<svg/>"}
        | {path.name: path.read_text() for path in built if path.suffix == ".md"},
        notebooks={path.name: path.read_text() for path in built if path.suffix == ".ipynb"},
        facts=facts,
    )


@pytest.fixture(scope="module")
def members() -> dict[str, bytes]:
    return planned()


def test_students_get_what_they_need_and_nothing_of_the_staffs(members: dict[str, bytes]) -> None:
    assert {f"assignment/{module}.py" for module in MODULES} < members.keys()
    assert {"grader/given.py", "grader/cli.py", "grader/world/zygote.py", "grader/checking/plugin.py"} < members.keys()
    assert {"tests/__init__.py", "tests/public/test_collectives.py", "handout/index.md"} < members.keys()
    assert {"handout/figures/one.svg", "notebooks/collectives.ipynb", ".gitignore"} < members.keys()
    assert members["VERSION"] == b"2027.1\n"
    assert members["CLAUDE.md"] == members["AGENTS.md"]
    rooms = {name.split("/")[1] for name in members if name.startswith("grader/") and name.count("/") > 1}
    assert rooms == {"world", "cluster", "checking"}
    strange = [name for name in members if re.search(r"hidden|reference|__pycache__|\.pyc|staff|mutants", name)]
    assert strange == []
    assert not any(b"SOLUTION" in text for name, text in members.items() if name.startswith("assignment/"))


def test_nothing_imports_what_students_do_not_have(members: dict[str, bytes]) -> None:
    for name, text in members.items():
        if not name.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(text)):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                imported = [node.module or ""]
            for module in imported:
                top = module.partition(".")[0]
                if module == "grader.jail.bubblewrap" or name.startswith("assignment/"):
                    continue  # asked for by --jail alone; the examples import what the student has written
                path = module.replace(".", "/")
                own = f"{path}.py" in members or any(member.startswith(f"{path}/") for member in members)
                assert top in sys.stdlib_module_names or top in IMPORTABLE or own, f"{name} imports {module}"


def test_it_asks_for_what_the_repository_asks_for_and_pins_nothing(members: dict[str, bytes]) -> None:
    project = tomllib.loads(members["pyproject.toml"].decode())
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    asked = [Requirement(line) for line in project["project"]["dependencies"]]
    assert {one.name for one in asked} == {Requirement(line).name for line in ours} == IMPORTABLE
    assert [str(one.specifier) for one in asked if one.name == "torch"] == [">=2.11"]
    assert all(part.operator == ">=" for one in asked for part in one.specifier)
    assert project["project"]["description"].startswith('Training "Large" Models')


def test_settings_reach_the_plugin() -> None:
    facts = replace(FACTS, selection=Selection(("benchmark", "collectives"), "core", (1, 2), 3))
    settings = tomllib.loads(planned(facts)["pyproject.toml"].decode())["tool"]["pytest"]["ini_options"]
    chosen = from_ini(settings)
    assert (set(chosen.modules), chosen.tier, chosen.world_sizes, chosen.scale) == (
        {"collectives", "benchmark"},
        "core",
        (1, 2),
        3,
    )


def test_what_belongs_to_other_modules_is_left_out() -> None:
    members = planned(replace(FACTS, selection=Selection(modules=("collectives",))))
    own = [name for name in members if name.startswith(("assignment/", "tests/"))]
    assert [name for name in own if re.match(r"assignment/\w+\.py", name)] == ["assignment/collectives.py"]
    assert "tests/public/test_collectives_rings.py" in own
    assert "tests/public/oracles/collectives.py" in own
    assert "tests/public/programs/collectives_setup.py" in own
    strangers = [
        name for name in own if re.search(r"pipeline|tensor_parallel|data_parallel|benchmark|accounting", name)
    ]
    assert strangers == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "next spring"}, "version: 'next spring' is not a version number"),
        ({"selection": Selection(modules=("sorting",))}, "sorting is offered and has no stub"),
    ],
)
def test_facts_that_make_no_bundle_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(BundleError, match=re.escape(message)):
        planned(replace(FACTS, **changes))  # type: ignore[arg-type]


def test_a_zip_is_the_same_bytes_again_and_gives_its_contents_back(
    members: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = zip_bytes(members)
    monkeypatch.setattr(time, "time", lambda: 2e9)  # another day
    assert zip_bytes(dict(reversed(members.items()))) == packed
    assert contents_of(packed) == members
    with pytest.raises(BundleError, match="not a zip"):
        contents_of(b"no")


class Student:
    """The unpacked bundle and an environment that holds what its pyproject.toml asks for, and no more."""

    def __init__(self, place: Path, packed: bytes) -> None:
        for name, content in contents_of(packed).items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
        self.folder = place
        self.bin = place / ".venv/bin"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / ".venv"], check=True)
        asked = tomllib.loads((place / "pyproject.toml").read_text())["project"]["dependencies"]
        site = next((place / ".venv/lib").glob("python*/site-packages"))
        roots = [Requirement(line).name for line in asked]
        for entry, path in packages.installed([*roots, "pip", "setuptools"]).entries.items():
            if "/" not in entry:  # not the compiled file of another environment
                (site / entry).symlink_to(path)
        self.link_command("pytest")
        # Without --no-deps: pip agrees that all that is asked for is there, and has nowhere to get it from.
        options = ["--no-index", "--no-build-isolation", "--disable-pip-version-check", "-q", "-e", "."]
        self.install = self.run("python", "-m", "pip", "install", *options)

    def link_command(self, name: str) -> None:
        """The command of a linked package, as pip would have made it."""
        (entry,) = metadata.entry_points(group="console_scripts", name=name)
        path = self.bin / name
        lines = [f"#!{self.bin / 'python'}", "import sys", f"from {entry.module} import {entry.attr} as main"]
        path.write_text("\n".join([*lines, "sys.exit(main())", ""]))
        path.chmod(0o755)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{self.bin}:{os.defpath}", "HOME": str(self.folder), "COLUMNS": "80"}
        command = [str(self.bin / words[0]), *words[1:]]
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=300
        )


@pytest.fixture(scope="module")
def student(members: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Student:
    student = Student(tmp_path_factory.mktemp("student") / bundle.FOLDER, zip_bytes(members))
    assert student.install.returncode == 0, student.install.stdout + student.install.stderr
    return student


def public_points() -> int:
    return sum(listed.spec.points for listed in catalog.load([bundle.PUBLIC], root=ROOT) if not listed.spec.bonus)


def test_the_environment_is_the_students_own(student: Student) -> None:
    code = "import grader; from importlib.util import find_spec as f; print(grader.__file__, f('pydantic'), f('xdist'))"
    seen = student.run("python", "-c", code)
    assert seen.stdout.split() == [str(student.folder / "grader/__init__.py"), "None", "None"], seen.stderr


def test_the_first_run_names_every_function_and_where_to_start(student: Student) -> None:
    seen = student.run("pytest")
    text = seen.stdout
    assert seen.returncode == 1, text + seen.stderr
    assert f"0 of {public_points()} public points" in text
    assert not re.search(r"\berrors?\b|what is wrong|Traceback|warning", text, re.IGNORECASE), text
    table = text[text.index("= points =") :].splitlines()
    assert [line for line in table if len(line) > 80] == []
    listed = [line for line in table if re.match(r" +\d+: \w", line)]
    raised = [line for source in stubs.build_stubs(SOURCES).values() for line in source.splitlines()]
    assert len(listed) == sum(line.strip().startswith("raise NotImplementedError(") for line in raised)
    named = next(line for line in table if re.match(r" +\d+: broadcast: send", line))
    number = named.strip().partition(":")[0]
    assert f"start here: assignment/collectives.py:{number}, broadcast" in table
    assert "then run:   pytest -k broadcast" in table
    assert sum(line.startswith("  not written ") for line in table) == len(MODULES)


def with_one_function(filename: str, name: str) -> str:
    """The stub with this function written, and with all that no STUB line stands for (imports, private functions)."""
    source = SOURCES[filename]
    function = next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == name)
    lines = source.split("\n")
    for block in reversed(tags.parse(source, filename)):
        if block.stub and not function.lineno < block.begin <= (function.end_lineno or 0):
            lines[block.begin - 1 : block.end] = [" " * block.indent + line for line in block.stub]
    return "\n".join(lines)


def test_one_function_turns_its_check_green(student: Student) -> None:
    target = student.folder / "assignment/collectives.py"
    before = target.read_text()
    target.write_text(with_one_function("collectives.py", "broadcast"))
    try:
        seen = student.run("pytest", "-k", "(broadcast or scatter) and not reduce and not module")
    finally:
        target.write_text(before)
    assert re.search(r"^  pass +broadcast +1 / 1$", seen.stdout, re.MULTILINE), seen.stdout + seen.stderr
    assert "1 of 2 public points" in seen.stdout
    assert re.search(r"^start here: assignment/collectives.py:\d+, scatter$", seen.stdout, re.MULTILINE)


def test_the_reference_gets_every_public_point(student: Student) -> None:
    before = {filename: (student.folder / "assignment" / filename).read_text() for filename in SOURCES}
    for filename, source in SOURCES.items():
        (student.folder / "assignment" / filename).write_text(tags.solved(source, filename))
    try:
        seen = student.run("pytest")
        drawn = student.run("grader", "draw", "collectives", "--out", "timeline.svg")
    finally:
        for filename, text in before.items():
            (student.folder / "assignment" / filename).write_text(text)
    assert seen.returncode == 0, seen.stdout + seen.stderr
    assert f"{public_points()} of {public_points()} public points" in seen.stdout
    assert "not written" not in seen.stdout
    assert drawn.returncode == 0, drawn.stdout + drawn.stderr
    assert (student.folder / "timeline.svg").read_text().startswith("<svg")


def test_the_command_has_only_what_students_use(student: Student) -> None:
    seen = student.run("grader", "--help")
    assert seen.returncode == 0, seen.stderr
    commands = seen.stdout[seen.stdout.index("Commands:") :].partition("\n\n")[0].splitlines()[1:]
    assert [line.split()[0] for line in commands] == ["draw"]
    assert student.run("grader", "--version").stdout.split()[-1] == FACTS.version
