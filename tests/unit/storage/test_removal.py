"""What may be removed with all that is in it: a place strictly beneath the root, of just the table that is meant."""

from __future__ import annotations

import os
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InternalError, InvalidInputError, InvalidTableStateError
from lancepart.storage.files import Files
from lancepart.storage.root import Root, check_location
from tests.support.catalogs import Place

NOT_BENEATH = [
    *("", " ", "  /a", ".", "..", "./a", "../a", "a/..", "a/../..", "a/./b", "/", "/etc", "//etc", "a//b", "a/", "/a"),
    *("%2e%2e", "%2E%2e/a", "a/%2e%2e/b", "..%2fa", "a%2f..%2f..", "a\\..\\b", "~", "~/a", "file:a", "s3://b/a"),
    *("a\nb", "__manifest", "a/__manifest", "a/__manifest/data"),
]


def test_a_place_that_is_not_strictly_beneath_the_root_is_not_removed(place: Place) -> None:
    files = Files(Root.parse(place.root, place.options))
    files.put("a/b/file")

    for location in NOT_BENEATH:
        with pytest.raises(InvalidInputError):
            files.delete_directory(location, with_tables=True)

    assert [info.path for info in files.walk("")] == ["a/b/file"]


def test_odd_names_are_places_like_others(place: Place) -> None:
    files = Files(Root.parse(place.root, place.options))
    files.put("kept/file")
    for location in ["a ", "50% off", "%61", "a%2fb", "..a", "a..b", "...", "it's", "a:b", "ü"]:
        files.put(f"{check_location(location)}/file")
        files.delete_directory(location)

    assert [info.path for info in files.walk("")] == ["kept/file"]


def test_a_place_whose_name_begins_alike_stays(place: Place) -> None:
    files = Files(Root.parse(place.root, place.options))
    for path in ("a/b/x", "a/bc/x", "a/b.lance/x", "ab/x"):
        files.put(path)

    files.delete_directory("a/b")

    assert sorted(info.path for info in files.walk("")) == ["a/b.lance/x", "a/bc/x", "ab/x"]


@pytest.mark.parametrize("location", ["link", "link/inner", "real/inner/link"])
def test_nothing_is_removed_through_a_symbolic_link(tmp_path: Path, location: str) -> None:
    files = Files(Root.parse(tmp_path))
    files.put("real/inner/file")
    os.symlink("real", tmp_path / "link")
    os.symlink("../../real", tmp_path / "real" / "inner" / "link")

    with pytest.raises(InvalidInputError, match="symbolic link"):
        files.delete_directory(location)

    assert (tmp_path / "real" / "inner" / "file").exists()


def test_a_link_inside_a_directory_is_not_followed(tmp_path: Path) -> None:
    files = Files(Root.parse(tmp_path))
    files.put("other/file")
    files.put("table/data/file")
    os.symlink("../../other", tmp_path / "table" / "data" / "more")

    with pytest.raises(InternalError, match="symbolic link"):
        files.delete_directory("table")

    assert (tmp_path / "other" / "file").exists()
    assert (tmp_path / "table" / "data" / "file").exists()


def test_a_root_that_is_itself_a_link_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    os.symlink("real", tmp_path / "root")
    files = Files(Root.parse(tmp_path / "root"))
    files.put("table/file")

    files.delete_directory("table")

    assert files.is_empty("table")


@pytest.mark.parametrize("inner", ["__manifest", "users.lance", "deep/down/users"])
def test_a_directory_with_tables_in_it_is_no_table(tmp_path: Path, inner: str) -> None:
    lance.write_dataset(pa.table({"id": [1]}), tmp_path / "catalog" / inner)

    with pytest.raises(InvalidTableStateError, match="another table"):
        Files(Root.parse(tmp_path)).delete_directory("catalog")

    assert lance.dataset(tmp_path / "catalog" / inner).count_rows() == 1


def test_a_table_goes_with_its_branches(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"id": [1]}), tmp_path / "users.lance")
    dataset.create_branch("trial")
    assert (tmp_path / "users.lance" / "tree").exists()

    Files(Root.parse(tmp_path)).delete_directory("users.lance")

    assert not (tmp_path / "users.lance").exists()


def test_a_dropped_table_leaves_what_others_put_into_its_directory(tmp_path: Path) -> None:
    connection = lp.connect(tmp_path)
    connection.create_table("t", pa.schema([("k", pa.int64())]), ["k"]).append([{"k": 1}])
    root = Path(connection.table("t").root)
    (root / "raw").mkdir()
    (root / "raw" / "cat.png").write_bytes(b"cat")
    lp.create_table(root / "inner", pa.schema([("k", pa.int64())]), ["k"]).append([{"k": 2}])
    lance.write_dataset(pa.table({"id": [1]}), root / "plain.lance")

    connection.drop_table("t")

    assert not connection.exists("t")
    assert sorted(path.name for path in root.iterdir()) == ["inner", "plain.lance", "raw"]
    assert lp.open_table(root / "inner").count_rows() == 1
    assert lance.dataset(root / "plain.lance").count_rows() == 1
