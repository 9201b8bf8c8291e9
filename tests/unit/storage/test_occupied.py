"""Whose a root is, and what else stands there."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError
from lancepart.storage import occupied, root_contents
from lancepart.storage.root import Root
from tests.support.catalogs import Place

SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string())])


def test_an_empty_root_is_nobodys(local: Place) -> None:
    assert occupied.stranger(Root.parse(local.root)) is None
    assert occupied.stranger_in_catalog(Root.parse(local.root)) is None


def test_files_of_others_are_named(local: Place) -> None:
    Path(local.root).mkdir()
    (Path(local.root) / "letter.txt").write_text("dear")

    assert "letter.txt" in str(occupied.stranger(Root.parse(local.root)))
    assert "letter.txt" in str(occupied.stranger_in_catalog(Root.parse(local.root)))


def test_a_root_inside_a_plain_table_is_the_tables(local: Place) -> None:
    lance.write_dataset(pa.table({"id": [1]}), local.root)

    assert occupied.stranger(Root.parse(f"{local.root}/inside")) is not None


def test_a_plain_table_and_a_file_are_refused_where_a_partitioned_one_is_asked_for(
    local: Place, tmp_path: Path
) -> None:
    lance.write_dataset(pa.table({"id": [1]}), local.root)
    (tmp_path / "file").write_text("x")

    with pytest.raises(Exception, match="Lance table"):
        root_contents.refuse_plain(Root.parse(local.root))
    with pytest.raises(InvalidInputError, match="file"):
        root_contents.refuse_file(Root.parse(tmp_path / "file"))


def test_a_partitioned_table_is_no_plain_one(local: Place) -> None:
    lp.create_table(local.root, SCHEMA, ["country"])

    root_contents.refuse_plain(Root.parse(local.root))
    root_contents.refuse_file(Root.parse(local.root))
