"""What is found at a root without a table of ours, and the errors that say so."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, InvalidTableStateError, PermissionDeniedError, TableNotFoundError
from lancepart.storage import root_contents
from lancepart.storage.root import Root
from tests.support import s3
from tests.support.catalogs import rows


def test_a_file_is_no_root_and_neither_is_what_would_be_inside_of_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in ("file", "file/inside"):
        with pytest.raises(InvalidInputError, match="file"):
            root_contents.refuse_file(Root.parse(tmp_path / path))
    root_contents.refuse_file(Root.parse(tmp_path / "nothing"))


def test_a_plain_lance_table_is_named_as_such(tmp_path: Path) -> None:
    lance.write_dataset(rows(1), str(tmp_path / "plain"))
    with pytest.raises(InvalidTableStateError, match="plain Lance table"):
        root_contents.refuse_plain(Root.parse(tmp_path / "plain"))
    root_contents.refuse_plain(Root.parse(tmp_path))


def test_a_directory_that_is_missing_is_said_to_be(tmp_path: Path) -> None:
    assert "no such directory" in root_contents.advice(Root.parse(tmp_path / "nothing"))
    assert root_contents.advice(Root.parse(tmp_path)) == ": make one with lancepart.create_table"


def test_tables_beneath_a_directory_are_named(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / name / "__manifest").mkdir(parents=True)
    assert root_contents.beneath(Root.parse(tmp_path)) == [str(tmp_path / name) for name in "abcd"]
    assert f"'{tmp_path}/a'" in root_contents.advice(Root.parse(tmp_path))
    assert root_contents.advice(Root.parse(tmp_path)).endswith(", …")
    assert root_contents.beneath(Root.parse(tmp_path / "a")) == []


def test_a_directory_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    root_contents.make_directory(Root.parse(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    with pytest.raises(PermissionDeniedError, match=r"'/proc/t'.*give a root that you may write to"):
        root_contents.make_directory(Root.parse("/proc/t"))


@pytest.mark.slow
def test_tables_beneath_a_prefix_of_a_store_are_named(s3_server: s3.Server) -> None:
    place = s3_server.place()
    for name in ("a", "b"):
        lp.create_table(f"{place.root}/{name}", rows(1).schema, storage_options=place.options)
    root = Root.parse(place.root, place.options)

    assert root_contents.beneath(root) == [f"{place.root}/a", f"{place.root}/b"]
    assert root_contents.beneath(Root.parse(f"{place.root}/a", place.options)) == []
    assert root_contents.beneath(Root.parse(f"{place.root}/nothing", place.options)) == []
    with pytest.raises(TableNotFoundError, match=f"no warehouse.*'{place.root}/a', '{place.root}/b'"):
        lp.open_table(place.root, storage_options=place.options)
