"""The PDF of the handout, by WeasyPrint, from one HTML document that holds its fonts and pictures."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from pypdf import PdfReader
from pypdf.errors import PyPdfError

PACKAGES = ("libpango-1.0-0", "libpangoft2-1.0-0", "libharfbuzz-subset0", "fonts-dejavu-core")
FONTS = ("DejaVu Sans", "DejaVu Sans Mono", "DejaVu Serif")


class PdfError(ValueError):
    """The document cannot become a PDF, or what should be a PDF cannot be read as one."""


def missing() -> str | None:
    """None if a PDF can be made here; else one line that says what is missing and what to install. Prints nothing.

    Fonts count too: another one in their place would be silent, and would move the page breaks.
    """
    try:
        _weasyprint()
    except (OSError, ImportError) as error:
        return _what_to_install(f"WeasyPrint cannot load ({_first_line(error)})")
    if lacking := [family for family in FONTS if _family_taken(family) != family]:
        return _what_to_install(f"these fonts are not here: {', '.join(lacking)}")
    return None


def build_pdf(html: str, *, title: str) -> bytes:
    """The document as PDF/UA-1: tagged, with bookmarks from its headings and the `title` in its metadata.

    html: one document that names its language and needs no other file: only data: addresses are followed.
    The same arguments give the same bytes as long as WeasyPrint, its libraries and the fonts are the same: nothing in
    the file depends on the date, on chance or on the folder.

    Raises PdfError where WeasyPrint complains: of a picture, style sheet or font that is not in the document or cannot
    be read, an address that leads nowhere in it, a picture without alternative text.
    """
    weasyprint = _weasyprint()
    fetcher = importlib.import_module("weasyprint.urls").URLFetcher(allowed_protocols=("data",))
    with _complaints() as complaints:
        document = weasyprint.HTML(string=html, url_fetcher=fetcher).render(pdf_variant="pdf/ua-1")
        document.metadata.title = title
        written: Any = document.write_pdf(pdf_variant="pdf/ua-1")
    if complaints:
        raise PdfError(f"the document for the PDF: {complaints[0]}")
    return bytes(written)


def text_of(pdf: bytes) -> list[str]:
    """The text of each page, in order, to compare two PDFs by what they say. Raises PdfError if it is no PDF."""
    try:
        return [page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages]
    except PyPdfError as error:
        raise PdfError(f"this is not a PDF that can be read: {error}") from error


def _weasyprint() -> ModuleType:
    """The package, loaded. It prints advice of its own where a library is not there, which `missing` says in one line.

    Raises OSError where a library is not there. WeasyPrint itself only warns about libharfbuzz-subset, and then puts
    whole fonts into the PDF or other bytes than elsewhere: here it is required.
    """
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weasyprint = importlib.import_module("weasyprint")
        libraries = importlib.import_module("weasyprint.text.ffi")
    if getattr(libraries, "harfbuzz_subset", None) is None:
        raise OSError("cannot load library 'libharfbuzz-subset'")
    return weasyprint


def _family_taken(family: str) -> str | None:
    """The font family that is taken when a document asks for `family`; None if there is no font at all.

    Asked of fontconfig through WeasyPrint's own binding: without any font Pango would end the process.
    """
    libraries: Any = importlib.import_module("weasyprint.text.ffi")
    ffi, fontconfig = libraries.ffi, libraries.fontconfig
    configuration = ffi.gc(fontconfig.FcInitLoadConfigAndFonts(), fontconfig.FcConfigDestroy)
    wanted = ffi.gc(fontconfig.FcPatternCreate(), fontconfig.FcPatternDestroy)
    fontconfig.FcPatternAddString(wanted, b"family", family.encode())
    fontconfig.FcConfigSubstitute(configuration, wanted, fontconfig.FcMatchPattern)
    fontconfig.FcDefaultSubstitute(wanted)
    found = fontconfig.FcFontMatch(configuration, wanted, ffi.new("FcResult *"))
    if found == ffi.NULL:
        return None
    found = ffi.gc(found, fontconfig.FcPatternDestroy)
    name = ffi.new("FcChar8 **")
    if fontconfig.FcPatternGetString(found, b"family", 0, name) != fontconfig.FcResultMatch:
        return None
    return bytes(ffi.string(name[0])).decode()


@contextlib.contextmanager
def _complaints() -> Iterator[list[str]]:
    """What WeasyPrint logs at WARNING or above while this is open, instead of on stderr.

    Style rules that it does not know are left out: KaTeX's style sheet has some that are for browsers only.
    """
    logger = logging.getLogger("weasyprint")
    heard: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if not message.startswith("Ignored `"):
                heard.append(message)

    listener = Listener(logging.WARNING)
    before, propagated = logger.handlers[:], logger.propagate
    logger.handlers[:], logger.propagate = [listener], False
    try:
        yield heard
    finally:
        logger.handlers[:], logger.propagate = before, propagated


def _what_to_install(reason: str) -> str:
    return f"no PDF: {reason}; on Debian: apt-get install {' '.join(PACKAGES)}"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
