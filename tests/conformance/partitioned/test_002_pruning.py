"""002, "Partition Pruning", "Compatibility with Partition Pruning" and Appendix D."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from datafusion import SessionContext

import lancepart as lp
from tests.conformance.partitioned.appendix import DAY, LOCATIONS, SCHEMA, V1_LEAF, V2_LEAF, events, ids
from tests.support.catalogs import Place

QUERY = "event_date = '2025-12-10' AND country = 'US'"


def test_appendix_d_the_query_leaves_the_two_leaves(by_hand: lp.PartitionedTable) -> None:
    plan = by_hand.scan(QUERY).plan()

    assert {leaf.object_id: leaf.location for leaf in plan.leaves} == LOCATIONS
    assert ids(by_hand, QUERY) == [1, 3, 4]


def test_appendix_d_the_filter_pushed_to_the_manifest(by_hand: lp.PartitionedTable) -> None:
    pushed = {spec.spec_id: spec.pushed for spec in by_hand.scan(QUERY).plan().specs}

    assert pushed == {
        1: "partition_field_event_date = DATE '2025-12-10'",
        2: "partition_field_event_year = 2025 AND partition_field_country = 'US'",
    }


def test_appendix_d_explain_prints_the_query_the_leaves_and_why(by_hand: lp.PartitionedTable) -> None:
    by_hand.append(events((6, date(2024, 1, 1), "US"), (7, DAY, "FR")))

    said = by_hand.scan(QUERY).explain()

    version = by_hand.version
    assert said == "\n".join(
        [
            f"snapshot {version}: 2 of 4 leaves",
            "",
            "SELECT object_id, location, read_version",
            "FROM __manifest",
            "WHERE object_type = 'table'",
            "  AND (",
            "    (object_id LIKE 'v1$%'",
            "      AND partition_field_event_date = DATE '2025-12-10')",
            "    OR (object_id LIKE 'v2$%'",
            "      AND partition_field_event_year = 2025 AND partition_field_country = 'US')",
            "  )",
            "",
            "spec v1: 1 kept, 0 dropped",
            "  event_date: partition_field_event_date = DATE '2025-12-10'",
            "spec v2: 1 kept, 2 dropped",
            "  event_year: partition_field_event_year = 2025",
            "  country: partition_field_country = 'US'",
            "",
            "kept leaves:",
            f"  2025-12-10  {V1_LEAF}  {LOCATIONS[V1_LEAF]}",
            f"  2025/US  {V2_LEAF}  {LOCATIONS[V2_LEAF]}",
        ]
    )


def test_appendix_d_the_printed_query_gives_the_same_leaves_when_asked_of_the_manifest(
    by_hand: lp.PartitionedTable,
) -> None:
    said = by_hand.scan(QUERY).plan().manifest_query

    where = said.split("WHERE ")[1]
    manifest = lance.dataset(f"{by_hand.root}/__manifest")
    found = manifest.to_table(filter=where, columns=["object_id", "location", "read_version"])
    assert sorted(found.column("object_id").to_pylist()) == [V1_LEAF, V2_LEAF]


def test_appendix_d_what_one_spec_cannot_prune_is_applied_in_the_leaf(by_hand: lp.PartitionedTable) -> None:
    plan = by_hand.scan("country = 'FR'").plan()

    assert [leaf.object_id for leaf in plan.leaves] == [V1_LEAF], "v1 has no country to prune by, v2 has"
    assert "not pruned" in "".join(plan.specs[0].reasons)
    assert ids(by_hand, "country = 'FR'") == [2]


def test_the_compatibility_example_matches_v1_exactly_and_v2_by_year(local: Place) -> None:
    table = lp.create_table(local.root, SCHEMA, ["event_date"])
    table.append(events((1, DAY, "US"), (2, date(2025, 12, 11), "US")))
    table.update_spec(["year(event_date)"])
    table.append(events((3, DAY, "US"), (4, date(2025, 1, 1), "US"), (5, date(2024, 12, 10), "US")))

    scan = table.scan("event_date = '2025-12-10'")

    assert [(leaf.spec_id, leaf.values) for leaf in scan.plan().leaves] == [(1, ("2025-12-10",)), (2, ("2025",))]
    assert sorted(scan.to_arrow().column("id").to_pylist()) == [1, 3]


def test_only_the_relevant_tables_are_scanned(local: Place) -> None:
    """Every other leaf may be gone from the disk and the query is still answered."""
    table = lp.create_table(local.root, SCHEMA, ["country"])
    table.append(events((1, DAY, "US"), (2, DAY, "FR"), (3, DAY, None)))
    keep = table.scan("country = 'FR'").plan().leaves[0].location
    for directory in Path(local.root).glob("*$dataset"):
        if directory.name != keep:
            directory.rename(local.root + "-elsewhere-" + directory.name)

    assert ids(table, "country = 'FR'") == [2]


def test_a_filter_that_matches_nothing_reads_nothing(ours: lp.PartitionedTable) -> None:
    scan = ours.scan("country = 'US' AND country = 'FR'")

    assert scan.plan().leaves == ()
    assert scan.count() == 0
    assert scan.to_arrow().num_rows == 0
    assert "no leaf is read" in scan.explain()


def test_several_spec_versions_are_each_pruned_by_their_own_fields(local: Place) -> None:
    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us")), ("country", pa.string())])
    table = lp.create_table(local.root, schema, ["country"])
    rows = [
        {"id": i, "ts": f"2025-{1 + i % 12:02}-{1 + i % 28:02}T{i % 24:02}:00:00", "country": ["US", "FR", None][i % 3]}
        for i in range(60)
    ]
    data = pa.Table.from_pylist(rows).cast(schema)
    specs = [["year(ts)", "month(ts)"], ["bucket(id, 4)"], ["truncate(country, 1)", "expr(id % 5) AS rest"]]
    table.append(data.slice(0, 15))
    for number, spec in enumerate(specs, 1):
        table.update_spec(spec)
        table.append(data.slice(15 * number, 15))

    total = len(table.scan().plan().leaves)
    everything = SessionContext()
    everything.register_record_batches("t", [data.to_batches()])
    for where in [
        "id = 17",
        "country = 'US' AND id IN (1, 2, 3, 57)",
        "country IS NULL AND ts < TIMESTAMP '2025-03-01'",
        "ts BETWEEN '2025-02-01' AND '2025-02-28' AND country LIKE 'U%'",
        "country NOT IN ('US', 'FR')",
        "id IN (3, 4) OR country = 'XX'",
    ]:
        expected = everything.sql(f"SELECT id FROM t WHERE {where} ORDER BY id").to_arrow_table()
        assert ids(table, where) == expected.column("id").to_pylist(), where
        assert table.scan(where).count() == expected.num_rows, where
        assert len(table.scan(where).plan().leaves) < total, where


def test_a_range_over_a_timestamp_leaves_one_leaf_of_year_month_and_day(local: Place) -> None:
    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
    table = lp.create_table(local.root, schema, ["year(ts)", "month(ts)", "day(ts)"])
    days = [f"{year}-{month:02}-{day:02}T12:00:00Z" for year in (2024, 2025) for month in (11, 12) for day in (9, 10)]
    table.append(pa.Table.from_pylist([{"id": i, "ts": d} for i, d in enumerate(days)]).cast(schema))

    scan = table.scan("ts >= '2025-12-10T00:00:00Z' AND ts < '2025-12-11T00:00:00Z'")

    assert [leaf.values for leaf in scan.plan().leaves] == [("2025", "12", "10")]
    assert scan.count() == 1


@pytest.mark.parametrize(
    "value", ["it's", 'dou"ble', "per%cent", "under_score", "back\\slash", "new\nline", "a`b", "😀", "--", "';--", " "]
)
def test_a_value_of_any_spelling_is_found_by_its_filter(local: Place, value: str) -> None:
    table = lp.create_table(local.root, SCHEMA, ["country"])
    table.append(events((1, DAY, value), (2, DAY, "other")))

    scan = table.scan("country = '" + value.replace("'", "''") + "'")

    assert [leaf.values for leaf in scan.plan().leaves] == [(value,)]
    assert scan.to_arrow().column("id").to_pylist() == [1]


def test_pruning_works_the_same_on_an_object_store(place: Place) -> None:
    table = lp.create_table(place.root, SCHEMA, ["event_date"], storage_options=place.storage_options)
    table.append(events((1, DAY, "US"), (2, date(2025, 12, 11), "US")))
    table.update_spec(["year(event_date)", "country"])
    table.append(events((3, DAY, "US"), (4, DAY, "FR")))

    again = lp.open_table(place.root, storage_options=place.storage_options)

    assert len(again.scan(QUERY).plan().leaves) == 2
    assert ids(again, QUERY) == [1, 3]
