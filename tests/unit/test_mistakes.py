"""Mistakes that newcomers make in Python, each answered by an error that names the thing and what to do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp
from tests.support.mistakes import answered_unchanged

SCHEMA = pa.schema(
    [("id", pa.int64()), ("country", pa.string()), ("day", pa.date32()), ("v", pa.list_(pa.float32(), 2))]
)
ROWS = pa.table(
    {
        "id": [1, 2],
        "country": ["US", "FR"],
        "day": [date(2026, 1, 1), date(2026, 2, 1)],
        "v": pa.array([[1.0, 0.0], [0.0, 1.0]], pa.list_(pa.float32(), 2)),
    }
)
Mistake = Callable[[lp.PartitionedTable, Path], object]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path_factory.mktemp("mistakes") / "t", SCHEMA, ["country", "month(day)"])
    made.append(ROWS)
    return made


def _numbers(folder: Path) -> lp.PartitionedTable:
    return lp.create_table(folder / "numbers", pa.schema([("id", pa.int64())]))


NEVER_NULL = pa.field("n", pa.int64(), nullable=False)


def in_the_past(table: lp.PartitionedTable) -> None:
    lp.open_table(table.root, version=table.version).append(ROWS)


def in_transaction(table: lp.PartitionedTable) -> None:
    with table.transaction() as tx:
        tx.append(ROWS.rename_columns(["id", "country", "day", "vector"]))


MISTAKES: dict[str, tuple[Mistake, list[str]]] = {
    # where the table is
    "no such path": (lambda t, at: lp.open_table(at / "nowhere"), ["nowhere", "create_table"]),
    "a file instead of a directory": (lambda t, at: lp.open_table(at / "file.txt"), ["file.txt", "directory"]),
    "an unknown scheme": (lambda t, at: lp.open_table("ftp://host/t"), ["ftp", "s3://"]),
    "an empty path": (lambda t, at: lp.open_table(""), ["root is empty"]),
    "no such snapshot": (lambda t, at: lp.open_table(t.root, version=99999), ["99999", "snapshot"]),
    "no such tag": (lambda t, at: lp.open_table(t.root, version="never"), ["never", "tag"]),
    "a moment before the table": (lambda t, at: lp.open_table(t.root, version=_moment(1999)), ["1999", "snapshot"]),
    "a snapshot of the wrong type": (lambda t, at: lp.open_table(t.root, version=1.5), ["1.5", "number", "tag"]),  # type: ignore[arg-type]
    "no such table of a warehouse": (lambda t, at: lp.connect(at / "w").table("db.evnts"), ["evnts", "did you mean"]),
    "a table that is there already": (lambda t, at: lp.create_table(t.root, SCHEMA, ["country"]), ["already"]),
    # definition
    "a partition column that is not there": (lambda t, at: _make(at, ["countri"]), ["countri", "did you mean"]),
    "an unknown transform": (lambda t, at: _make(at, ["buckett(id, 4)"]), ["buckett"]),
    "a transform without its number": (lambda t, at: _make(at, ["bucket(id)"]), ["bucket", "id"]),
    "a transform of the wrong type": (lambda t, at: _make(at, ["year(country)"]), ["year", "string"]),
    "partition_by as one text": (lambda t, at: _make(at, "country"), ["partition_by", "list"]),  # type: ignore[arg-type]
    "an unknown layout": (lambda t, at: _make(at, ["country"], layout="tree"), ["tree", "manifest"]),
    "unknown transactions": (lambda t, at: _make(at, ["country"], transactions="none"), ["none", "strong"]),
    "no schema": (lambda t, at: lp.create_table(at / "n", {"id": "int64"}, ["id"]), ["schema"]),  # type: ignore[arg-type]
    # filters and columns
    "a column that is not there": (lambda t, at: t.scan(columns=["countri"]), ["countri", "did you mean 'country'"]),
    "a filter on such a column": (lambda t, at: t.scan("countri = 'US'"), ["countri", "did you mean 'country'"]),
    "a filter with a syntax error": (lambda t, at: t.scan("country = = 'US'"), ["country = = 'US'"]),
    "a filter of the wrong type": (lambda t, at: t.scan("id = 'seven'").count(), ["seven"]),
    "a filter that is no condition": (lambda t, at: t.scan("id + 1"), ["id + 1"]),
    "double quotes around a text": (lambda t, at: t.scan('country = "US"'), ["US", "single quotes, 'US'"]),
    "two equals signs and a word": (lambda t, at: t.scan("country == US"), ["single quotes, 'US'"]),
    "a parameter without its value": (lambda t, at: t.scan("id = $n"), ["$n", "params"]),
    "a negative limit": (lambda t, at: t.scan(limit=-1), ["limit", "-1"]),
    "an unknown column to order by": (lambda t, at: t.scan(order_by=["dayy DESC"]), ["dayy"]),
    # rows
    "a column too many": (lambda t, at: t.append(ROWS.append_column("extra", pa.array([1, 2]))), ["extra"]),
    "a value of the wrong type": (lambda t, at: t.append([{"id": "seven", "country": "US"}]), ["id", "seven"]),
    "a vector of another length": (lambda t, at: t.append([{"id": 1, "v": [1.0, 2.0, 3.0]}]), ["v"]),
    "data that is no table": (lambda t, at: t.append(42), ["int"]),  # type: ignore[arg-type]
    "a file that is not there": (lambda t, at: t.append(at / "missing.parquet"), ["missing.parquet"]),
    "a file of no known kind": (lambda t, at: t.append(at / "file.txt"), ["file.txt", "format"]),
    "a key that is not there": (lambda t, at: t.upsert(ROWS, on=["idd"]), ["idd"]),
    "a key twice in the data": (lambda t, at: t.upsert(pa.concat_tables([ROWS, ROWS]), on=["id"]), ["id"]),
    "a delete without a filter": (lambda t, at: t.delete(""), ["'true'"]),
    "an update of no column": (lambda t, at: t.update({"idd": "1"}), ["idd"]),
    "a wrong column in a transaction": (lambda t, at: in_transaction(t), ["vector"]),
    "a write to an old snapshot": (lambda t, at: in_the_past(t), ["without a version"]),
    # queries
    "a table that the query does not know": (lambda t, at: lp.sql("SELECT * FROM events", e=t).to_arrow(), ["events"]),
    "SQL with a syntax error": (lambda t, at: lp.sql("SELEC 1", e=t).to_arrow(), ["SELEC"]),
    "SQL that would change something": (lambda t, at: lp.sql("DROP TABLE e", e=t).to_arrow(), ["DROP"]),
    "a query vector of another length": (lambda t, at: t.search([1.0, 2.0, 3.0]).to_arrow(), ["3", "2"]),
    "a text search without texts": (lambda t, at: _numbers(at).search("word").to_arrow(), ["no column of text", "id"]),
    "a search in a column of numbers": (lambda t, at: t.search([1.0, 2.0], "id"), ["id"]),
    "an unknown kind of join": (lambda t, at: t.join(t, on=["id"], how="sideways"), ["sideways", "inner"]),
    "a join on no such column": (lambda t, at: t.join(t, on=["idd"]), ["idd"]),
    # evolution and upkeep
    "a column that is there already": (lambda t, at: t.add_column(pa.field("id", pa.int64())), ["id", "taken"]),
    "a column that must not be NULL": (lambda t, at: t.add_column(NEVER_NULL), ["n", "null"]),
    "a rename of no column": (lambda t, at: t.rename_column("idd", "x"), ["idd"]),
    "a type that holds less": (lambda t, at: t.widen_column("id", pa.int8()), ["id", "int8"]),
    "an unknown kind of index": (lambda t, at: t.maintenance.create_index("id", "TREE"), ["TREE", "BTREE"]),
    "a rollback to no snapshot": (lambda t, at: t.maintenance.rollback(99999), ["99999"]),
    "an age that is none": (lambda t, at: t.maintenance.expire("yesterday"), ["yesterday"]),  # type: ignore[arg-type]
    "a tag with a quote": (lambda t, at: t.tags.create("it's 1", t.version), ["it's 1", "alphanumeric"]),
    "a tag that is not there": (lambda t, at: t.tags.delete("nothing"), ["nothing"]),
    "a setting that does not exist": (lambda t, at: setattr(lp.config, "thread", 4), ["thread", "threads"]),
}  # fmt: skip


def _moment(year: int) -> object:
    from datetime import UTC, datetime

    return datetime(year, 1, 1, tzinfo=UTC)


def _make(at: Path, by: list[str], **options: str) -> object:
    return lp.create_table(at / "n", SCHEMA, by, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("places")
    (found / "file.txt").write_text("hello")
    db = lp.connect(found / "w")
    db.create_namespace("db")
    db.create_table("db.events", SCHEMA, ["country"])
    return found


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered(name: str, table: lp.PartitionedTable, folder: Path) -> None:
    act, words = MISTAKES[name]

    answered_unchanged(table, lambda: act(table, folder), words)

    assert not (folder / "n").exists()


def test_there_are_at_least_forty() -> None:
    assert len(MISTAKES) >= 40
