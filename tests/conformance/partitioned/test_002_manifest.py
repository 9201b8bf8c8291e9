"""002, "Manifest Table Schema" and Appendix C."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidTableStateError
from tests.conformance.partitioned import appendix
from tests.conformance.partitioned.appendix import DAY, SCHEMA, V1_LEAF, V2_LEAF, appendix_c, events, ids
from tests.support.catalogs import Place

OTHER_DAY = date(2025, 12, 11)


def _manifest(table: lp.PartitionedTable) -> Any:
    return lance.dataset(f"{table.root}/__manifest")


def test_the_manifest_has_a_nullable_column_a_partition_field_of_any_spec(ours: lp.PartitionedTable) -> None:
    schema = _manifest(ours).schema

    expected = {
        "read_version": pa.uint64(),
        "partition_field_event_date": pa.date32(),
        "partition_field_event_year": pa.int32(),
        "partition_field_country": pa.string(),
    }
    assert {name: schema.field(name).type for name in expected} == expected
    assert all(schema.field(name).nullable for name in expected)
    assert {"object_id", "object_type", "metadata"} <= set(schema.names)


def test_a_new_spec_version_adds_the_columns_that_are_new(local: Place) -> None:
    table = lp.create_table(local.root, SCHEMA, ["country"])
    before = set(_manifest(table).schema.names)

    table.update_spec(["country", "year(event_date)"])

    assert set(_manifest(table).schema.names) - before == {"partition_field_event_date_year"}


def test_a_weak_table_has_no_read_version_column(local: Place) -> None:
    table = lp.create_table(local.root, SCHEMA, ["country"], transactions="weak")

    assert "read_version" not in _manifest(table).schema.names


def test_partition_values_are_inherited_down(local: Place) -> None:
    table = lp.create_table(local.root, SCHEMA, ["year(event_date)", "country", "bucket(id, 1)"])
    table.append(events((1, DAY, "US")))

    rows = _manifest(table).to_table().sort_by("object_id").to_pylist()

    columns = ("partition_field_event_date_year", "partition_field_country", "partition_field_id_bucket")
    shown = [(row["object_type"], *(row[column] for column in columns)) for row in rows]
    assert shown == [
        ("namespace", None, None, None),
        ("namespace", 2025, None, None),
        ("namespace", 2025, "US", None),
        ("namespace", 2025, "US", 0),
        ("table", 2025, "US", 0),
        ("table_version", None, None, None),
    ]


def test_what_we_write_differs_from_appendix_c_in_read_version_and_metadata_only(ours: lp.PartitionedTable) -> None:
    """Apart from the names, which are derived, and the catalog's own columns, which the appendix leaves out."""
    columns = ["object_id", "object_type", *(n for n in _manifest(ours).schema.names if n.startswith("partition_"))]
    written = _manifest(ours).to_table(columns=columns).to_pylist()
    theirs = {name: name for name in ("v1", "v2", "dataset", "1", "2")}
    for mine, given in zip(ours.scan().plan().leaves, (V1_LEAF, V2_LEAF), strict=True):
        theirs |= dict(zip(mine.object_id.split("$"), given.split("$"), strict=True))

    renamed = [{**row, "object_id": "$".join(theirs[part] for part in row["object_id"].split("$"))} for row in written]

    expected = appendix.as_manifest(appendix_c(0)).select(columns).to_pylist()
    assert sorted(renamed, key=str) == sorted(expected, key=str)


def test_our_table_rows_carry_the_version_that_appendix_d_reads(ours: lp.PartitionedTable) -> None:
    rows = _manifest(ours).to_table(columns=["object_id", "object_type", "read_version"]).to_pylist()
    by_id = {row["object_id"]: row["read_version"] for row in rows}

    for row in rows:
        if row["object_type"] == "table":
            last = max(int(key.rsplit("$", 1)[1]) for key in by_id if key.startswith(f"{row['object_id']}$"))
            assert row["read_version"] == by_id[f"{row['object_id']}${last}"]
        if row["object_type"] == "namespace":
            assert row["read_version"] is None


def test_a_manifest_as_appendix_c_gives_it_reads_right(by_hand: lp.PartitionedTable) -> None:
    assert ids(by_hand) == [1, 2, 3, 4, 5]
    assert by_hand.scan().count() == 5
    assert by_hand.schema == SCHEMA
    assert ids(by_hand, "country = 'FR'") == [2]


def test_a_row_in_main_that_no_row_of_the_manifest_names_is_not_seen(by_hand: lp.PartitionedTable) -> None:
    main = lance.dataset(f"{by_hand.root}/{appendix.LOCATIONS[V1_LEAF]}")

    assert 99 in main.to_table().column("id").to_pylist()
    assert 99 not in ids(by_hand)


def test_a_manifest_with_read_version_on_the_table_rows_alone_reads_right(local: Place) -> None:
    versions = appendix.write_leaves(local.root)
    records = [
        (key, kind, versions.get(key), day, year, country)
        for key, kind, _, day, year, country in appendix_c(0)
        if kind != "table_version"
    ]
    appendix.write_manifest(local.root, records)

    table = lp.open_table(local.root)

    assert ids(table) == [1, 2, 3, 4, 5]
    assert table.scan().count() == 5


def test_a_table_version_that_moved_ahead_of_the_table_row_is_the_truth(local: Place) -> None:
    versions = appendix.write_leaves(local.root)
    records = [
        (key, kind, 1 if kind == "table" else version, day, year, country)
        for key, kind, version, day, year, country in appendix_c(versions[V1_LEAF])
    ]
    appendix.write_manifest(local.root, records)

    table = lp.open_table(local.root)

    assert ids(table) == [1, 2, 3, 4, 5]


def test_the_tenth_version_is_newer_than_the_ninth(local: Place) -> None:
    versions = appendix.write_leaves(local.root)
    more = [(f"{V1_LEAF}${n}", "table_version", 1, None, None, None) for n in range(3, 10)]
    newest = (f"{V1_LEAF}$10", "table_version", versions[V1_LEAF], None, None, None)
    appendix.write_manifest(local.root, [newest, *appendix_c(versions[V1_LEAF]), *more])

    assert ids(lp.open_table(local.root)) == [1, 2, 3, 4, 5]


def test_a_version_that_another_writer_added_to_our_leaf_is_read_and_counted(ours: lp.PartitionedTable) -> None:
    """Another client knows nothing of our statistics on the table row, and moves only the version."""
    leaf = ours.scan().plan().leaves[0]
    uri = f"{ours.root}/{leaf.location}"
    assert leaf.read_version is not None
    base = lance.dataset(uri, version=leaf.read_version)
    added = lance.fragment.write_fragments(events((7, DAY, "DE")).cast(base.schema), base)
    version = lance.LanceDataset.commit(
        uri, lance.LanceOperation.Append(added), read_version=leaf.read_version, detached=True
    ).version
    record = [{"object_id": f"{leaf.object_id}${leaf.number + 1}", "object_type": "table_version"}]
    schema = pa.schema([("object_id", pa.string()), ("object_type", pa.string()), ("read_version", pa.uint64())])
    row = pa.Table.from_pylist([{**record[0], "read_version": version}], schema=schema)
    _manifest(ours).merge_insert("object_id").when_not_matched_insert_all().use_index(False).execute(row)

    assert ids(ours) == [1, 2, 3, 4, 5, 7]
    assert ours.scan().count() == 6
    ours.append(events((8, DAY, "DE")))
    assert ids(ours) == [1, 2, 3, 4, 5, 7, 8]
    assert ours.scan().count() == 7


def test_a_table_by_hand_takes_appends_to_old_and_new_partitions(by_hand: lp.PartitionedTable) -> None:
    by_hand.append(events((6, DAY, "US"), (7, OTHER_DAY, "US"), (8, date(2024, 1, 1), "FR")))

    assert ids(by_hand) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert by_hand.scan().count() == 8
    assert [leaf.values for leaf in by_hand.scan("country = 'US' AND event_date = '2025-12-11'").plan().leaves] == [
        ("2025", "US")
    ]
    numbers = {leaf.object_id: leaf.number for leaf in by_hand.scan().plan().leaves}
    assert numbers[V2_LEAF] == 2


def test_a_table_by_hand_evolves_without_losing_a_value(by_hand: lp.PartitionedTable) -> None:
    """Its leaves know their columns by Lance's own ids, and those that we add by ours."""
    by_hand.add_column(pa.field("note", pa.string()))
    by_hand.append([{"id": 6, "event_date": DAY, "country": "US", "note": "new"}])
    by_hand.rename_column("country", "land")
    by_hand.add_column(pa.field("country", pa.string()))
    by_hand.append([{"id": 7, "event_date": DAY, "land": "US", "country": "other", "note": "newer"}])

    found = by_hand.scan(columns=["id", "land", "country", "note"]).to_arrow().sort_by("id").to_pylist()

    old = [{"id": n, "land": "FR" if n == 2 else "US", "country": None, "note": None} for n in range(1, 6)]
    assert found == [
        *old,
        {"id": 6, "land": "US", "country": None, "note": "new"},
        {"id": 7, "land": "US", "country": "other", "note": "newer"},
    ]


def test_a_leaf_without_a_location_says_so(local: Place) -> None:
    appendix.write_manifest(local.root, [("v1$k7m2n9p4q8r5s3t7$dataset", "table", 1, DAY, None, None)])

    with pytest.raises(InvalidTableStateError, match="no location"):
        lp.open_table(local.root).scan().to_arrow()


def test_lost_partition_columns_are_noticed(ours: lp.PartitionedTable) -> None:
    _manifest(ours).drop_columns(["partition_field_country"])

    with pytest.raises(InvalidTableStateError, match="partition_field_country"):
        lp.open_table(ours.root)


def test_the_statistics_of_a_leaf_stand_on_its_row(ours: lp.PartitionedTable) -> None:
    rows = _manifest(ours).to_table(filter="object_type = 'table'").to_pylist()

    counted = {row["location"]: json.loads(row["metadata"])["lancepart.rows"] for row in rows}
    assert sorted(counted.values()) == [2, 3]
