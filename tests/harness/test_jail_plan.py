"""The jail's plans, without a jail: what is bound where, bubblewrap's arguments, who runs it, what a failure means."""

from __future__ import annotations

import struct
from pathlib import Path, PurePosixPath

import pytest

from grader.jail.arguments import arguments_for, environment_for
from grader.jail.binds import HARNESS_FILES, BindPlan, plan_binds
from grader.jail.form import DROPPED, OUTER, USER, Form, forms_for, spare_uid
from grader.jail.interpreter import Interpreter, loader_of
from grader.jail.libraries import parse_listing
from grader.jail.packages import required, top_level
from grader.jail.trial import reason_of

HOME_PYTHON = Interpreter(
    program=Path("/home/ta/py/bin/python3.11"),
    prefix=Path("/home/ta/py"),
    library=Path("/home/ta/py/lib/python3.11"),
    loader=Path("/lib64/ld-linux-x86-64.so.2"),
)
SITE = Path("/home/ta/class/.venv/lib/python3.11/site-packages")
LISTING = """
\tlinux-vdso.so.1 (0x00007ffd8a5f2000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f1f)
\tlibpython3.11.so.1.0 => /home/ta/py/lib/libpython3.11.so.1.0 (0x00007f1f)
\tlibmissing.so.1 => not found
\t/lib64/ld-linux-x86-64.so.2 (0x00007f1f)
"""


@pytest.fixture
def plan() -> BindPlan:
    return plan_binds(
        HOME_PYTHON,
        {"torch": SITE / "torch", "typing_extensions.py": SITE / "typing_extensions.py"},
        {
            "libc.so.6": Path("/usr/lib/x86_64-linux-gnu/libc.so.6"),
            "libpython3.11.so.1.0": Path("/home/ta/py/lib/libpython3.11.so.1.0"),
            "libtorch.so": SITE / "torch/lib/libtorch.so",
            "libcrypto.so": Path("/home/ta/py/lib/python3.11/lib-dynload/libcrypto.so"),
        },
        Path("/home/ta/class/grader"),
        ["site-packages"],
    )


def test_the_plan_is_an_allow_list_under_neutral_paths(plan: BindPlan) -> None:
    made = {str(bind.target): str(bind.source) for bind in plan.binds}
    assert made == {
        "/python/bin/python3.11": "/home/ta/py/bin/python3.11",
        "/python/lib/python3.11": "/home/ta/py/lib/python3.11",
        "/python/lib/libpython3.11.so.1.0": "/home/ta/py/lib/libpython3.11.so.1.0",
        "/lib64/ld-linux-x86-64.so.2": "/lib64/ld-linux-x86-64.so.2",
        "/libs/libc.so.6": "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/packages/torch": f"{SITE}/torch",
        "/packages/typing_extensions.py": f"{SITE}/typing_extensions.py",
        **{f"/harness/grader/{name}": f"/home/ta/class/grader/{name}" for name in HARNESS_FILES},
    }
    assert plan.covered == (PurePosixPath("/python/lib/python3.11/site-packages"),)


def test_only_students_files_of_the_grader_are_in_it() -> None:
    assert not {"jail", "batch", "report", "handout", "checking", "cli"} & set(HARNESS_FILES)


def options(words: list[str], name: str, values: int = 1) -> list[tuple[str, ...]]:
    return [tuple(words[at + 1 : at + 1 + values]) for at, word in enumerate(words) if word == name]


@pytest.mark.parametrize("form", [USER, DROPPED, OUTER])
def test_arguments_close_what_must_be_closed(plan: BindPlan, form: Form) -> None:
    words = arguments_for(plan, form, {"NAME": "value"})
    for word in ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"):
        assert words.count(word) == 1
    assert {"--new-session", "--clearenv"} <= set(words)
    assert not {"--proc", "--dev", "--bind", "--share-net"} & set(words)
    assert options(words, "--setenv", 2) == [("NAME", "value")]
    assert [source for source, _ in options(words, "--dev-bind", 2)] == ["/dev/null", "/dev/random", "/dev/urandom"]
    assert options(words, "--tmpfs")[0] == ("/dev",)
    for at, word in enumerate(words):
        if word == "--tmpfs":
            assert words[at - 2] == "--size"
    # The root is made read-only last, and before a bind nothing lies where it goes.
    assert words[-4:] == ["--remount-ro", "/", "--chdir", "/"]
    assert words.index("/packages/torch") > words.index("/tmp")
    assert words.index("ALL") < words.index("--cap-add")


def test_only_root_outside_a_user_namespace_keeps_what_leaving_root_takes(plan: BindPlan) -> None:
    kept = {form.name: {name for (name,) in options(arguments_for(plan, form, {}), "--cap-add")} for form in FORMS}
    assert kept[USER.name] == kept[DROPPED.name] == {"CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_SETPCAP"}
    assert kept[OUTER.name] - kept[USER.name] == {"CAP_SETUID", "CAP_SETGID"}
    assert "--unshare-user" not in arguments_for(plan, OUTER, {})
    assert "--unshare-user" in arguments_for(plan, USER, {})


FORMS = (USER, DROPPED, OUTER)


def test_folders_above_binds_are_made_readable_and_none_within_a_bind(plan: BindPlan) -> None:
    words = arguments_for(plan, USER, {})
    made = [folder for (folder,) in options(words, "--dir")]
    assert {"/harness", "/harness/grader", "/python", "/python/bin", "/python/lib", "/libs", "/lib64"} <= set(made)
    assert not [folder for folder in made if folder.startswith("/python/lib/python3.11")]
    assert made == sorted(made)


def test_the_environment_is_the_zygotes_and_the_jails(plan: BindPlan) -> None:
    environment = environment_for(plan, {"GRADER_RUN": "1"})
    assert environment["GRADER_RUN"] == "1"
    assert environment["LD_LIBRARY_PATH"] == "/python/lib:/libs"
    assert "ta" not in environment.values()


def test_requirements_are_followed_without_extras_and_foreign_markers() -> None:
    stated = {
        "torch": ["SymPy>=1.13", "jinja2", 'pywin32; sys_platform == "win32"', 'optree; extra == "optree"'],
        "sympy": ["mpmath<1.4", "torch"],
        "jinja2": ["Markup_Safe"],
    }
    found = required(["torch"], lambda name: stated.get(name, []))
    assert found == ["torch", "sympy", "jinja2", "mpmath", "markup-safe"]


def test_entries_of_a_package() -> None:
    files = [
        "torch/__init__.py",
        "torch/lib/libtorch.so",
        "torch-2.0.dist-info/RECORD",
        "../../../bin/torchrun",
        "typing_extensions.py",
        "__pycache__/typing_extensions.cpython-311.pyc",
        "distutils-precedence.pth",
        "/etc/absolute",
    ]
    assert top_level(files) == {
        "torch",
        "torch-2.0.dist-info",
        "typing_extensions.py",
        "__pycache__/typing_extensions.cpython-311.pyc",
    }


def test_a_loaders_listing() -> None:
    assert set(parse_listing(LISTING)) == {"libc.so.6", "libpython3.11.so.1.0"}
    assert parse_listing(LISTING)["libc.so.6"].name.startswith("libc")


def elf(segments: list[tuple[int, int, int]], text: bytes) -> bytes:
    """A 64-bit little-endian ELF header with program headers (type, offset, size), and `text` at byte 1000."""
    header = (
        b"\x7fELF\x02\x01".ljust(32, b"\0") + struct.pack("<Q", 64) + bytes(14) + struct.pack("<HH", 56, len(segments))
    )
    table = b"".join(struct.pack("<IIQQQQQQ", kind, 0, at, 0, 0, size, 0, 0) for kind, at, size in segments)
    return (header.ljust(64, b"\0") + table).ljust(1000, b"\0") + text


def test_the_loader_of_a_program() -> None:
    name = b"/lib/ld-linux-aarch64.so.1\0"
    assert loader_of(elf([(6, 0, 0), (3, 1000, len(name))], name)) == Path("/lib/ld-linux-aarch64.so.1")
    with pytest.raises(ValueError, match="no shared libraries"):
        loader_of(elf([(1, 0, 0)], b""))
    with pytest.raises(ValueError, match="64-bit"):
        loader_of(b"#!/bin/sh\n")


def test_root_leaves_root_and_others_stay_who_they_are() -> None:
    assert forms_for(0) == (DROPPED, OUTER)
    assert forms_for(1000) == (USER,)


@pytest.mark.parametrize(
    ("uid_map", "expected"),
    [
        ("         0          0 4294967295\n", range(0x70000000, 0x70000000 + 2**20)),
        ("         0     100000      65536\n", range(61184, 65520)),
        ("0 1000 1\n1 100000 65536\n", range(61184, 65520)),
    ],
)
def test_a_spare_user_is_one_that_exists_here(uid_map: str, expected: range) -> None:
    assert spare_uid(uid_map, lambda _: 0) == expected.start
    assert spare_uid(uid_map, lambda count: count - 1) == expected.stop - 1


def test_a_container_with_one_user_has_no_spare() -> None:
    with pytest.raises(ValueError, match="too few user ids"):
        spare_uid("0 1000 1\n")


@pytest.mark.parametrize(
    ("said", "ran", "expected"),
    [
        ("bwrap: Can't find source path /root/py/bin/python3: Permission denied", False, "cannot read /root/py/bin"),
        ("bwrap: No permissions to create new namespace, likely because the kernel …", False, "userns_clone=1"),
        ("bwrap: setting up uid map: Permission denied", False, "apparmor_restrict_unprivileged_userns=0"),
        ("bwrap: Creating new namespace failed: Operation not permitted", False, "--privileged"),
        ("Traceback …\nOSError: [Errno 1] the kernel refused a private /tmp", True, "cannot be confined: OSError"),
        ("bwrap: execvp /python/bin/python3.11: No such file or directory", False, "does not run as"),
        ("", False, "it wrote nothing"),
    ],
)
def test_a_failed_trial_says_what_to_do(said: str, ran: bool, expected: str) -> None:
    reason = reason_of(USER, said, command_ran=ran)
    assert expected in reason
    assert "\n" not in reason
