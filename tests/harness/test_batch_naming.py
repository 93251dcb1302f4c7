"""Names of submissions: safe, unique, and unchanged where they were safe."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.batch.naming import MAX_NAME_BYTES, folded, safe_name, unique_name

ODD = st.text(st.characters(), max_size=300)


@pytest.mark.parametrize(
    "name", ["ada", "Ada Lovelace", "ada@x.edu", "adal_123_456", "Zoë", "李明", "v1.0", "a-b+c, d"]
)
def test_ordinary_names_stay(name: str) -> None:
    assert safe_name(name) == name


@pytest.mark.parametrize(
    ("raw", "mended"),
    [
        ("=cmd|' /C calc'!A0", "_cmd__ _C calc__A0"),
        ("-rf", "_rf"),
        (".hidden", "_hidden"),
        ("@SUM(A1)", "_SUM_A1_"),
        ("a/b\\c", "a_b_c"),
        ("..", "unnamed"),
        ("", "unnamed"),
        ("a\nb\x1b[31m", "a_b__31m"),
        ("\u202egpj", "_gpj"),
        ("[red]x[/red]", "_red_x__red_"),
        ("nul.txt", "_nul.txt"),
        ("CON", "_CON"),
        ("gradebook.db", "_gradebook.db"),
        ("Gradebook", "_Gradebook"),
        ("ada\udcff", "ada_"),
        ("trailing. .", "trailing"),
    ],
)
def test_unsafe_names_are_mended(raw: str, mended: str) -> None:
    assert safe_name(raw) == mended


@given(ODD)
def test_every_name_becomes_a_safe_one(raw: str) -> None:
    name = safe_name(raw)
    assert name
    assert len(name.encode()) <= MAX_NAME_BYTES + 1
    assert Path(name).name == name
    assert name[0].isalnum() or name[0] == "_", "no hidden file, option, formula or blank"
    assert name[-1] not in " ."
    assert name.isprintable()
    assert not set(name) & set("/\\\0\n<>|:*?\"'`[]=&;$()")
    assert unicodedata.is_normalized("NFC", name)
    assert safe_name(name) == name


@given(
    st.lists(st.sampled_from(["ada", "Ada", "ADA", "ada-2", "ﬁx", "fix", "Straße", "STRASSE", "é", "é"]), max_size=12)
)
def test_no_two_names_meet_on_any_file_system(names: list[str]) -> None:
    taken: set[str] = set()
    for name in names:
        taken.add(folded(unique_name(safe_name(name), taken)))
    assert len(taken) == len(names)


def test_the_second_of_a_name_gets_a_number() -> None:
    assert unique_name("ada", {"ada", "ada-2"}) == "ada-3"
    assert unique_name("Ada", {"ada"}) == "Ada-2"
