"""Finding submissions: every child counts, six files are taken, nothing that a folder or archive holds raises."""

from __future__ import annotations

import io
import os
import random
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.batch import archive, folder, submission
from grader.batch.archive import member_path, read_zip
from grader.batch.sources import SourceError, find
from grader.batch.submission import MAX_FILE_BYTES, MODULE_FILES, Submission, module_folder

CODE = b"def broadcast(): ...\n"


def put(place: Path, *names: str, data: bytes = CODE) -> Path:
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    place.mkdir(parents=True, exist_ok=True)
    return place


def pack(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return path


def only(path: Path) -> Submission:
    (found,) = find([path]).submissions
    return found


# Which places are submissions


def test_a_folder_of_submissions_loses_none(tmp_path: Path) -> None:
    put(tmp_path / "direct", *MODULE_FILES)
    put(tmp_path / "nested", "work/assignment/collectives.py")
    put(tmp_path / "empty")
    put(tmp_path / "other", "notes.txt")
    pack(tmp_path / "packed.zip", {"assignment/benchmark.py": CODE})
    (tmp_path / "void.zip").touch()
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    put(tmp_path, "wrong.tar.gz", "grades.csv", ".DS_Store", "__MACOSX/x/collectives.py", ".git/collectives.py")
    found = find([tmp_path])
    files = {one.name: sorted(one.files) for one in found.submissions}
    assert files == {
        "broken": [],
        "direct": sorted(MODULE_FILES),
        "empty": [],
        "nested": ["collectives.py"],
        "other": [],
        "packed": ["benchmark.py"],
        "void": [],
        "wrong": [],
    }
    assert all(one.notes for one in found.submissions if not one.files), "what holds nothing says why"
    assert found.ignored == (f"'grades.csv' in {tmp_path} is neither a folder nor a zip nor a notebook: left out",)


def test_one_submission_by_itself(tmp_path: Path) -> None:
    put(tmp_path / "ada", "collectives.py")
    put(tmp_path / "repository", "assignment/collectives.py", "tests/public/test_collectives.py")
    pack(tmp_path / "eve.zip", {"collectives.py": CODE})
    for name in ("ada", "repository"):
        assert (only(tmp_path / name).name, dict(only(tmp_path / name).files)) == (name, {"collectives.py": CODE})
    assert only(tmp_path / "eve.zip").name == "eve"


def test_a_class_of_one_is_still_a_class(tmp_path: Path) -> None:
    put(tmp_path / "submissions" / "ada", "collectives.py")
    assert only(tmp_path / "submissions").name == "ada"


def test_where_we_stand_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "ada", "collectives.py")
    monkeypatch.chdir(tmp_path / "ada")
    assert only(Path()).name == "ada"
    assert only(Path("..")).name == "ada"


def test_the_folder_of_results_is_no_submission(tmp_path: Path) -> None:
    put(tmp_path / "ada", "collectives.py")
    put(tmp_path / "grades" / "ada", "feedback.md")
    assert [one.name for one in find([tmp_path], exclude=[tmp_path / "grades"]).submissions] == ["ada"]
    with pytest.raises(SourceError, match="where the results go"):
        find([tmp_path / "grades"], exclude=[tmp_path / "grades"])


@pytest.mark.parametrize("kind", ["missing", "a file", "an empty folder", "a folder of files"])
def test_a_source_that_is_none_is_a_clear_error(kind: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    match kind:
        case "a file":
            source.write_text("x")
        case "an empty folder":
            source.mkdir()
        case "a folder of files":
            put(source, "readme.txt")
    with pytest.raises(SourceError, match=r"does not exist|neither a folder nor a zip|holds no submission") as caught:
        find([source])
    assert "\n" not in str(caught.value)


def test_the_same_place_counts_once_and_two_of_a_name_are_two(tmp_path: Path) -> None:
    put(tmp_path / "monday" / "ada", "collectives.py")
    put(tmp_path / "friday" / "Ada", "benchmark.py")
    pack(tmp_path / "monday" / "ada.zip", {"collectives.py": CODE})
    found = find([tmp_path / "monday", tmp_path / "monday" / "ada", tmp_path / "friday"]).submissions
    assert [(one.name, sorted(one.files)) for one in found] == [
        ("ada", ["collectives.py"]),
        ("ada-2", ["collectives.py"]),
        ("Ada-3", ["benchmark.py"]),
    ]
    assert "because there is another 'Ada'" in found[2].notes[-1]


def test_names_do_not_depend_on_what_else_is_graded_later(tmp_path: Path) -> None:
    for name in ("b", "a=", "c"):
        put(tmp_path / name, "collectives.py")
    assert [one.name for one in find([tmp_path]).submissions] == ["a_", "b", "c"]
    assert "not safe as a file name" in find([tmp_path]).submissions[0].notes[0]


# Which files of a submission count


@pytest.mark.parametrize(
    ("paths", "chosen", "left"),
    [
        (["collectives.py", "old/collectives.py"], "", ["old"]),
        (["a/collectives.py", "assignment/benchmark.py"], "assignment", ["a"]),
        (["a/collectives.py", "b/collectives.py", "b/benchmark.py"], "b", ["a"]),
        (["b/collectives.py", "a/collectives.py"], "a", ["b"]),
        (["x/y/collectives.py"], "x/y", []),
        (["x/y/z/collectives.py"], None, []),
        (["Collectives.py", "collectives.pyc"], None, []),
    ],
)
def test_the_nearest_folder_counts(paths: list[str], chosen: str | None, left: list[str]) -> None:
    found, others = module_folder(PurePosixPath(path) for path in paths)
    assert found == (None if chosen is None else PurePosixPath(chosen))
    assert others == [PurePosixPath(path) for path in left]


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    one = only(put(tmp_path / "ada", "collectives.py", "backup/collectives.py"))
    assert one.notes == ("module files were taken from the top folder; those in 'backup' were left out",)


def test_a_folder_around_one_archive_is_opened(tmp_path: Path) -> None:
    place = put(tmp_path / "class" / "Ada_123_assignsubmission_file")
    pack(place / "work.zip", {"assignment/collectives.py": CODE})
    assert dict(only(tmp_path / "class").files) == {"collectives.py": CODE}


def test_an_empty_module_is_there(tmp_path: Path) -> None:
    assert dict(only(put(tmp_path / "ada", "collectives.py", data=b"")).files) == {"collectives.py": b""}


def test_links_pipes_and_large_files_are_refused(tmp_path: Path) -> None:
    secret = put(tmp_path / "secret", "accounting.py") / "accounting.py"
    ada = put(tmp_path / "class" / "ada", "collectives.py")
    (ada / "accounting.py").symlink_to(secret)
    (ada / "benchmark.py").symlink_to("/dev/zero")
    os.mkfifo(ada / "data_parallel.py")
    put(ada, "tensor_parallel.py", data=b"#" * (MAX_FILE_BYTES + 1))
    (ada / "pipeline_parallel.py").mkdir()
    (ada / "more").symlink_to(secret.parent)
    (tmp_path / "class" / "eve").symlink_to(secret.parent)
    put(secret.parent, "collectives.py")
    found = {one.name: one for one in find([tmp_path / "class"]).submissions}
    assert set(found["ada"].files) == {"collectives.py"}
    notes = " ".join(found["ada"].notes)
    assert "'accounting.py', 'benchmark.py', 'data_parallel.py'" in notes
    assert "tensor_parallel.py cannot be read: it is larger than" in notes
    assert (dict(found["eve"].files), found["eve"].notes) == ({}, ("it is a link: not followed",))


def test_a_module_that_becomes_a_link_or_a_pipe_meanwhile_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(put(tmp_path, "file") / "file")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="symbolic"):
        folder.read_plain(tmp_path / "link")
    with pytest.raises(ValueError, match="no plain file"):
        folder.read_plain(tmp_path / "pipe")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_still_a_submission(tmp_path: Path) -> None:
    put(tmp_path / "ada", "collectives.py").chmod(0)
    put(tmp_path / "eve", "collectives.py")
    (tmp_path / "eve" / "collectives.py").chmod(0)
    try:
        found = find([tmp_path]).submissions
    finally:
        (tmp_path / "ada").chmod(0o700)
    assert [(one.name, dict(one.files)) for one in found] == [("ada", {}), ("eve", {})]
    assert all("Permission denied" in one.notes[0] for one in found)


def test_a_folder_of_ten_thousands_is_not_walked_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MAX_ENTRIES", 50)
    one = only(put(tmp_path / "ada", "collectives.py", *(f"d/{number}" for number in range(80))))
    assert set(one.files) == {"collectives.py"}
    assert one.notes == ("it holds more than 50 files: only the first were looked at",)


def test_the_digest_follows_the_bytes() -> None:
    def digest(**files: bytes) -> str:
        return Submission("ada", {f"{name}.py": data for name, data in files.items()}, (), "").digest

    assert digest(a=b"1", b=b"2") == digest(b=b"2", a=b"1")
    assert len({digest(a=b"1"), digest(a=b"2"), digest(b=b"1"), digest(a=b"1", b=b""), digest(), digest(a=b"")}) == 6


# Archives


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a/collectives.py", "a/collectives.py"),
        ("./a//collectives.py", "a/collectives.py"),
        ("a\\collectives.py", "a/collectives.py"),
        ("../collectives.py", None),
        ("a/../../collectives.py", None),
        ("a/..", None),
        ("/collectives.py", None),
        ("\\collectives.py", None),
        ("..\\collectives.py", None),
        ("C:\\collectives.py", None),
        ("c:collectives.py", None),
        ("\\\\server\\share\\collectives.py", None),
        ("//server/share/collectives.py", None),
    ],
)
def test_where_a_member_lies(name: str, path: str | None) -> None:
    assert member_path(name) == (None if path is None else PurePosixPath(path))


@given(st.text(st.sampled_from("./\\:ac ~\0"), max_size=12) | st.text(max_size=20))
def test_no_member_leads_out(name: str) -> None:
    path = member_path(name)
    if path is not None:
        assert not path.is_absolute()
        assert ".." not in path.parts


def test_what_is_taken_from_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "ada.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("ada/collectives.py", CODE)
        packed.writestr("ada/._collectives.py", b"mac")
        packed.writestr("__MACOSX/ada/._benchmark.py", b"mac")
        packed.writestr("../benchmark.py", b"climbs")
        packed.writestr("/etc/accounting.py", b"absolute")
        link = zipfile.ZipInfo("ada/tensor_parallel.py")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        packed.writestr(link, "/etc/passwd")
        device = zipfile.ZipInfo("ada/pipeline_parallel.py")
        device.external_attr = (stat.S_IFCHR | 0o666) << 16
        packed.writestr(device, "")
        packed.writestr("ada/data_parallel.py", b"#" * (MAX_FILE_BYTES + 1))
        packed.writestr("ada/readme.md", b"#" * (2 * MAX_FILE_BYTES))
    one = read_zip(path)
    assert dict(one.files) == {"collectives.py": CODE}
    assert one.notes == (
        "refused, because the path leads out of the archive: '../benchmark.py', '/etc/accounting.py'",
        "refused, because it is a link or no plain file: 'ada/tensor_parallel.py', 'ada/pipeline_parallel.py'",
        f"data_parallel.py cannot be read: it is larger than {MAX_FILE_BYTES} bytes",
    )


def test_of_two_members_of_one_name_the_last_counts(tmp_path: Path) -> None:
    path = tmp_path / "ada.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("collectives.py", b"first")
        with pytest.warns(UserWarning, match="Duplicate"):
            packed.writestr("collectives.py", b"last")
    one = read_zip(path)
    assert dict(one.files) == {"collectives.py": b"last"}
    assert one.notes == ("more than once in the archive, the last one counts: 'collectives.py'",)


def encrypted(data: bytes) -> bytes:
    """Sets the flag that says so, in the local header and in the directory."""
    changed = bytearray(data)
    changed[6] |= 1
    changed[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(changed)


def forged_size(data: bytes) -> bytes:
    """The directory claims that the member is small."""
    changed = bytearray(data)
    struct.pack_into("<I", changed, data.index(b"PK\x01\x02") + 24, 10)
    return bytes(changed)


def wrong_checksum(data: bytes) -> bytes:
    changed = bytearray(data)
    changed[data.index(b"PK\x01\x02") + 16] ^= 0xFF
    return bytes(changed)


def other_method(data: bytes) -> bytes:
    changed = bytearray(data)
    struct.pack_into("<H", changed, data.index(b"PK\x01\x02") + 10, 12)
    return bytes(changed)


@pytest.mark.parametrize(
    ("forge", "reason"),
    [
        (encrypted, "collectives.py cannot be read: it is encrypted"),
        (wrong_checksum, "collectives.py cannot be read: Bad CRC-32"),
        (other_method, "collectives.py cannot be read: compression method 12"),
        (lambda data: data[:60], "the archive cannot be read: File is not a zip file"),
        (lambda _: b"no zip at all", "the archive cannot be read: File is not a zip file"),
        (lambda _: b"", "the archive is an empty file"),
    ],
)
def test_a_broken_archive_is_a_submission_with_a_note(
    forge: Callable[[bytes], bytes], reason: str, tmp_path: Path
) -> None:
    path = pack(tmp_path / "ada.zip", {"collectives.py": CODE * 50})
    path.write_bytes(forge(path.read_bytes()))
    one = only(tmp_path / "ada.zip")
    assert one.name == "ada"
    assert dict(one.files) == {}
    assert reason in one.notes[0]


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = pack(tmp_path / "ada.zip", {"collectives.py": bytes(50 * 2**20), "benchmark.py": CODE})
    assert path.stat().st_size < 2**17
    path.write_bytes(forged_size(path.read_bytes()))
    one = read_zip(path)
    assert set(one.files) <= {"collectives.py", "benchmark.py"}
    assert len(one.files.get("collectives.py", b"")) <= MAX_FILE_BYTES
    assert one.files["benchmark.py"] == CODE


def test_limits_on_the_archive_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pack(tmp_path / "ada.zip", {"collectives.py": CODE, **{f"{number}.txt": b"" for number in range(60)}})
    monkeypatch.setattr(archive, "MAX_ENTRIES", 20)
    assert set(read_zip(path).files) == {"collectives.py"}
    assert read_zip(path).notes == ("the archive has 61 members: only the first 20 were looked at",)
    monkeypatch.setattr(archive, "MAX_ARCHIVE_BYTES", 100)
    assert "more than 100: not opened" in read_zip(path).notes[0]


NAMES = st.sampled_from(
    [
        "collectives.py",
        "a/benchmark.py",
        "../x",
        "/accounting.py",
        "a/",
        "é/data_parallel.py",
        "a\\accounting.py",
        "x" * 500,
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(
    members=st.lists(st.tuples(NAMES, st.binary(max_size=40)), max_size=6),
    chance=st.randoms(use_true_random=False),
    damaged=st.integers(0, 12),
)
def test_no_archive_raises(
    members: list[tuple[str, bytes]], chance: random.Random, damaged: int, tmp_path: Path
) -> None:
    """Archives as they are, and with a few bytes changed, cut out or doubled."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in dict(members).items():
            packed.writestr(name, data)
    raw = bytearray(held.getvalue())
    for _ in range(damaged):
        at = chance.randrange(len(raw))
        match chance.randrange(4):
            case 0 | 1:
                raw[at] = chance.randrange(256)
            case 2:
                del raw[at : at + chance.randrange(1, 9)]
            case 3:
                raw[at:at] = raw[at : at + chance.randrange(1, 40)]
        if not raw:
            break
    path = tmp_path / "ada.zip"
    path.write_bytes(raw)
    one = read_zip(path)
    assert set(one.files) <= set(MODULE_FILES)
    assert all(len(data) <= MAX_FILE_BYTES for data in one.files.values())
    assert one.files or one.notes
    assert all(note.isprintable() and len(note) < 1000 for note in one.notes)


def test_notes_are_bounded_and_printable() -> None:
    note = submission.quoted(["\x1b[31m" + "x" * 200, "a\nb", "\u202e", *map(str, range(20))])
    assert note.isprintable()
    assert note.isascii()
    assert note.endswith("and 18 more")
