"""Other tables imported on Spark: all their rows, once, however often the import is started."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lancepart as lp
from lancepart.errors import InternalError, InvalidInputError
from lancepart.spark import importing

ROWS = pa.table({"id": list(range(30)), "k": [n % 3 for n in range(30)], "t": [f"row {n}" for n in range(30)]})


def ids(root: str) -> Counter[int]:
    return Counter(lp.open_table(root).scan(columns=["id"]).to_arrow().column("id").to_pylist())


def split(place: Path, count: int = 3) -> str:
    place.mkdir()
    for number in range(count):
        pq.write_table(ROWS.slice(number * 10, 10), place / f"{number}.parquet")
    return str(place)


def test_parquet_goes_on_where_it_was(spark: Any, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = split(tmp_path / "files")
    bring, calls = importing._bring, []

    def dying(*arguments: Any) -> Any:
        calls.append(arguments[3])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return bring(*arguments)

    monkeypatch.setattr(importing, "_bring", dying)
    with pytest.raises(KeyboardInterrupt):
        lp.spark.import_table(spark, source, root, ["k"], files_per_commit=1, progress=False)
    assert sum(ids(root).values()) == 20
    monkeypatch.setattr(importing, "_bring", bring)

    pq.write_table(ROWS.slice(0, 1).set_column(0, "id", [[99]]), tmp_path / "files" / "new.parquet")
    again = lp.spark.import_table(spark, source + "/", root, ["k"], progress=False)
    assert (again.parts, again.parts_before, again.rows) == (4, 2, 11)
    assert ids(root) == Counter([*range(30), 99])
    last = lp.spark.import_table(spark, source, root, progress=False)
    assert (last.parts_before, last.rows) == (4, 0)


@pytest.mark.slow
def test_directories_are_columns(spark: Any, root: str, tmp_path: Path) -> None:
    pq.write_to_dataset(ROWS, tmp_path / "hive", partition_cols=["k"])
    done = lp.spark.import_table(spark, tmp_path / "hive", root, ["k", "bucket(id, 2)"], progress=False)
    assert done.rows == 30
    found = lp.open_table(root).scan(columns=["id", "k"]).to_arrow().to_pylist()
    assert {(row["id"], row["k"]) for row in found} == {(n, n % 3) for n in range(30)}


@pytest.mark.slow
def test_a_delta_table_as_it_was_when_the_import_began(spark: Any, root: str, tmp_path: Path) -> None:
    delta = pytest.importorskip("deltalake")
    place = str(tmp_path / "delta")
    delta.write_deltalake(place, ROWS, partition_by=["k"])
    delta.DeltaTable(place).delete("id = 7")
    done = lp.spark.import_table(spark, place, root, ["k"], progress=False)
    assert (done.rows, done.source_version) == (29, 1)
    assert ids(root) == Counter(set(range(30)) - {7})
    delta.DeltaTable(place).delete("id = 8")
    again = lp.spark.import_table(spark, place, root, progress=False)
    assert (again.rows, again.source_version) == (0, 1)
    with pytest.raises(InvalidInputError, match="begun at version 1"):
        lp.spark.import_table(spark, place, root, version=2, progress=False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_an_iceberg_table(spark: Any, root: str, tmp_path: Path) -> None:
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = sql.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", ROWS.schema)
    table.append(ROWS.slice(0, 20))
    table.append(ROWS.slice(20))
    table.delete("id = 7")
    done = lp.spark.import_table(spark, tmp_path / "warehouse" / "n" / "t", root, ["k"], progress=False)
    assert (done.rows, done.parts) == (29, 2)
    assert ids(root) == Counter(set(range(30)) - {7})


@pytest.mark.slow
def test_a_view_and_a_dataframe(spark: Any, root: str) -> None:
    frame = spark.createDataFrame(ROWS.to_pylist(), "id long, k int, t string")
    frame.createOrReplaceTempView("to_import")
    for _ in range(2):
        lp.spark.import_table(spark, "to_import", root, ["k"], progress=False)
        lp.spark.import_table(spark, frame, root, name="the same again", progress=False)
    assert sum(ids(root).values()) == 60
    with pytest.raises(InvalidInputError, match="name"):
        lp.spark.import_table(spark, frame, root)


@pytest.mark.slow
def test_counts_that_differ_keep_nothing(
    spark: Any, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing.origins.Parquet, "count", lambda *_: 31)
    with pytest.raises(InternalError, match="30 rows"):
        lp.spark.import_table(spark, split(tmp_path / "files"), root, ["k"], progress=False)
    assert ids(root) == Counter()
    with pytest.raises(InvalidInputError, match="partition_by"):
        lp.spark.import_table(spark, str(tmp_path / "files"), str(tmp_path / "other"), progress=False)
