"""Plain files beneath a root: alike on a disk and on the S3 protocol, and never outside of the root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lancepart.errors import InternalError, InvalidInputError
from lancepart.storage.files import Files, is_unfinished
from lancepart.storage.root import Root
from tests.support.catalogs import Place


@pytest.fixture
def files(place: Place) -> Files:
    """Files of a root that holds none."""
    return Files(Root.parse(place.root, place.options))


def test_what_is_put_is_read_and_gone_after_it_is_deleted(files: Files) -> None:
    files.put("a/b.txt", b"one")
    files.put("a/b.txt", b"two")

    assert files.read("a/b.txt") == b"two"
    assert files.exists("a/b.txt")
    assert not files.exists("a")
    files.delete("a/b.txt")
    assert not files.exists("a/b.txt")
    with pytest.raises(FileNotFoundError):
        files.read("a/b.txt")


def test_of_two_who_claim_a_file_one_wins(files: Files) -> None:
    assert files.put_new("claim", b"first")
    assert not files.put_new("claim", b"second")
    assert files.read("claim") == b"first"


def test_a_directory_is_listed_by_its_children_and_walked_at_every_depth(files: Files) -> None:
    for path in ("a/1", "a/b/2", "a/b/c/3", "ab/4"):
        files.put(path, b"x")

    directories, found = files.children("a")

    assert directories == ("b",)
    assert [info.path for info in found] == ["a/1"]
    assert sorted(info.path for info in files.walk("a")) == ["a/1", "a/b/2", "a/b/c/3"]
    assert files.is_empty("nothing")
    assert not files.is_empty("a/b")


def test_a_directory_goes_with_all_its_files_and_no_others(files: Files) -> None:
    for path in ("a/1", "a/b/2", "ab/3"):
        files.put(path, b"x")

    files.delete_directory("a", last="a/1")

    assert files.is_empty("a")
    assert files.read("ab/3") == b"x"


def test_a_clone_has_the_same_files_but_for_those_left_out(files: Files) -> None:
    for path in ("a/1", "a/b/2", "a/b/3"):
        files.put(path, path.encode())

    files.clone_directory("a", "copy", skip=["b/3"])

    assert sorted(info.path for info in files.walk("copy")) == ["copy/1", "copy/b/2"]
    assert files.read("copy/b/2") == b"a/b/2"


def test_the_clock_of_the_store_never_runs_behind_a_file_that_was_written_before(files: Files) -> None:
    files.put("before", b"")
    (written,) = [info for info in files.walk("") if info.path == "before"]

    assert files.clock("clock") >= written.modified


@pytest.mark.parametrize("directory", ["", ".", "..", "a/../..", "/", "a/.."])
def test_only_what_is_strictly_beneath_the_root_is_removed(files: Files, directory: str) -> None:
    files.put("a/1", b"x")

    with pytest.raises(InvalidInputError):
        files.delete_directory(directory)

    assert files.read("a/1") == b"x"


def test_a_directory_with_a_link_to_files_of_others_is_not_removed(local: Place, tmp_path: Path) -> None:
    files = Files(Root.parse(local.root))
    files.put("a/1", b"x")
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "2").write_bytes(b"y")
    os.symlink(tmp_path / "others", Path(local.root) / "a" / "link")

    with pytest.raises(InternalError, match="symbolic link"):
        files.delete_directory("a")

    assert (tmp_path / "others" / "2").read_bytes() == b"y"
    assert files.read("a/1") == b"x"


def test_temporary_files_that_the_store_has_not_yet_renamed_are_recognised() -> None:
    assert is_unfinished("data/abc.lance#1")
    assert not is_unfinished("data/abc.lance")
