"""The two older layouts on Spark: read, joined, written and upgraded by the same calls as the current one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from tests.conformance.draft import appendix
from tests.support.tiers import slow

SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string()), ("day", pa.date32())])
DDL = "id long, country string, day date"


def frame(spark: Any, rows: list[tuple[Any, ...]]) -> Any:
    values = ", ".join(f"({id}L, '{country}', DATE '{day}')" for id, country, day in rows)
    return spark.sql(f"SELECT * FROM VALUES {values} AS t(id, country, day)").repartition(2)


def ids(source: Any) -> list[int]:
    return sorted(row["id"] for row in source.select("id").collect())


@pytest.fixture
def tree(root: str) -> lp.PartitionedTable:
    made = lp.create_table(root, SCHEMA, ["country", "year(day)"], layout="hive")
    made.append(
        pa.table(
            {
                "id": [1, 2, 3, 4],
                "country": ["US", "FR", None, "US"],
                "day": pa.array([20000, 20001, 20400, None], pa.int32()).cast(pa.date32()),
            },
            schema=SCHEMA,
        )
    )
    return made


@pytest.fixture
def draft(tmp_path: Path) -> lp.PartitionedTable:
    root = str(tmp_path / "draft")
    appendix.write_leaves(root)
    appendix.write_manifest(root, appendix.appendix_c())
    return lp.open_table(root)


@pytest.mark.slow
def test_a_hive_style_table_reads_as_it_does_here(spark: Any, tree: lp.PartitionedTable) -> None:
    read = spark.read.format("lancepart").load(tree.root)
    assert ids(read) == [1, 2, 3, 4]
    assert ids(read.where("country = 'US'")) == [1, 4]
    assert ids(read.where("country IS NULL")) == [3]
    assert ids(read.where("year(day) = 2024")) == ids(tree.scan("date_part('year', day) = 2024").to_spark(spark))
    assert ids(tree.scan("country = 'FR'").to_spark(spark)) == [2]
    assert read.groupBy("country").count().count() == 3


def test_a_hive_style_table_is_written_by_the_same_calls(spark: Any, tree: lp.PartitionedTable) -> None:
    frame(spark, [(5, "US", "2024-10-05"), (6, "JP", "2026-01-01")]).write.format("lancepart").mode("append").save(
        tree.root
    )
    assert ids(spark.read.format("lancepart").load(tree.root)) == [1, 2, 3, 4, 5, 6]
    tree.append(frame(spark, [(7, "JP", "2026-01-02")]))
    tree.upsert(frame(spark, [(7, "FR", "2026-01-02")]), on=["id"])
    assert ids(tree.scan("country = 'FR'").to_spark(spark)) == [2, 7]
    frame(spark, [(8, "JP", "2026-05-05")]).write.format("lancepart").mode("overwrite").option(
        "partitionOverwriteMode", "dynamic"
    ).save(tree.root)
    assert ids(spark.read.format("lancepart").load(tree.root)) == [1, 2, 3, 4, 5, 7, 8]
    frame(spark, [(9, "US", "2026-05-05")]).write.format("lancepart").mode("overwrite").save(tree.root)
    assert ids(spark.read.format("lancepart").load(tree.root)) == [9]
    assert not list((Path(tree.root) / "__jobs").glob("*"))


@pytest.mark.slow
def test_what_a_tree_can_not_do_is_said(spark: Any, tree: lp.PartitionedTable) -> None:
    with pytest.raises(Exception, match="idempotency key"):
        frame(spark, [(5, "US", "2024-10-05")]).write.format("lancepart").mode("append").option(
            "idempotency_key", "k"
        ).save(tree.root)
    assert ids(spark.read.format("lancepart").load(tree.root)) == [1, 2, 3, 4]


@pytest.mark.slow
def test_a_draft_is_read_and_written_by_the_same_calls(spark: Any, draft: lp.PartitionedTable) -> None:
    read = spark.read.format("lancepart").load(draft.root)
    before = appendix.ids(draft)
    assert ids(read) == before
    assert ids(read.where("country = 'FR'")) == appendix.ids(draft, "country = 'FR'")
    more = spark.sql("SELECT 100L AS id, DATE '2025-12-10' AS event_date, 'US' AS country")
    more.write.format("lancepart").mode("append").save(draft.root)
    draft.append(more.selectExpr("101L AS id", "event_date", "country"))
    assert ids(spark.read.format("lancepart").load(draft.root)) == sorted([*before, 100, 101])


@pytest.mark.parametrize("kind", ["tree", slow("draft")])
def test_an_upgrade_on_spark_gives_the_same_rows(spark: Any, kind: str, request: pytest.FixtureRequest) -> None:
    old = request.getfixturevalue(kind)
    before = appendix.ids(old)
    upgraded = lp.upgrade(old.root, spark=spark)
    assert appendix.ids(upgraded) == before
    assert upgraded.metadata.layout == "manifest"
    assert ids(spark.read.format("lancepart").load(old.root)) == before
    assert appendix.ids(lp.upgrade(old.root, spark=spark)) == before


@pytest.mark.slow
def test_a_tree_joins_a_table_without_losing_rows(spark: Any, tmp_path: Path) -> None:
    """Their buckets and truncations differ for negative hashes and numbers, so that no key of theirs may be shared."""
    schema = pa.schema([("id", pa.int64()), ("h", pa.string())])
    rows = pa.table({"id": range(-40, 40), "h": [str(each) for each in range(80)]}, schema=schema)
    for by in (["bucket(id, 4)"], ["truncate(id, 10)"], ["hash(h)"]):
        left = lp.create_table(tmp_path / f"tree{by[0]}", schema, by, layout="hive")
        right = lp.create_table(tmp_path / f"table{by[0]}", schema, [by[0].replace("hash(h)", "id")])
        left.append(rows)
        right.append(rows)
        frames = [spark.read.format("lancepart").load(each.root) for each in (left, right)]
        assert frames[0].join(frames[1], "id").count() == 80
        assert frames[0].join(frames[0], "id").count() == 80
