"""Writes to plain Lance tables, as Spark's tasks and the planning service make them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import lance_namespace
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import (
    CommitConflictError,
    InvalidInputError,
    LanceNamespaceError,
    TableSchemaValidationError,
    UnsupportedOperationError,
)
from lancepart.read.leaf import ADDRESS, LEAF
from lancepart.spark import plain_tables, planned_writes, table_messages
from lancepart.spark.planning import plan
from lancepart.spark.running import rows
from lancepart.spark.statements import respond
from lancepart.spark.types import arrow_schema, spark_schema
from lancepart.storage import leaf_data
from lancepart.storage.root import Root

VECTOR = pa.list_(pa.float32(), 2)
SCHEMA = pa.schema([("id", pa.int64()), ("v", VECTOR)])


BELOW_3 = {"name": "<", "children": [{"column": ["id"]}, {"type": "bigint", "value": "3"}]}


def planned(root: Path, mode: str, name: str = "plain", schema: pa.Schema = SCHEMA, pushed: Any = ()) -> Any:
    spelled = spark_schema(schema).jsonValue()
    request = table_messages.PlainWriteRequest(id=(name,), mode=mode, schema=spelled, pushed=pushed)
    return planned_writes.loads(respond({"warehouse": str(root)}, "write_plain", request).writer)


def batch(*ids: int) -> pa.RecordBatch:
    rows = [{"id": n, "v": None if n % 2 else [1.0, float(n)]} for n in ids]
    return pa.RecordBatch.from_pylist(rows, arrow_schema(spark_schema(SCHEMA)))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lance.write_dataset(
        pa.table({"old": [0], "id": [1], "v": pa.array([[1.0, 2.0]], VECTOR)}), tmp_path / "plain.lance"
    )
    lance.dataset(tmp_path / "plain.lance").drop_columns(["old"])
    return tmp_path


def test_what_tasks_wrote_is_one_version(table: Path) -> None:
    before = lance.dataset(table / "plain.lance").version
    work = planned(table, "append")
    work.commit([work.write([batch(3)]), work.write([batch(4, 6)])])
    held = lance.dataset(table / "plain.lance")
    assert (held.version, sorted(held.to_table()["id"].to_pylist())) == (before + 1, [1, 3, 4, 6])
    work = planned(table, "truncate")
    work.commit([work.write([batch(8, 9)])])
    held = lance.dataset(table / "plain.lance")
    assert held.to_table().to_pylist() == [{"id": 8, "v": [1.0, 8.0]}, {"id": 9, "v": None}]
    assert (held.version, held.schema) == (before + 2, SCHEMA)
    planned(table, "append").abort()
    assert lance.dataset(table / "plain.lance").version == before + 2


def test_what_can_not_be_written_is_refused(table: Path) -> None:
    with pytest.raises(TableSchemaValidationError, match="'v'"):
        planned(table, "append", schema=pa.schema([("id", pa.int64()), ("v", pa.string())]))
    weak = lp.create_table(table / "root", SCHEMA, transactions="weak")
    weak.append([{"id": 1}])
    request = table_messages.PlainWriteRequest(
        id=("v1", "dataset"), mode="append", schema=spark_schema(SCHEMA).jsonValue()
    )
    with pytest.raises(UnsupportedOperationError, match="part of a partitioned table"):
        respond({"warehouse": weak.root}, "write_plain", request)


def test_columns_that_changed_while_rows_were_written_are_a_conflict(table: Path) -> None:
    place = table / "plain.lance"
    work = planned(table, "append")
    report = work.write([batch(3)])
    lance.write_dataset(pa.table({"id": [5]}), place, mode="append")
    work.commit([report])
    assert sorted(lance.dataset(place).to_table()["id"].to_pylist()) == [1, 3, 5]

    work = planned(table, "append")
    report = work.write([batch(4)])
    swapped = pa.schema([("v", VECTOR), ("id", pa.int64())])
    lance.write_dataset(pa.Table.from_pylist([{"id": 7}], swapped), place, mode="overwrite")
    with pytest.raises(LanceNamespaceError):
        work.commit([report])
    assert lance.dataset(place).to_table()["id"].to_pylist() == [7]


@pytest.mark.parametrize("mode", ["append", "truncate", "filter"])
def test_a_table_that_took_the_place_of_the_one_written_to_is_a_conflict(table: Path, mode: str) -> None:
    """The files that the tasks wrote are gone with the first one."""
    place = table / "plain.lance"
    work = planned(table, mode, pushed=(BELOW_3,) if mode == "filter" else ())
    report = work.write([batch(3)])
    shutil.rmtree(place)
    for id in range(4):
        lance.write_dataset(pa.table({"id": [id], "v": pa.array([[1.0, 2.0]], VECTOR)}), place, mode="append")
    with pytest.raises(CommitConflictError, match="replaced since"):
        work.commit([report])
    shutil.rmtree(place)
    lance.write_dataset(pa.table({"id": [0], "v": pa.array([[1.0, 2.0]], VECTOR)}), place)
    with pytest.raises(CommitConflictError, match="replaced since"):
        work.commit([report])
    assert lance.dataset(place).to_table()["id"].to_pylist() == [0]


def test_rows_of_a_table_whose_versions_others_keep_are_not_deleted(tmp_path: Path) -> None:
    """Not by a simple filter either, for which Spark needs no write."""
    catalog = lp.DirectoryNamespace(root=str(tmp_path / "kept"))
    place = catalog.declare_table(lance_namespace.DeclareTableRequest(id=["plain"])).location
    lance.write_dataset(pa.table({"id": [1, 2]}), place)
    weak = lp.create_table(tmp_path / "weak", SCHEMA, transactions="weak")
    weak.append([{"id": 1}])

    def delete(root: str, location: str) -> Any:
        options = {plain_tables.ROOT: root, plain_tables.LOCATION: location}
        return plain_tables.delete(options, {}, (BELOW_3,))

    with pytest.raises(UnsupportedOperationError, match="part of a partitioned table"):
        delete(weak.root, weak.scan().plan().leaves[0].location)
    catalog.set_root_properties({"table_version_management": "true"})
    with pytest.raises(UnsupportedOperationError, match="the catalog keeps the versions"):
        delete(str(tmp_path / "kept"), Path(place).name)
    catalog.set_root_properties({"table_version_management": "false"})
    delete(str(tmp_path / "kept"), Path(place).name)
    assert (weak.count(), lance.dataset(place).count_rows()) == (1, 0)


def test_rows_that_replace_all_others_have_all_columns(table: Path) -> None:
    with pytest.raises(InvalidInputError, match="give all of its columns, id, v"):
        planned(table, "truncate", schema=pa.schema([("id", pa.int64())]))


ROWS = pa.schema([*arrow_schema(spark_schema(SCHEMA)), (LEAF, pa.int64()), (ADDRESS, pa.int64())])


def changes(place: Path, version: int) -> Any:
    """A planned change of rows that were read at a version."""
    schema = pa.schema([*SCHEMA, (LEAF, pa.int64()), (ADDRESS, pa.int64())])
    request = table_messages.PlainWriteRequest(
        id=("plain",), mode="rows", schema=spark_schema(schema).jsonValue(), version=version
    )
    return planned_writes.loads(respond({"warehouse": str(place)}, "write_plain", request).writer)


def rows_of(place: Path, version: int) -> dict[int, tuple[int, int]]:
    """Where the rows are, by their ids, as a scan for a statement reads them."""
    table = plain_tables.opened(Root.parse(str(place)), "plain.lance", version)
    request = table_messages.ScanRequest(version=version, columns=("id", LEAF, ADDRESS), parallelism=1)
    work = plan(table, request)
    found = [row for task in work.tasks for batch in rows(work.scan, task) for row in batch.to_pylist()]
    return {row["id"]: (row[LEAF], row[ADDRESS]) for row in found}


def going(place: tuple[int, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{LEAF: place[0], ADDRESS: place[1]}], ROWS)


def coming(id: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": id, "v": [0.0, float(id)]}], ROWS)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    vectors = pa.array([[1.0, 2.0]] * 4, VECTOR)
    data = pa.table({"id": [1, 2, 3, 4], "v": vectors})
    lance.write_dataset(data, tmp_path / "plain.lance", max_rows_per_file=2, max_rows_per_group=2)
    return tmp_path


def test_rows_are_replaced_in_one_version(filled: Path) -> None:
    places = rows_of(filled, 1)
    work = changes(filled, 1)
    work.commit([work.write([going(places[1]), coming(10)]), work.write([going(places[3])]), work.write([])])
    held = lance.dataset(filled / "plain.lance")
    assert (held.version, sorted(held.to_table()["id"].to_pylist())) == (2, [2, 4, 10])
    assert held.schema == SCHEMA
    work = changes(filled, 2)
    places = rows_of(filled, 2)
    work.commit([work.write([going(places[2]), going(places[4])])])
    held = lance.dataset(filled / "plain.lance")
    assert (held.to_table()["id"].to_pylist(), len(held.get_fragments())) == ([10], 1)
    assert changes(filled, 3).commit([]) is None


def test_a_row_that_two_tasks_delete_goes_once(filled: Path) -> None:
    places = rows_of(filled, 1)
    work = changes(filled, 1)
    work.commit([work.write([going(places[1])]), work.write([going(places[1]), going(places[2])])])
    assert sorted(lance.dataset(filled / "plain.lance").to_table()["id"].to_pylist()) == [3, 4]


@pytest.mark.parametrize("rival", ["append", "delete", "replace"])
def test_a_table_that_changed_meanwhile_is_a_conflict(filled: Path, rival: str) -> None:
    place = filled / "plain.lance"
    places = rows_of(filled, 1)
    work = changes(filled, 1)
    reports = [work.write([going(places[1]), coming(10)])]
    if rival == "append":
        lance.write_dataset(pa.table({"id": [5]}), place, mode="append")
    elif rival == "delete":
        lance.dataset(place).delete("id = 2")
    else:
        shutil.rmtree(place)
        lance.write_dataset(pa.table({"id": [7, 8], "v": pa.array([[1.0, 2.0]] * 2, VECTOR)}), place)
    before = sorted(lance.dataset(place).to_table()["id"].to_pylist())
    with pytest.raises(CommitConflictError, match="run it again"):
        work.commit(reports)
    assert sorted(lance.dataset(place).to_table()["id"].to_pylist()) == before


def test_lance_refuses_what_comes_after_the_look_at_the_version(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = filled / "plain.lance"
    work = changes(filled, 1)
    reports = [work.write([going(rows_of(filled, 1)[1])])]
    commit = leaf_data.commit_version

    def late(*arguments: Any, **options: Any) -> int:
        lance.dataset(place).delete("id = 1")
        return commit(*arguments, **options)

    monkeypatch.setattr(leaf_data, "commit_version", late)
    with pytest.raises(CommitConflictError):
        work.commit(reports)
    assert sorted(lance.dataset(place).to_table()["id"].to_pylist()) == [2, 3, 4]
