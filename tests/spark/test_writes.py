"""Writing on Spark: by the format and through a table's own verbs, each one commit."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, TableSchemaValidationError
from tests.support.tiers import slow
from tests.support.waiting import until

ROWS = [(number, number % 3, f"row {number}") for number in range(30)]
DDL = "id long, k int, t string"


def frame(spark: Any, rows: Any = ROWS, parts: int = 2) -> Any:
    return spark.createDataFrame(list(rows), DDL).repartition(parts)


def content(root: str) -> Counter[Any]:
    found = lp.open_table(root).scan(columns=["id", "k", "t"]).to_arrow()
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.fixture
def table(spark: Any, root: str) -> lp.PartitionedTable:
    schema = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("t", pa.string())])
    made = lp.create_table(root, schema, ["k"])
    made.append([dict(zip(schema.names, row, strict=True)) for row in ROWS])
    return made


def save(data: Any, root: str, mode: str, **options: str) -> None:
    data.write.format("lancepart").mode(mode).options(**options).save(root)


def test_a_new_root_becomes_a_table(spark: Any, root: str) -> None:
    save(frame(spark), root, "errorifexists", partition_by="k, bucket(id, 4)")

    made = lp.open_table(root)
    assert content(root) == Counter(ROWS)
    assert [field.field_id for field in made.spec.fields] == ["k", "id_bucket"]
    assert len(made.inspect.snapshots().filter(pa.compute.equal(made.inspect.snapshots()["operation"], "append"))) == 1


@pytest.mark.parametrize("mode", ["append", slow("overwrite")])
def test_other_modes_make_a_table_too(spark: Any, root: str, mode: str) -> None:
    save(frame(spark), root, mode, partition_by="truncate(t, 5)")
    assert content(root) == Counter(ROWS)


def test_a_failed_save_to_a_new_root_leaves_nothing(spark: Any, root: str) -> None:
    failing = spark.range(0, 6, 1, 2).selectExpr("id", "IF(id = 5, raise_error('no such row'), 'ok') AS k")
    for mode in ("errorifexists", "append"):
        with pytest.raises(Exception, match="no such row"):
            save(failing, root, mode, partition_by="k")
        until(lambda: not Path(root).exists())

    save(failing.where("id < 5"), root, "errorifexists", partition_by="k")
    assert lp.open_table(root).scan().count() == 5


@pytest.mark.parametrize("by", ["k", pytest.param("bucket(id, 3)", marks=pytest.mark.slow)])
def test_decimals_of_all_kinds(spark: Any, root: str, by: str) -> None:
    """Spark's buffers lie at multiples of 8 bytes, and Lance wants decimals at multiples of 16."""
    rows = spark.range(6).selectExpr(
        "id",
        "1 AS k",
        "CAST(id AS DECIMAL(7, 2)) AS a",
        "CAST(IF(id = 2, NULL, id) AS DECIMAL(38, 4)) AS b",
        "array(CAST(id AS DECIMAL(7, 2))) AS c",
        "struct(id AS x, CAST(id AS DECIMAL(7, 2)) AS y) AS d",
        "map('m', CAST(id AS DECIMAL(7, 2))) AS e",
        "make_dt_interval(0, 0, 0, id) AS f",
    )
    for tasks in (1, 2):
        save(rows.coalesce(1) if tasks == 1 else rows.repartition(tasks), root, "append", partition_by=by)

    found = spark.read.format("lancepart").load(root)
    assert Counter(map(str, found.collect())) == Counter(map(str, rows.collect() * 2))


@pytest.mark.slow
def test_partition_columns_in_sparks_own_way(spark: Any, root: str) -> None:
    frame(spark).write.format("lancepart").partitionBy("k").save(root)
    assert content(root) == Counter(ROWS)
    assert [field.field_id for field in lp.open_table(root).spec.fields] == ["k"]


def test_a_folder_without_a_slash_in_its_name_is_a_path_too(spark: Any, tmp_path: Path) -> None:
    place = Path(spark._jvm.java.lang.System.getProperty("user.dir")) / f"bare-{tmp_path.name}-{os.getpid()}"
    try:
        with pytest.raises(Exception, match="countri"):
            save(frame(spark), place.name, "errorifexists", partition_by="countri")
        with pytest.raises(Exception, match="partition_by"):
            save(frame(spark), place.name, "errorifexists")
        save(frame(spark), place.name, "errorifexists", partition_by="k")
        with pytest.raises(Exception, match="already exists"):
            save(frame(spark), place.name, "errorifexists", partition_by="k")
        save(frame(spark), place.name, "ignore", partition_by="k")
        assert content(str(place)) == Counter(ROWS)
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.mark.slow
def test_without_a_partitioning_no_table_is_made(spark: Any, root: str) -> None:
    with pytest.raises(Exception, match="partition_by"):
        save(frame(spark), root, "errorifexists")
    assert not Path(root).exists()


def test_append_adds_in_one_commit(spark: Any, table: lp.PartitionedTable) -> None:
    before = table.inspect.snapshots().num_rows
    save(frame(spark, [(100, 1, "a"), (101, 9, "b")]), table.root, "append")
    assert content(table.root) == Counter([*ROWS, (100, 1, "a"), (101, 9, "b")])
    assert table.inspect.snapshots().num_rows == before + 1


@pytest.mark.slow
def test_errorifexists_and_ignore(spark: Any, table: lp.PartitionedTable) -> None:
    with pytest.raises(Exception, match="already exists"):
        save(frame(spark), table.root, "errorifexists", partition_by="k")
    save(frame(spark), table.root, "ignore", partition_by="k")
    assert content(table.root) == Counter(ROWS)


def test_overwrite_replaces_the_whole_table(spark: Any, table: lp.PartitionedTable) -> None:
    save(frame(spark, [(1, 1, "x")]), table.root, "overwrite")
    assert content(table.root) == Counter([(1, 1, "x")])


@pytest.mark.parametrize("by", ["option", slow("conf")])
def test_overwrite_dynamically(spark: Any, table: lp.PartitionedTable, by: str) -> None:
    new = [(500, 1, "new"), (501, 7, "new")]
    if by == "option":
        save(frame(spark, new), table.root, "overwrite", partitionOverwriteMode="dynamic")
    else:
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        try:
            save(frame(spark, new), table.root, "overwrite")
        finally:
            spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert content(table.root) == Counter([*(row for row in ROWS if row[1] != 1), *new])


@pytest.mark.slow
def test_overwrite_what_a_filter_matches(spark: Any, table: lp.PartitionedTable) -> None:
    save(frame(spark, [(3, 0, "three")]), table.root, "overwrite", replaceWhere="id <= 10")
    assert content(table.root) == Counter([*(row for row in ROWS if row[0] > 10), (3, 0, "three")])
    with pytest.raises(Exception, match="do not match"):
        save(frame(spark, [(30, 0, "late")]), table.root, "overwrite", replaceWhere="id <= 10")
    assert content(table.root) == Counter([*(row for row in ROWS if row[0] > 10), (3, 0, "three")])


def test_the_second_writer_api(spark: Any, table: lp.PartitionedTable) -> None:
    target = f"lancepart.`{table.root}`"
    frame(spark, [(40, 2, "d")]).writeTo(target).append()
    frame(spark, [(41, 1, "e")]).writeTo(target).overwritePartitions()
    from pyspark.sql.functions import col

    frame(spark, [(0, 0, "zero")]).writeTo(target).overwrite(col("id") == 0)
    kept = [row for row in ROWS if row[1] != 1 and row[0] != 0]
    assert content(table.root) == Counter([*kept, (40, 2, "d"), (41, 1, "e"), (0, 0, "zero")])


@pytest.mark.slow
def test_a_condition_that_is_not_exact_replaces_nothing(spark: Any, table: lp.PartitionedTable) -> None:
    from pyspark.sql.functions import col, upper

    table.add_column(pa.field("x", pa.float64()))
    table.append([{"id": 90, "k": 1, "t": "nan", "x": float("nan")}, {"id": 91, "k": 1, "t": "zero", "x": 0.0}])
    before = table.scan().count()
    new = spark.createDataFrame([(6, 0, "six", 1.5)], f"{DDL}, x double").writeTo(f"lancepart.`{table.root}`")
    for wide in (
        col("x") != 0.0,
        col("x").eqNullSafe(float("nan")),
        ((col("id") == 1) & (upper("t") == "A")) | (col("id") == 6),
    ):
        with pytest.raises(Exception, match="nothing was changed"):
            new.overwrite(wide)
    assert lp.open_table(table.root).scan().count() == before
    new.overwrite(((col("id") == 6) & (col("k") == 0)) | col("t").isNull())
    assert content(table.root)[(6, 0, "six")] == 1
    assert lp.open_table(table.root).scan().count() == before


@pytest.mark.slow
def test_a_job_run_again_commits_once(spark: Any, table: lp.PartitionedTable) -> None:
    for _ in range(2):
        save(frame(spark, [(100, 1, "a")]), table.root, "append", idempotency_key="job 7")
        table.append(frame(spark, [(200, 1, "a")]), idempotency_key="job 8")
    assert content(table.root) == Counter([*ROWS, (100, 1, "a"), (200, 1, "a")])


def test_rows_brought_together_make_fewer_files(spark: Any, root: str) -> None:
    save(frame(spark, parts=4), root, "append", partition_by="k", distribution="none")
    spread = {each["fragments"] for each in lp.open_table(root).inspect.partitions().to_pylist()}
    save(frame(spark, parts=4), root, "overwrite", distribution="hash")
    together = {each["fragments"] for each in lp.open_table(root).inspect.partitions().to_pylist()}
    assert (max(spread), together) == (4, {1})
    assert content(root) == Counter(ROWS)
    save(frame(spark, parts=4), f"{root}2", "append", partition_by="k", distribution="hash")
    assert {each["fragments"] for each in lp.open_table(f"{root}2").inspect.partitions().to_pylist()} == {1}


@pytest.mark.parametrize("distribution", ["auto", slow("none"), slow("hash")])
def test_a_table_takes_a_dataframe(spark: Any, table: lp.PartitionedTable, distribution: str) -> None:
    version = table.append(frame(spark, [(100, 1, "a"), (101, 9, "b")], 4), distribution=distribution)
    assert version == table.version
    assert content(table.root) == Counter([*ROWS, (100, 1, "a"), (101, 9, "b")])
    if distribution == "hash":
        assert {each["fragments"] for each in table.inspect.partitions().to_pylist()} <= {1, 2}


def test_overwrite_and_upsert_with_a_dataframe(spark: Any, table: lp.PartitionedTable) -> None:
    table.overwrite(frame(spark, [(100, 1, "a")]))
    expected = [*(row for row in ROWS if row[1] != 1), (100, 1, "a")]
    assert content(table.root) == Counter(expected)

    table.overwrite(frame(spark, [(2, 2, "two")]), where="id = 2")
    expected = [*(row for row in expected if row[0] != 2), (2, 2, "two")]
    assert content(table.root) == Counter(expected)

    table.upsert(frame(spark, [(0, 9, "moved"), (77, 1, "new")], 2), on=["id"])
    expected = [*(row for row in expected if row[0] != 0), (0, 9, "moved"), (77, 1, "new")]
    assert content(table.root) == Counter(expected)
    with pytest.raises(InvalidInputError, match="more than once"):
        table.upsert(frame(spark, [(1, 1, "a"), (1, 2, "b")], 2), on=["id"])
    assert content(table.root) == Counter(expected)


def test_an_upsert_of_some_columns_keeps_the_others(spark: Any, table: lp.PartitionedTable) -> None:
    table.upsert(frame(spark, [(1, 0, "x"), (99, 0, "new")]).select("t", "id"), on=["id"])
    expected = [row for row in ROWS if row[0] != 1] + [(1, 1, "x"), (99, None, "new")]
    assert content(table.root) == Counter(expected)
    with pytest.raises(TableSchemaValidationError, match="does not name 'id'"):
        table.upsert(frame(spark).select("k", "t"), on=["id"])
    with table.transaction() as tx:
        tx.append(frame(spark, [(100, 2, "mine")]))
        tx.upsert(frame(spark, [(100, 7, ""), (1, 7, "")]).selectExpr("CAST(k AS long) AS k", "id"), on=["id"])
    expected = [row for row in expected if row[0] != 1] + [(1, 7, "x"), (100, 7, "mine")]
    assert content(table.root) == Counter(expected)
    with pytest.raises(Exception, match="column 'k': 5000000000 of type int64 does not fit int32"):
        table.append(spark.sql("SELECT 1L AS id, 5000000000 AS k"))
    assert content(table.root) == Counter(expected)


def test_a_transaction_takes_dataframes_and_reads_them(spark: Any, table: lp.PartitionedTable) -> None:
    with table.transaction() as tx:
        tx.append(frame(spark, [(100, 8, "a")]))
        tx.append(frame(spark, [(101, 8, "b")]))
        tx.upsert(frame(spark, [(100, 8, "c")]), on=["id"])
        assert tx.scan("k = 8").count() == 2
        assert table.scan("k = 8").count() == 0
    assert content(table.root) == Counter([*ROWS, (101, 8, "b"), (100, 8, "c")])


@pytest.mark.slow
def test_a_task_that_fails_leaves_nothing(spark: Any, table: lp.PartitionedTable) -> None:
    bad = frame(spark).selectExpr("id", "k", "IF(id = 29, raise_error('broken'), t) AS t")
    before = table.version
    with pytest.raises(Exception, match="broken"):
        save(bad, table.root, "append")
    with pytest.raises(Exception, match="broken"):
        table.append(bad)
    assert table.version == before
    assert content(table.root) == Counter(ROWS)


def test_columns_that_do_not_fit_are_refused(spark: Any, table: lp.PartitionedTable) -> None:
    with pytest.raises(TableSchemaValidationError, match="extra"):
        table.append(frame(spark).selectExpr("*", "1 AS extra"))
    with pytest.raises(Exception, match=r"extra|EXTRA|too many"):
        save(frame(spark).selectExpr("*", "1 AS extra"), table.root, "append")
    with pytest.raises(InvalidInputError, match="distribution"):
        table.append(frame(spark), distribution="sideways")
    assert content(table.root) == Counter(ROWS)


@pytest.mark.slow
def test_types_that_spark_lacks_are_checked_on_the_way_in(spark: Any, root: str) -> None:
    schema = pa.schema(
        [
            ("k", pa.int32()),
            ("u", pa.uint32()),
            ("v", pa.list_(pa.float32(), 2)),
            ("s", pa.large_string()),
            ("n", pa.timestamp("ns", "UTC")),
        ]
    )
    made = lp.create_table(root, schema, ["k"])
    rows = spark.sql("SELECT 1 AS k, 7L AS u, array(1.5f, 2.5f) AS v, 'x' AS s, timestamp_seconds(1700000000) AS n")
    save(rows, root, "append")
    made.append(rows)
    found = made.scan().to_arrow()
    assert found.schema == schema
    assert found.column("n").cast(pa.int64()).to_pylist() == [1_700_000_000 * 10**9] * 2
    assert found.column("v").to_pylist() == [[1.5, 2.5]] * 2
    with pytest.raises(Exception, match="uint32"):
        made.append(spark.sql("SELECT 1 AS k, -1L AS u"))
    assert made.scan().count() == 2


@pytest.mark.slow
def test_others_write_while_a_job_runs(spark: Any, table: lp.PartitionedTable) -> None:
    """An embedded writer and compaction commit between a job's plan and its commit."""
    from lancepart.commit import distributed_write
    from lancepart.spark import frames

    job = distributed_write.plan(table._manifest)
    reports = frames.stage(job, frame(spark, [(100, 1, "a"), (101, 9, "b")]), table.schema)
    table.append([{"id": 300, "k": 1, "t": "embedded"}, {"id": 301, "k": 9, "t": "embedded"}])
    table.maintenance.compact(progress=False)
    distributed_write.commit(table._manifest, job, reports)
    extra = [(100, 1, "a"), (101, 9, "b"), (300, 1, "embedded"), (301, 9, "embedded")]
    assert content(table.root) == Counter([*ROWS, *extra])
    assert len(table.inspect.partitions()) == 4
