"""Document 003, section 5: writes leaf by leaf, the schema check, and what a failure leaves."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.commit import hive_writer
from lancepart.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableColumnNotFoundError,
    TableSchemaValidationError,
)
from lancepart.read import leaf as reading
from tests.conformance.hive import trees
from tests.support.catalogs import Place

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("day", pa.date32()), ("country", pa.string()), ("x", pa.int32())]
)
DAY, NEXT = date(2025, 12, 10), date(2025, 12, 11)


def rows(*given: tuple[int, date | None, str | None, int | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in given], schema=SCHEMA)


@pytest.fixture
def table(place: Place) -> lp.PartitionedTable:
    made = lp.create_table(place.root, SCHEMA, ["day", "country"], layout="hive", storage_options=place.storage_options)
    made.append(rows((1, DAY, "US", 1), (2, DAY, "US", 2), (3, DAY, "FR", 3), (4, NEXT, "US", 4)))
    return made


def content(table: lp.PartitionedTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


@pytest.mark.quick
def test_every_verb_returns_none_and_does_what_it_says(table: lp.PartitionedTable) -> None:
    assert table.append([{"id": 5, "day": NEXT, "country": "DE", "x": 5}]) is None
    assert table.delete("country = 'US' AND x < 2") is None
    assert table.update({"x": "x * 10"}, "id = 3") is None
    assert table.upsert(rows((4, DAY, "US", 40), (6, NEXT, None, 6)), on=["id"]) is None
    assert table.overwrite(rows((7, NEXT, "DE", 7))) is None

    assert content(table) == [
        (2, DAY, "US", 2),
        (3, DAY, "FR", 30),
        (4, DAY, "US", 40),
        (6, NEXT, None, 6),
        (7, NEXT, "DE", 7),
    ]


def test_overwrite_replaces_the_touched_leaves_in_one_commit_each(table: lp.PartitionedTable) -> None:
    leaf = next(item for item in table.scan().plan().leaves if item.object_id == "day=2025-12-10$country=US")
    place = table._manifest.root
    before = lance.dataset(place.uri_of(leaf.location), storage_options=dict(place.storage_options)).version

    table.overwrite(rows((9, DAY, "US", 9), (8, date(2025, 1, 1), "IT", 8)))

    after = lance.dataset(place.uri_of(leaf.location), storage_options=dict(place.storage_options))
    assert after.version == before + 1
    assert content(table) == [
        (3, DAY, "FR", 3),
        (4, NEXT, "US", 4),
        (8, date(2025, 1, 1), "IT", 8),
        (9, DAY, "US", 9),
    ]


def test_overwrite_is_idempotent(table: lp.PartitionedTable) -> None:
    for _ in range(2):
        table.overwrite(rows((9, DAY, "US", 9), (8, DAY, "IT", 8)))

    assert trees.ids(table, "day = DATE '2025-12-10'") == [3, 8, 9]


def test_overwrite_where_replaces_the_rows_that_match(table: lp.PartitionedTable) -> None:
    table.overwrite(rows((2, NEXT, "US", 22)), "id = 2")

    assert (2, NEXT, "US", 22) in content(table)
    assert len(content(table)) == 4
    with pytest.raises(InvalidInputError, match="do not match"):
        table.overwrite(rows((5, NEXT, "US", 22)), "id = 2")
    assert len(content(table)) == 4


def test_an_update_of_a_partition_column_moves_the_row(table: lp.PartitionedTable) -> None:
    table.update({"country": "'GB'", "day": "DATE '2025-12-12'"}, "id = 3")

    assert trees.paths(table, "country = 'GB'") == ["day=2025-12-12$country=GB"]
    assert trees.ids(table, "country = 'FR'") == []


def test_a_delete_of_all_rows_leaves_empty_leaves(table: lp.PartitionedTable) -> None:
    table.delete("true")

    assert content(table) == []
    table.append(rows((1, DAY, "US", 1)))
    assert content(table) == [(1, DAY, "US", 1)]


def test_a_key_that_stands_twice_in_the_data_is_refused(table: lp.PartitionedTable) -> None:
    with pytest.raises(InvalidInputError, match="more than once"):
        table.upsert(rows((1, DAY, "US", 1), (1, NEXT, "US", 1)), on=["id"])
    with pytest.raises(TableColumnNotFoundError):
        table.upsert(rows((1, DAY, "US", 1)), on=["nobody"])
    with pytest.raises(TableColumnNotFoundError):
        table.update({"nobody": "1"})


@pytest.mark.parametrize(
    "data",
    [
        pa.table({"id": ["one"]}),
        pa.table({"id": [1], "more": [2]}),
        pa.table({"x": pa.array([1], pa.int32())}),
        pa.table({"id": pa.array([None], pa.int64())}),
        pa.table({"id": [1], "country": [5]}),
    ],
)
def test_data_that_does_not_fit_is_refused_and_nothing_changes(table: lp.PartitionedTable, data: Any) -> None:
    before = content(table)

    for write in (lambda: table.append(data), lambda: table.overwrite(data), lambda: table.upsert(data, on=["id"])):
        with pytest.raises(TableSchemaValidationError):
            write()

    assert content(table) == before


def test_a_new_leaf_has_the_tables_schema_without_what_the_path_holds(table: lp.PartitionedTable) -> None:
    root = table._manifest.root
    table.append(pa.table({"id": pa.array([9], pa.int8())}))

    leaf = next(item for item in table.scan("day IS NULL").plan().leaves)
    plain = lance.dataset(root.uri_of(leaf.location), storage_options=dict(root.storage_options))

    assert plain.schema == pa.schema([pa.field("id", pa.int64(), nullable=False), ("x", pa.int32())])


def test_a_leaf_of_another_writer_takes_rows_in_its_own_order(local: Place) -> None:
    trees.write_events(local.root)
    table = lp.open_table(local.root)

    table.append([{"id": 9, "event_date": NEXT, "country": "FR"}])

    assert trees.ids(table, "country = 'FR'") == [5, 6, 9]


def test_a_leaf_that_lacks_a_column_is_named(local: Place) -> None:
    schema = {"fields": [*trees.EVENTS["fields"], {"name": "x", "nullable": True, "type": {"name": "utf8"}}]}
    trees.write_tree(local.root, trees.event_rows())
    columns = [{"name": "event_date"}, {"name": "country"}]
    trees.write_manifest(local.root, list(trees.EVENT_LEAVES), trees.properties(columns, schema))
    table = lp.open_table(local.root)

    with pytest.raises(lp.errors.InvalidTableStateError, match="no column 'x'"):
        table.append([{"id": 9, "event_date": NEXT, "country": "FR", "x": "y"}])


def test_a_write_that_fails_halfway_says_how_far_it_came(
    table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = hive_writer.HiveLeaves._append

    def failing(self: Any, identifier: str, location: str, part: Any) -> None:
        if "FR" in identifier:
            raise ConcurrentModificationError("no luck")
        real(self, identifier, location, part)

    monkeypatch.setattr(hive_writer.HiveLeaves, "_append", failing)
    monkeypatch.setattr("lancepart.commit.hive._THREADS", 1)

    with pytest.raises(ConcurrentModificationError, match=r"written so far: day=2025-12-10\$country=US"):
        table.append(rows((10, DAY, "US", 1), (11, DAY, "FR", 1)))


def test_two_writers_that_make_one_leaf_at_once_both_keep_their_rows(local: Place) -> None:
    lp.create_table(local.root, SCHEMA, ["day", "country"], layout="hive")
    first, second = lp.open_table(local.root), lp.open_table(local.root)
    _ = first._manifest.snapshot().tree, second._manifest.snapshot().tree  # type: ignore[attr-defined]

    first.append(rows((1, DAY, "US", 1)))
    second.append(rows((2, DAY, "US", 2)))

    assert trees.ids(lp.open_table(local.root)) == [1, 2]
    assert len(trees.paths(first)) == 1


def test_many_writers_at_once_lose_nothing(local: Place) -> None:
    lp.create_table(local.root, SCHEMA, ["day", "country"], layout="hive")

    def write(number: int) -> None:
        countries = ("US", "FR", None)
        lp.open_table(local.root).append(
            rows(*((number * 10 + at, DAY, land, at) for at, land in enumerate(countries)))
        )

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))

    table = lp.open_table(local.root)
    assert trees.ids(table) == sorted(number * 10 + at for number in range(8) for at in range(3))
    assert len(trees.paths(table)) == 3


def test_a_plan_can_be_carried_out_elsewhere(table: lp.PartitionedTable) -> None:
    scan = table.scan("country = 'US' AND x > 1")
    tasks = pickle.loads(pickle.dumps([scan.task_of(leaf) for leaf in scan.plan().leaves]))

    found = pa.Table.from_batches([batch for task in tasks for batch in reading.read(task)])

    assert sorted(found["id"].to_pylist()) == [2, 4]
    assert found.schema == SCHEMA


def test_a_location_outside_the_root_is_refused(local: Place) -> None:
    trees.write_manifest(local.root, ["event_date=2025-12-10/country=US"], trees.EVENT_PROPERTIES)
    manifest = lance.dataset(f"{local.root}/__manifest")
    manifest.update({"location": "'../elsewhere.lance'"}, where="object_type = 'table'")

    with pytest.raises(InvalidInputError, match=r"'\.\.' part"):
        lp.open_table(local.root).scan().to_arrow()
