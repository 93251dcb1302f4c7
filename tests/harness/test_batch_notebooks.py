"""Notebooks that are handed in: modules come from their cells, nothing runs, and nothing that they hold raises."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.batch import notebook
from grader.batch.notebook import MAX_NOTEBOOK_BYTES, read_notebook
from grader.batch.sources import SourceError, find
from grader.batch.submission import MAX_FILE_BYTES, MODULE_FILES, Submission
from tests.harness.notebooks import ROOT, notebook_of

CODE = "def broadcast(): ...\n"
OTHER = "def scatter(): ...\n"


def cell(source: object, kind: object = "code") -> dict[str, object]:
    return {"cell_type": kind, "metadata": {}, "source": source, "outputs": [], "execution_count": None}


def writes(module: str, code: str = CODE, folder: str = "assignment/") -> dict[str, object]:
    return cell(f"%%writefile {folder}{module}.py\n{code}")


def book(*cells: object) -> bytes:
    return json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def only(path: Path) -> Submission:
    (found,) = find([path]).submissions
    return found


# What a cell gives


@pytest.mark.parametrize(
    "first",
    [
        "%%writefile collectives.py",
        "%%writefile assignment/collectives.py",
        "%%writefile  ../assignment/collectives.py  ",
        "%%writefile /content/parallel-training/assignment/collectives.py",
        "%%writefile {root}/collectives.py",
        '%%writefile "my work/collectives.py"',
        "%%writefile assignment\\collectives.py",
        "\n  \n%%writefile collectives.py\r",
    ],
)
def test_a_cell_that_writes_a_module_gives_it(first: str) -> None:
    assert read_notebook(book(cell(f"{first}\n{CODE}")), "x.ipynb").files == {"collectives.py": CODE.encode()}


@pytest.mark.parametrize(
    "source",
    [
        CODE,
        f"# %%writefile collectives.py\n{CODE}",
        f"import os\n%%writefile collectives.py\n{CODE}",
        f" %%writefile collectives.py\n{CODE}",
        f"%%writefile notes.py\n{CODE}",
        f"%%writefile collectives.py.txt\n{CODE}",
        f"%%writefile collectives.py/x\n{CODE}",
        f"%%writefile\n{CODE}",
        f"%%writefile  \n{CODE}",
        f"%%writefiles collectives.py\n{CODE}",
        f"%writefile collectives.py\n{CODE}",
        "",
    ],
)
def test_other_cells_give_nothing(source: str) -> None:
    assert read_notebook(book(cell(source)), "x.ipynb").files == {}
    assert read_notebook(book(cell(f"%%writefile collectives.py\n{CODE}", "markdown")), "x.ipynb").files == {}


def test_lines_in_a_list_are_joined_and_the_last_line_ends() -> None:
    held = read_notebook(book(cell(["%%writefile collectives.py\n", "a = 1\n", "b = 2"])), "x.ipynb")
    assert held.files == {"collectives.py": b"a = 1\nb = 2\n"}
    assert held.notes == ()


def test_a_byte_order_mark_and_any_script_are_fine() -> None:
    data = b"\xef\xbb\xbf" + book(writes("collectives", "# é 数\n"))
    assert read_notebook(data, "x.ipynb").files == {"collectives.py": "# é 数\n".encode()}


def test_the_last_cell_of_a_module_counts() -> None:
    held = read_notebook(book(writes("collectives", OTHER), writes("benchmark"), writes("collectives")), "x.ipynb")
    assert held.files == {"collectives.py": CODE.encode(), "benchmark.py": CODE.encode()}
    assert held.notes == ("2 cells of the notebook 'x.ipynb' write collectives.py: the last one counts",)
    assert read_notebook(book(writes("collectives"), writes("collectives")), "x.ipynb").notes == (), "they are alike"


@pytest.mark.parametrize("option", ["-a", "--append"])
def test_a_cell_that_appends_is_refused(option: str) -> None:
    appending = cell(f"%%writefile {option} collectives.py\n{OTHER}")
    held = read_notebook(book(writes("collectives"), appending), "x.ipynb")
    assert held.files == {"collectives.py": CODE.encode()}
    assert "adds to collectives.py (-a): refused" in held.notes[0]
    assert read_notebook(book(appending), "x.ipynb").files == {}


# What is broken


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not valid JSON"),
        (b"no notebook", "not valid JSON"),
        (book(writes("collectives"))[:-9], "not valid JSON"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"cells": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001, "nested too deeply"),
        (b'{"cells": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b"[]", "no list of cells"),
        (b"null", "no list of cells"),
        (b'"cells"', "no list of cells"),
        (b"{}", "no list of cells"),
        (b'{"cells": {"0": 1}}', "no list of cells"),
        (b'{"worksheets": [{"cells": []}], "nbformat": 3}', "no list of cells"),
        (b" " * (MAX_NOTEBOOK_BYTES + 1), f"larger than {MAX_NOTEBOOK_BYTES} bytes"),
        (book(*[cell("")] * (notebook.MAX_CELLS + 1)), "more than 5000 cells"),
    ],
)
def test_a_broken_notebook_is_a_note(data: bytes, reason: str) -> None:
    held = read_notebook(data, "x.ipynb")
    assert held.files == {}
    assert len(held.notes) == 1
    assert held.notes[0].startswith("the notebook 'x.ipynb' cannot be read: ")
    assert reason in held.notes[0]


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        7,
        "%%writefile collectives.py\n",
        [],
        {},
        {"cell_type": "code"},
        cell(None),
        cell(7),
        cell({"0": "%%writefile collectives.py\n"}),
        cell(["%%writefile collectives.py\n", 7]),
        cell([["%%writefile collectives.py\n"]]),
        cell("%%writefile collectives.py\n", ["code"]),
        cell("%%writefile collectives.py\n", {"code": 1}),
    ],
)
def test_cells_of_a_wrong_type_are_passed_over(wrong: object) -> None:
    held = read_notebook(book(wrong, writes("benchmark"), wrong), "x.ipynb")
    assert held.files == {"benchmark.py": CODE.encode()}


def test_a_lone_surrogate_and_a_huge_module_cost_that_module_only() -> None:
    large = "#" * MAX_FILE_BYTES + "\n"
    held = read_notebook(
        book(writes("collectives", 'x = "\ud800"\n'), writes("accounting", large), writes("benchmark")), "x.ipynb"
    )
    assert held.files == {"benchmark.py": CODE.encode()}
    assert held.notes == (
        "collectives.py in the notebook 'x.ipynb' cannot be taken: it holds half of a surrogate pair, which is no text",
        f"accounting.py in the notebook 'x.ipynb' cannot be taken: it is larger than {MAX_FILE_BYTES} bytes",
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
LINES = st.sampled_from(
    [
        "%%writefile collectives.py\n",
        "%%writefile -a x/benchmark.py\n",
        "%%writefile 'collectives.py",
        "\n",
        "a",
        "\ud83d",
    ]
)
SOURCES = st.lists(LINES, max_size=4) | st.lists(LINES, max_size=4).map("".join) | VALUES
CELLS = st.fixed_dictionaries({"cell_type": st.just("code") | VALUES, "source": SOURCES}) | VALUES


@settings(max_examples=150, deadline=None)
@given(cells=st.lists(CELLS, max_size=4) | VALUES, cut=st.integers(0, 30), name=st.text(max_size=90))
def test_no_notebook_raises(cells: object, cut: int, name: str) -> None:
    data = json.dumps({"cells": cells}).encode()
    for given_data in (data, data[: len(data) - cut], data[cut:]):
        held = read_notebook(given_data, name)
        assert set(held.files) <= set(MODULE_FILES)
        assert all(note.isprintable() and len(note) < 1000 for note in held.notes)


# Which notebooks of a submission count


def test_a_lone_notebook_is_a_submission(tmp_path: Path) -> None:
    put(tmp_path / "class" / "ada.ipynb", book(writes("collectives"), writes("benchmark", OTHER)))
    put(tmp_path / "class" / "Eve.IPYNB", b"broken")
    put(tmp_path / "class" / "kim.ipynb", book(cell("1 + 1")))
    put(tmp_path / "class" / "lee" / "collectives.py", CODE.encode())
    found = {one.name: one for one in find([tmp_path / "class"]).submissions}
    assert sorted(found) == ["Eve", "ada", "kim", "lee"]
    assert dict(found["ada"].files) == {"collectives.py": CODE.encode(), "benchmark.py": OTHER.encode()}
    assert found["ada"].notes == (
        "collectives.py was taken from the notebook 'ada.ipynb'",
        "benchmark.py was taken from the notebook 'ada.ipynb'",
    )
    assert (dict(found["Eve"].files), found["Eve"].notes) == (
        {},
        ("the notebook 'Eve.IPYNB' cannot be read: it is not valid JSON",),
    )
    assert found["kim"].notes == ("no cell begins with `%%writefile MODULE.py` in the notebook 'kim.ipynb'",)
    assert only(tmp_path / "class" / "ada.ipynb").digest == found["ada"].digest


def test_a_lone_notebook_may_be_neither_a_link_nor_too_large(tmp_path: Path) -> None:
    real = put(tmp_path / "elsewhere" / "x.ipynb", book(writes("collectives")))
    put(tmp_path / "class" / "big.ipynb", b" " * (MAX_NOTEBOOK_BYTES + 1))
    (tmp_path / "class" / "link.ipynb").symlink_to(real)
    found = {one.name: one for one in find([tmp_path / "class"]).submissions}
    assert all(not one.files for one in found.values())
    assert found["link"].notes == ("it is a link: not followed",)
    assert f"larger than {MAX_NOTEBOOK_BYTES} bytes" in found["big"].notes[0]


@pytest.mark.parametrize("below", ["", "assignment", "notebooks"])
def test_a_folder_of_the_six_notebooks_is_one_submission(below: str, tmp_path: Path) -> None:
    for module in ("collectives", "benchmark"):
        put(tmp_path / "ada" / below / f"{module}.ipynb", book(writes(module)))
    one = only(tmp_path / "ada")
    assert (one.name, sorted(one.files)) == ("ada", ["benchmark.py", "collectives.py"])


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_wins_over_a_notebook(packed: bool, tmp_path: Path) -> None:
    held = {
        "top/assignment/collectives.py": CODE.encode(),
        "top/assignment/benchmark.py": CODE.encode(),
        "top/notebooks/collectives.ipynb": book(writes("collectives", OTHER)),
        "top/notebooks/benchmark.ipynb": book(writes("benchmark")),
        "top/notebooks/accounting.ipynb": book(writes("accounting", OTHER)),
        "top/.ipynb_checkpoints/data_parallel.ipynb": book(writes("data_parallel")),
        "top/a/b/c/data_parallel.ipynb": book(writes("data_parallel")),
    }
    place = tmp_path / "class" / ("ada.zip" if packed else "ada")
    place.parent.mkdir()
    if packed:
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in held.items():
                archive.writestr(name, data)
    else:
        for name, data in held.items():
            put(place / name, data)
    one = only(tmp_path / "class")
    assert dict(one.files) == {
        "collectives.py": CODE.encode(),
        "benchmark.py": CODE.encode(),
        "accounting.py": OTHER.encode(),
    }
    assert one.notes == (
        "accounting.py was taken from the notebook 'top/notebooks/accounting.ipynb'",
        "another version is in a notebook, the file counts: 'collectives.py'",
    )


def test_of_two_notebooks_the_nearest_counts_then_the_modules_own(tmp_path: Path) -> None:
    put(tmp_path / "ada" / "all.ipynb", book(writes("collectives", OTHER), writes("benchmark")))
    put(tmp_path / "ada" / "collectives.ipynb", book(writes("collectives")))
    put(tmp_path / "ada" / "old" / "benchmark.ipynb", book(writes("benchmark", OTHER)))
    one = only(tmp_path / "ada")
    assert dict(one.files) == {"collectives.py": CODE.encode(), "benchmark.py": CODE.encode()}
    assert one.notes == (
        "collectives.py was taken from the notebook 'collectives.ipynb'",
        "collectives.py is another one in the notebook 'all.ipynb': left out",
        "benchmark.py was taken from the notebook 'all.ipynb'",
        "benchmark.py is another one in the notebook 'old/benchmark.ipynb': left out",
    )


def test_a_notebook_beside_an_archive_hides_it_only_if_it_holds_a_module(tmp_path: Path) -> None:
    for name in ("ada", "eve"):
        (tmp_path / name).mkdir()
        with zipfile.ZipFile(tmp_path / name / "work.zip", "w") as archive:
            archive.writestr("benchmark.py", CODE)
    put(tmp_path / "ada" / "notes.ipynb", book(cell("1 + 1")))
    put(tmp_path / "eve" / "work.ipynb", book(writes("collectives")))
    found = {one.name: sorted(one.files) for one in find([tmp_path]).submissions}
    assert found == {"ada": ["benchmark.py"], "eve": ["collectives.py"]}


def test_a_bomb_in_an_archive_and_a_crowd_of_notebooks_are_bounded(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "ada.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.ipynb", b" " * (20 * 2**20))
        for number in range(notebook.MAX_NOTEBOOKS):
            archive.writestr(f"b{number:02}.ipynb", book(cell("1")))
    one = only(tmp_path / "ada.zip")
    assert dict(one.files) == {}
    assert f"the notebook 'a.ipynb' cannot be read: it is larger than {MAX_NOTEBOOK_BYTES} bytes" in one.notes
    assert "it holds 25 notebooks: only the first 24 were looked at" in one.notes


def test_a_notebook_made_from_ours_is_graded(tmp_path: Path) -> None:
    put(tmp_path / "class" / "ada.ipynb", notebook_of("benchmark", solved=True).encode())
    options = [
        "--out",
        str(tmp_path / "grades"),
        "--jail",
        "none",
        "--json",
        "--tests",
        "tests/public/test_benchmark.py",
    ]
    command = [sys.executable, "-m", "grader.cli", "grade", str(tmp_path / "class"), *options]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    (ada,) = json.loads(result.stdout)["submissions"]
    assert ada["total"] == ada["possible"] > 0
    assert ada["notes"] == ["benchmark.py was taken from the notebook 'ada.ipynb'"]
    assert "note: ada: benchmark.py was taken from the notebook 'ada.ipynb'" in result.stderr


def test_what_is_none_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="neither a folder nor a zip nor a notebook"):
        find([put(tmp_path / "x.txt", b"x")])
