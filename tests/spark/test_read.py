"""Reading tables on Spark: snapshots, what is pushed, how work is split, and what stays unseen."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from tests.spark.test_joins import plan_of
from tests.spark.test_sweep import rows_of

SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string()), ("value", pa.float64())])


def rows(*ids: int, country: str = "US") -> pa.Table:
    """Some rows of one country."""
    return pa.table(
        {"id": list(ids), "country": [country] * len(ids), "value": [float(each) for each in ids]}, schema=SCHEMA
    )


def load(spark: Any, root: str, **options: Any) -> Any:
    """The table as a DataFrame."""
    return spark.read.format("lancepart").options(**options).load(root)


def ids(frame: Any) -> list[int]:
    """The ids of a DataFrame's rows."""
    return sorted(row.id for row in frame.collect())


@pytest.mark.slow
def test_a_loaded_relation_stays_at_its_snapshot(spark: Any, root: str) -> None:
    table = lp.create_table(root, SCHEMA, ["country"])
    table.append(rows(1, 2))
    frame = load(spark, root)

    table.append(rows(3))
    table.append(rows(4, country="FR"))

    assert ids(frame) == [1, 2]
    assert ids(frame.alias("a").join(frame.alias("b"), "id").select("id")) == [1, 2]
    assert ids(load(spark, root)) == [1, 2, 3, 4]


@pytest.mark.slow
def test_versions_tags_and_moments(spark: Any, root: str) -> None:
    table = lp.create_table(root, SCHEMA, ["country"])
    first = table.append(rows(1))
    moment = datetime.now(UTC).isoformat()
    table.tags.create("early", first)
    table.append(rows(2))

    assert ids(load(spark, root, version=first)) == [1]
    assert ids(load(spark, root, version="early")) == [1]
    assert ids(load(spark, root, timestamp=moment)) == [1]
    assert ids(load(spark, root)) == [1, 2]
    with pytest.raises(Exception, match="either the option version or the option timestamp"):
        load(spark, root, version=first, timestamp=moment)
    with pytest.raises(Exception, match="there is no tag 'late'"):
        load(spark, root, version="late")


@pytest.mark.slow
def test_a_missing_table_is_named(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="there is no partitioned table at"):
        load(spark, str(tmp_path / "nothing"))
    with pytest.raises(Exception, match="at a path"):
        spark.read.format("lancepart").load()


@pytest.mark.slow
def test_sql_knows_tables_by_their_path(spark: Any, root: str) -> None:
    lp.create_table(root, SCHEMA, ["country"]).append(rows(1, 2))

    assert ids(spark.sql(f"SELECT id FROM lancepart.`{root}` WHERE id > 1")) == [2]


def test_only_columns_that_are_needed_are_read(spark: Any, root: str) -> None:
    lp.create_table(root, SCHEMA, ["country"]).append(rows(1, 2))

    plan = plan_of(load(spark, root).where("value > 1").select("id"))

    assert "country" not in plan.split("BatchScan")[1].split("]")[0]


@pytest.mark.slow
def test_filters_that_spark_would_answer_alike_are_not_asked_again(spark: Any, root: str) -> None:
    lp.create_table(root, SCHEMA, ["country"]).append(rows(1, 2))

    exact = plan_of(load(spark, root).where("country > 'U' AND country IN ('US', 'FR')"))
    floats = plan_of(load(spark, root).where("value > 1"))

    assert "Filter (" not in exact
    assert "Filter (" in floats
    assert "pushed [value IS NOT NULL] pruning by [value > 1.0] leaves" in floats
    unused = plan_of(load(spark, root).where("country = 'US' AND id + 1 = 2 AND country LIKE '%S'"))
    assert "pushed [country IS NOT NULL, country = 'US', id IS NOT NULL] leaves" in unused


def test_a_limit_reads_no_more_leaves_than_it_takes(spark: Any, root: str) -> None:
    table = lp.create_table(root, SCHEMA, ["country"])
    for number in range(6):
        table.append(rows(number, country=f"c{number}"))

    frame = load(spark, root).limit(2)

    assert "limit 2" in plan_of(frame)
    assert frame.count() == 2
    assert load(spark, root).limit(2).rdd.getNumPartitions() == 1


@pytest.mark.slow
def test_leaves_share_tasks(spark: Any, root: str) -> None:
    table = lp.create_table(root, SCHEMA, ["country"])
    table.append(pa.concat_tables([rows(number, country=f"c{number}") for number in range(30)]))

    assert load(spark, root).rdd.getNumPartitions() <= 2
    assert load(spark, root).groupBy("country").count().count() == 30


@pytest.mark.slow
def test_statistics_are_those_of_what_is_left(spark: Any, root: str) -> None:
    table = lp.create_table(root, SCHEMA, ["country"])
    table.append(rows(*range(100)))
    table.append(rows(1, country="FR"))

    few, all_of_them = (
        plan_of(load(spark, root).select("id").where(each), "cost") for each in ("country = 'FR'", "true")
    )

    assert bytes_of(few) == 16
    assert 16 < bytes_of(all_of_them) <= 16 * 101


def bytes_of(plan: str) -> float:
    """What Spark expects a scan to give, which is less than two kilobytes here."""
    found = re.search(r"Statistics\(sizeInBytes=([\d.]+) (B|KiB)", plan)
    assert found is not None, plan
    return float(found[1]) * (1024 if found[2] == "KiB" else 1)


@pytest.mark.parametrize(
    ("least", "sent", "found"), [("0", "10MB", True), ("1MB", "10MB", False), ("0", "-1", False)], ids=str
)
def test_a_join_with_a_filter_found_at_run_time(least: str, sent: str, found: bool, spark: Any, tmp_path: Path) -> None:
    """Only where the table is large enough, and the other side so small that Spark sends it to all tasks."""
    facts = lp.create_table(str(tmp_path / "facts"), SCHEMA, ["country"])
    facts.append(pa.concat_tables([rows(*range(n * 100, n * 100 + 100), country=f"c{n}") for n in range(8)]))
    places = pa.schema([("country", pa.string()), ("zone", pa.string())])
    dims = lp.create_table(str(tmp_path / "dims"), places, ["country"])
    dims.append(pa.table({"country": [f"c{n}" for n in range(8)], "zone": ["a", *"bbbbbbb"]}, schema=places))
    load(spark, str(tmp_path / "facts")).createOrReplaceTempView("facts")
    load(spark, str(tmp_path / "dims")).createOrReplaceTempView("dims")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", sent)
    spark.conf.set("spark.lancepart.runtimeFilterBytes", least)
    try:
        frame = spark.sql("SELECT id FROM facts JOIN dims USING (country) WHERE zone = 'a'")
        plan, joined = plan_of(frame), ids(frame)
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        spark.conf.unset("spark.lancepart.runtimeFilterBytes")

    assert ("dynamicpruning" in plan) is found
    assert joined == list(range(100))


def test_a_table_without_transactions_reads_too(spark: Any, root: str) -> None:
    table = lp.create_table(root, SCHEMA, ["country"], transactions="weak")
    table.append(rows(1, 2))
    table.append(rows(3, country="FR"))

    assert ids(load(spark, root)) == [1, 2, 3]
    assert load(spark, root).count() == 3


@pytest.mark.slow
def test_an_empty_table_reads_as_nothing(spark: Any, root: str) -> None:
    lp.create_table(root, SCHEMA, ["country"])

    assert load(spark, root).collect() == []
    assert load(spark, root).count() == 0
    assert load(spark, root).join(load(spark, root), "country").count() == 0
    assert load(spark, root).selectExpr("max(id)", "count(*)").collect()[0][:] == (None, 0)


@pytest.mark.slow
def test_columns_that_came_and_went(spark: Any, root: str) -> None:
    table = lp.create_table(root, SCHEMA, ["country"])
    table.append(rows(1))
    table.add_column(pa.field("more", pa.int32()))
    table.rename_column("country", "land")
    table.drop_column("value")
    table.append(pa.table({"id": [2], "land": ["FR"], "more": pa.array([5], pa.int32())}))

    frame = load(spark, root)

    assert frame.columns == ["id", "land", "more"]
    assert sorted(map(tuple, frame.collect())) == [(1, "US", None), (2, "FR", 5)]
    assert frame.where("more IS NULL AND land = 'US'").count() == 1


@pytest.mark.slow
def test_names_that_need_quotes(spark: Any, root: str) -> None:
    schema = pa.schema([("a.b", pa.int64()), ("it's", pa.string()), ("Größe", pa.int32())])
    table = lp.create_table(root, schema, ["truncate(`a.b`, 10)"])
    table.append(pa.table([[1, 25], ["x", "y"], pa.array([7, 8], pa.int32())], schema=schema))

    frame = load(spark, root)

    assert frame.where("`a.b` > 20").select("`it's`").collect()[0][0] == "y"
    assert frame.where("`Größe` = 7").count() == 1
    joined = frame.alias("l").join(frame.alias("r"), "a.b")
    assert joined.count() == 2
    assert "Exchange" not in plan_of(joined)


@pytest.mark.slow
def test_credentials_are_not_shown(spark: Any, root: str) -> None:
    lp.create_table(root, SCHEMA, ["country"]).append(rows(1, 2))
    frame = load(spark, root, **{"storage.aws_secret_access_key": "hush-hush"})

    shown = "".join(
        plan_of(frame.where("id = 1").join(frame, "id"), mode) for mode in ("extended", "formatted", "cost")
    )

    assert ids(frame) == [1, 2]
    assert "hush" not in shown + str(frame) + repr(frame.schema)
    with pytest.raises(Exception, match="no partitioned table") as caught:
        load(spark, f"{root}-nothing", **{"storage.aws_secret_access_key": "hush-hush"})
    assert "hush" not in str(caught.value)


@pytest.mark.slow
def test_a_frame_and_its_cache_agree(spark: Any, root: str) -> None:
    table = lp.create_table(root, SCHEMA, ["country"])
    table.append(rows(1, 2))
    cached = load(spark, root).cache()
    before = ids(cached)
    table.append(rows(3))

    assert before == ids(cached) == [1, 2]
    assert ids(load(spark, root)) == [1, 2, 3]
    assert rows_of(cached) == rows_of(load(spark, root).where("id < 3"))
    cached.unpersist()
