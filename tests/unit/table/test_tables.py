"""Tables as things: whether they are there, dropping, describing, pickling, and what the package exports."""

from __future__ import annotations

import importlib.metadata
import pickle
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, TableAlreadyExistsError, TableNotFoundError, UnsupportedOperationError
from lancepart.queries.warehouse import Warehouse
from tests.support.catalogs import Place

SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string()), ("day", pa.date32())])
ROWS = [{"id": i, "country": "US" if i % 2 else "FR"} for i in range(10)]


def _made(root: Any, **options: Any) -> lp.PartitionedTable:
    made = lp.create_table(root, SCHEMA, ["country"], **options)
    made.append(ROWS)
    return made


@pytest.mark.parametrize("layout", ["manifest", "hive"])
def test_a_table_is_there_until_it_is_dropped_and_others_files_stay(place: Place, layout: str) -> None:
    options = {"storage_options": place.storage_options}
    assert not lp.exists(place.root, **options)
    _made(place.root, layout=layout, **options)
    assert lp.exists(place.root, **options)

    lp.drop_table(place.root, **options)

    assert not lp.exists(place.root, **options)
    with pytest.raises(TableNotFoundError):
        lp.drop_table(place.root, **options)
    lp.drop_table(place.root, missing_ok=True, **options)
    assert _made(place.root, layout=layout, **options).count_rows() == 10


def test_a_drop_leaves_what_is_not_the_tables_own(tmp_path: Path) -> None:
    root = tmp_path / "t"
    _made(root)
    (root / "notes").mkdir()
    (root / "notes" / "mine.txt").write_text("mine")

    lp.drop_table(root)

    assert [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()] == ["notes/mine.txt"]


def test_a_drop_that_was_cut_short_is_gone_on_with(tmp_path: Path) -> None:
    root = tmp_path / "t"
    _made(root)
    for path in (root / "__manifest").rglob("*"):
        if path.is_file():
            path.unlink()

    lp.drop_table(root)

    assert not root.exists() or not any(root.rglob("*"))


def test_a_drop_refuses_what_is_no_table_of_its_own(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"a": [1]}), str(tmp_path / "plain.lance"))
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(b"x")
    (tmp_path / "file").write_text("x")
    for other in ("plain.lance", "photos", "nothing", "file"):
        assert not lp.exists(tmp_path / other)
        with pytest.raises(TableNotFoundError):
            lp.drop_table(tmp_path / other)
    assert lance.dataset(str(tmp_path / "plain.lance")).count_rows() == 1
    assert (tmp_path / "photos" / "a.png").exists()
    with pytest.raises(InvalidInputError, match="not a directory below another"):
        lp.drop_table("/")


def test_a_table_of_a_warehouse_is_dropped_there(tmp_path: Path) -> None:
    warehouse = Warehouse.at(tmp_path)
    location, _ = warehouse.place(["t"])
    _made(tmp_path / location)
    warehouse.publish(["t"], location, {}, replaced=None)

    with pytest.raises(UnsupportedOperationError, match="belongs to the warehouse"):
        lp.drop_table(tmp_path / location)
    assert lp.open_table(tmp_path / location).count_rows() == 10


@pytest.mark.parametrize("layout", ["manifest", "hive"])
def test_exist_ok_opens_the_same_table_and_no_other(tmp_path: Path, layout: str) -> None:
    _made(tmp_path / "t", layout=layout)

    again = lp.create_table(tmp_path / "t", SCHEMA, ["country"], layout=layout, exist_ok=True)

    assert again.count_rows() == 10
    with pytest.raises(TableAlreadyExistsError):
        lp.create_table(tmp_path / "t", SCHEMA, ["country"], layout=layout)
    with pytest.raises(TableAlreadyExistsError, match="another columns"):
        lp.create_table(
            tmp_path / "t", SCHEMA.append(pa.field("n", pa.int8())), ["country"], layout=layout, exist_ok=True
        )
    with pytest.raises(TableAlreadyExistsError, match="another partitioning"):
        lp.create_table(tmp_path / "t", SCHEMA, ["country", "year(day)"], layout=layout, exist_ok=True)
    other = "hive" if layout == "manifest" else "manifest"
    with pytest.raises(TableAlreadyExistsError, match="another layout"):
        lp.create_table(tmp_path / "t", SCHEMA, ["country"], layout=other, exist_ok=True)


def test_a_table_describes_itself(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["country", "bucket(4, id)", "expr(id % 2) AS odd"])
    table.append(ROWS)
    found = table.describe()

    assert (found.rows, found.version, found.layout) == (10, table.version, "manifest")
    assert found.partition_by == ("country", "bucket(4, id)", "expr(id % 2) AS odd")
    assert found.partitions == len(table.scan().plan().leaves)
    for text in ("country: string", "10 rows", f"snapshot {table.version}", "bucket(4, id)"):
        assert text in repr(table)
    assert "10 rows" in table._repr_html_()


def test_a_table_pickles_without_credentials(tmp_path: Path, local: Place) -> None:
    table = _made(tmp_path / "t")
    at = table.version
    again = pickle.loads(pickle.dumps(table))
    pinned = pickle.loads(pickle.dumps(lp.open_table(tmp_path / "t", version=at)))
    table.append(ROWS)

    assert again.count_rows() == 20
    assert pinned.count_rows() == 10
    keyed = lp.open_table(tmp_path / "t", storage_options={"aws_secret_access_key": "hidden-value", "region": "x"})
    assert b"hidden-value" not in pickle.dumps(keyed)
    assert b"region" in pickle.dumps(keyed)


def test_everything_that_is_exported_is_there() -> None:
    for name in lp.__all__:
        assert getattr(lp, name) is not None
    assert lp.__version__ == importlib.metadata.version("lancepart")
