from __future__ import annotations

import errno
import gzip
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from whencount.errors import InputError
from whencount.files import atomic_directory, atomic_file, atomic_files, json_lines, lines_of, sweep


def test_a_file_appears_whole_under_its_name(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "table"
    with atomic_file(target) as temporary:
        temporary.write_text("whole")
        assert not target.exists()
    assert target.read_text() == "whole"
    assert list(target.parent.iterdir()) == [target]


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    target = tmp_path / "table"
    target.write_text("old")

    def fail() -> None:
        with atomic_file(target) as temporary:
            temporary.write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        fail()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_directory_replaces_the_old_one_whole(tmp_path: Path) -> None:
    target = tmp_path / "vectors"
    for content in ("first", "second"):
        with atomic_directory(target) as temporary:
            (temporary / content).write_text(content)
    assert [path.name for path in target.iterdir()] == ["second"]
    assert list(tmp_path.iterdir()) == [target]


def test_a_failed_directory_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "vectors"
    with atomic_directory(target) as temporary:
        (temporary / "a").write_text("a")

    def interrupt() -> None:
        with atomic_directory(target) as temporary:
            (temporary / "b").write_text("b")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert [path.name for path in target.iterdir()] == ["a"]
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("context", [atomic_file, atomic_directory])
def test_a_full_disk_is_told_in_a_sentence(tmp_path: Path, context: type) -> None:
    def fill() -> None:
        with context(tmp_path / "out"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(InputError, match=r"no space left while writing .*out; free some"):
        fill()
    assert not list(tmp_path.iterdir())


def test_a_place_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InputError, match="cannot be written"),
        atomic_file(tmp_path / "file" / "out"),
    ):
        pass


def test_a_folder_in_the_place_of_a_file_is_named_before_any_file_is_moved(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    context = atomic_files(tmp_path)
    folder = context.__enter__()
    for name in "ab":
        (folder / name).write_text("new")
    with pytest.raises(InputError, match="b is a folder"):
        context.__exit__(None, None, None)
    assert [entry.name for entry in tmp_path.iterdir()] == ["b"]


def test_a_folder_whose_name_is_too_long_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"), atomic_files(tmp_path / ("x" * 300)):
        raise AssertionError("never entered")


def test_the_file_mode_follows_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        with atomic_file(tmp_path / "out") as temporary:
            temporary.write_text("")
    finally:
        os.umask(old)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640


def test_blank_lines_are_skipped_but_counted(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\r\n\n  \nb")
    assert list(lines_of(path)) == [(1, b"a"), (4, b"b")]


def test_compressed_lines_read_as_plain_ones(tmp_path: Path) -> None:
    path = tmp_path / "lines.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}\n'))
    assert list(json_lines(path)) == [(1, {"a": 1})]


def test_a_truncated_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lines.gz"
    path.write_bytes(gzip.compress(os.urandom(5000))[:-200])
    with pytest.raises(InputError, match=r"lines\.gz: reading broke off .* damaged"):
        list(lines_of(path))


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lines.gz"
    content = bytearray(gzip.compress(b"some text\n" * 1000))
    content[15:30] = bytes(15)
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match=r"lines\.gz"):
        list(lines_of(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="absent cannot be read"):
        list(lines_of(tmp_path / "absent"))


@pytest.mark.parametrize("line", ['{"a": }', "[1]", "3", '{"a": NaN}'])
def test_a_line_that_is_no_json_object_is_named_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "lines"
    path.write_text('{"a": 1}\n' + line + "\n")
    with pytest.raises(InputError, match="line 2"):
        list(json_lines(path))


def test_what_a_killed_process_left_is_swept_away_once_it_is_old(tmp_path: Path) -> None:
    final = tmp_path / "table"
    code = (
        "import os, signal; from whencount.files import atomic_directory\n"
        f"with atomic_directory({str(final)!r}) as folder:\n"
        "    (folder / 'half').write_text('x')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    (left,) = tmp_path.iterdir()
    with atomic_directory(final) as held:
        assert left.exists()
        old = time.time() - 10_000
        os.utime(left, (old, old))
        os.utime(held, (old, old))
        with atomic_directory(final):
            assert not left.exists()
            assert held.exists()
    assert list(tmp_path.iterdir()) == [final]


def test_a_folder_that_a_kill_left_aside_is_swept_too(tmp_path: Path) -> None:
    # A kill between the two renames of a replacement leaves the old folder under this name.
    for name in (".table.old.abc_1234", ".table.abc_1234", ".table.settings.d", ".tables.abc_1234"):
        (tmp_path / name).mkdir()
    sweep([tmp_path / "table"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".table.settings.d",
        ".tables.abc_1234",
    ]
