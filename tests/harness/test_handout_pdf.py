"""The PDF: the same bytes each time, tagged, with bookmarks, and one line where it cannot be made."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pypdf import PdfReader

from grader.handout.pdf import PACKAGES, PdfError, build_pdf, missing, text_of

PICTURE = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='9' height='9'%3E%3C/svg%3E"
DOCUMENT = f"""<!doctype html><html lang="en"><head><title>Another title</title><style>
@page {{ size: A5 }} body {{ font-family: "DejaVu Sans" }} h1 {{ break-before: page }}</style></head><body>
<h1>Collectives</h1><p>Every rank <a href="#two">calls</a>.</p><h2>A ring</h2>
<p><img src="{PICTURE}" alt="a square"></p>
<h1 id="two">Pipeline</h1><p>Four stages.</p></body></html>"""

needs_weasyprint = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(scope="module")
def pdf() -> bytes:
    return build_pdf(DOCUMENT, title="The handout")


@needs_weasyprint
def test_the_same_bytes_in_another_process_and_folder(pdf: bytes, tmp_path: Path) -> None:
    (tmp_path / "document.html").write_text(DOCUMENT, encoding="utf-8")
    again = (
        "import pathlib, sys; from grader.handout.pdf import build_pdf;"
        "sys.stdout.buffer.write(build_pdf(pathlib.Path('document.html').read_text(), title='The handout'))"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    run = subprocess.run(
        [sys.executable, "-c", again], cwd=tmp_path, env=environment, capture_output=True, check=True, timeout=60
    )
    assert run.stdout == pdf


@needs_weasyprint
def test_text_is_read_page_by_page(pdf: bytes) -> None:
    first, second = text_of(pdf)
    assert first.split() == ["Collectives", "Every", "rank", "calls.", "A", "ring"]
    assert second.split() == ["Pipeline", "Four", "stages."]


@needs_weasyprint
def test_it_is_tagged_and_has_bookmarks_language_and_title(pdf: bytes) -> None:
    reader = PdfReader(io.BytesIO(pdf))
    root = reader.root_object
    assert root["/MarkInfo"]["/Marked"]
    assert "/StructTreeRoot" in root
    assert root["/Lang"] == "en"
    assert reader.metadata is not None
    assert reader.metadata.title == "The handout"
    assert "/CreationDate" not in reader.metadata
    collectives, below, pipeline = reader.outline
    assert (collectives.title, [each.title for each in below], pipeline.title) == (
        "Collectives",
        ["A ring"],
        "Pipeline",
    )


@needs_weasyprint
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ('<img src="https://example.org/a.png" alt="a">', "https://example.org/a.png"),
        ('<img src="data:image/png;base64,AAAA" alt="a">', "Failed to load image"),
        (f'<img src="{PICTURE}">', "alt"),
        ('<a href="#nowhere">a</a>', "nowhere"),
    ],
)
def test_what_weasyprint_complains_of_is_an_error(fault: str, words: str) -> None:
    with pytest.raises(PdfError, match=words):
        build_pdf(DOCUMENT.replace("Four stages.", fault), title="The handout")


@pytest.mark.parametrize("data", [b"", b"not a PDF", b"%PDF-1.7\n"])
def test_what_is_no_pdf_is_refused(data: bytes) -> None:
    with pytest.raises(PdfError, match="not a PDF"):
        text_of(data)


def test_without_fonts_one_line_says_what_to_install(tmp_path: Path) -> None:
    """Fontconfig without a single font: there Pango would end the process."""
    empty = tmp_path / "fonts.conf"
    empty.write_text("<?xml version='1.0'?><!DOCTYPE fontconfig SYSTEM 'fonts.dtd'><fontconfig></fontconfig>")
    run = _missing_in(os.environ | {"FONTCONFIG_FILE": str(empty)}, "")
    if "cannot load" not in run.stdout:
        assert "DejaVu Sans, DejaVu Sans Mono, DejaVu Serif" in run.stdout
    _assert_one_line(run)


def test_without_a_library_one_line_says_what_to_install() -> None:
    """Pango hidden from the loader that WeasyPrint uses: its own advice, many lines, is not printed."""
    hide = (
        "import cffi; load = cffi.FFI.dlopen\n"
        "def dlopen(self, name, *flags):\n"
        "    if name and 'pango' in name: raise OSError(f'cannot load library {name!r}')\n"
        "    return load(self, name, *flags)\n"
        "cffi.FFI.dlopen = dlopen\n"
    )
    run = _missing_in(dict(os.environ), hide)
    assert "libpango" in run.stdout.partition("; on Debian")[0]
    _assert_one_line(run)


def _missing_in(environment: dict[str, str], first: str) -> subprocess.CompletedProcess[str]:
    program = first + "from grader.handout.pdf import missing; print(missing())"
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=60
    )


def _assert_one_line(run: subprocess.CompletedProcess[str]) -> None:
    assert len(run.stdout.splitlines()) == 1
    assert f"apt-get install {' '.join(PACKAGES)}" in run.stdout
    assert run.stderr == ""
