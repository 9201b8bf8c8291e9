"""Spark over an object store: what each side writes the other reads, and no secret shows."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest

import lancepart as lp
from tests.support import s3
from tests.support.catalogs import Place

SECRET = "testing-secret"


@pytest.fixture
def place(s3_server: s3.Server) -> Place:
    return s3_server.place()


def spelled(place: Place) -> dict[str, str]:
    return {f"storage.{key}": value for key, value in place.storage_options.items()}


def rows(spark: Any, start: int, end: int) -> Any:
    return spark.range(start, end).selectExpr("id", "CAST(id % 3 AS INT) AS k")


def test_tables_on_an_object_store_are_written_read_and_joined(spark: Any, place: Place) -> None:
    options = spelled(place)
    made = rows(spark, 0, 12).write.format("lancepart").options(**options).option("partition_by", "k")
    made.mode("append").save(place.root)
    table = lp.open_table(place.root, storage_options=place.storage_options)
    table.append(rows(spark, 12, 20), idempotency_key="second")
    table.append(rows(spark, 12, 20), idempotency_key="second")
    table.delete("id = 3")
    table.maintenance.compact(spark=spark, progress=False)

    frame = spark.read.format("lancepart").options(**options).load(place.root)
    expected = {(n, n % 3) for n in range(20) if n != 3}
    assert {tuple(row) for row in frame.collect()} == expected
    assert frame.count() == len(expected)
    assert {row.id for row in frame.where("k = 1 AND id > 4").collect()} == {7, 10, 13, 16, 19}
    other = spark.read.format("lancepart").options(**options).load(place.root)
    assert frame.join(other, ["k"]).count() == sum((n % 3) == (m % 3) for n, _ in expected for m, _ in expected)
    joined = table.join(table, on=["k"], columns=["id", "id_right"])
    assert joined.to_spark(spark).count() == frame.join(other, ["k"]).count()


def test_a_warehouse_on_an_object_store_takes_statements(spark: Any, place: Place) -> None:
    name = "s3_warehouse"
    spark.conf.set(f"spark.sql.catalog.{name}", "io.lancepart.spark.LanceCatalog")
    spark.conf.set(f"spark.sql.catalog.{name}.warehouse", place.root)
    for key, value in spelled(place).items():
        spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)
    spark.sql(f"CREATE NAMESPACE {name}.ns")
    spark.sql(f"CREATE TABLE {name}.ns.t PARTITIONED BY (k) AS SELECT id, CAST(id % 3 AS INT) AS k FROM range(9)")
    spark.sql(f"MERGE INTO {name}.ns.t t USING (SELECT 4L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    spark.sql(f"UPDATE {name}.ns.t SET k = 7 WHERE id = 5")

    found = {tuple(row) for row in spark.table(f"{name}.ns.t").collect()}
    assert found == {(n, 7 if n == 5 else n % 3) for n in range(9) if n != 4}
    spark.sql(f"DROP TABLE {name}.ns.t")
    assert spark.sql(f"SHOW TABLES IN {name}.ns").collect() == []


@pytest.mark.slow
def test_no_secret_is_shown(spark: Any, place: Place) -> None:
    rows(spark, 0, 3).write.format("lancepart").options(**spelled(place)).option("partition_by", "k").save(place.root)
    frame = spark.read.format("lancepart").options(**spelled(place)).load(place.root)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        frame.where("id > 1").explain("extended")
    wrong = {**spelled(place), "storage.aws_endpoint": "http://127.0.0.1:1", "storage.aws_secret_access_key": SECRET}
    wrong["storage.client_max_retries"] = "0"
    with pytest.raises(Exception) as refused:
        spark.read.format("lancepart").options(**wrong).load(place.root).count()

    assert SECRET not in shown.getvalue()
    assert SECRET not in str(refused.value)
