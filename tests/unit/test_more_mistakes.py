"""More mistakes of newcomers, beside those of test_mistakes: other data, other filters, other arguments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from tests.support.mistakes import answered_unchanged

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("country", pa.string()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("v", pa.list_(pa.float32(), 2)),
        ("body", pa.string()),
    ]
)
TWICE = pa.table([pa.array([1]), pa.array([2])], names=["id", "id"])
Mistake = Callable[[lp.PartitionedTable, Path], object]


def after_its_end(table: lp.PartitionedTable) -> None:
    with table.transaction() as tx:
        tx.scan().count()
    tx.delete("id = 78")


def taken_tag(table: lp.PartitionedTable) -> None:
    if "taken" not in table.tags.list():
        table.tags.create("taken", table.version)
    table.tags.create("taken", table.version)


def misspelt_tag(table: lp.PartitionedTable) -> None:
    if "taken" not in table.tags.list():
        table.tags.create("taken", table.version)
    lp.open_table(table.root, version="takn")


MISTAKES: dict[str, tuple[Mistake, list[str]]] = {
    # rows
    "a dict of columns": (lambda t, at: t.append({"id": [5]}), ["dict of columns", "pyarrow.table"]),  # type: ignore[arg-type]
    "rows as tuples": (lambda t, at: t.append([(5, "US")]), ["list of dicts"]),  # type: ignore[list-item]
    "no data at all": (lambda t, at: t.append(None), ["NoneType", "give"]),  # type: ignore[arg-type]
    "a day that is none": (lambda t, at: t.append([{"day": "2026-01-32"}]), ["day", "2026-01-32", "give a date"]),
    "a time zone too many": (lambda t, at: t.append([{"ts": datetime(2026, 1, 1, tzinfo=UTC)}]), ["ts", "time zone"]),
    "a fraction for a whole number": (lambda t, at: t.append([{"id": 5.5}]), ["id", "5.5", "whole number"]),
    "a number that is too large": (lambda t, at: t.append([{"id": 2**70}]), ["id", "int64", "too large"]),
    "NaN for a whole number": (lambda t, at: t.append(pa.table({"id": [float("nan")]})), ["id", "nan", "int64"]),
    "two columns of one name": (lambda t, at: t.append(TWICE), ["id", "twice"]),
    "a name in another case": (lambda t, at: t.append([{"ID": 5}]), ["'ID'", "did you mean 'id'"]),
    "CSV with a wrong value": (lambda t, at: t.append(at / "bad.csv"), ["bad.csv", "Row #3", "'x'", "correct"]),
    "Parquet that is none": (lambda t, at: t.append(at / "bad.parquet"), ["bad.parquet", "parquet", "correct"]),
    "JSON that was cut off": (lambda t, at: t.append(at / "bad.jsonl"), ["bad.jsonl", "row 1", "correct"]),
    "a pattern without files": (lambda t, at: lp.load(t.root, str(at / "none*.csv")), ["none*.csv", "no file"]),
    "a key that the data lacks": (lambda t, at: t.upsert([{"country": "X"}], on=["id"]), ["'id'", "key"]),
    "a key as one text": (lambda t, at: t.upsert([{"id": 1}], on="id"), ["on", "list"]),
    "a text to set without quotes": (lambda t, at: t.update({"body": "red dog"}), ["body = red dog", "single quotes"]),
    "columns to set as a list": (lambda t, at: t.update(["id"]), ["dict"]),  # type: ignore[arg-type]
    "a value to set of the wrong type": (lambda t, at: t.update({"id": "'seven'"}), ["id", "seven", "int64"]),
    "rows outside of what is replaced": (lambda t, at: t.overwrite([{"country": "DE"}], "country = 'US'"), ["US"]),
    "a delete of None": (lambda t, at: t.delete(None), ["None", "'true'"]),  # type: ignore[arg-type]
    "a merge without a clause": (lambda t, at: t.merge([{"id": 1}], on=["id"]).execute(), ["when_matched"]),
    # filters
    "columns as one text": (lambda t, at: t.scan(columns="id"), ["columns", "list"]),
    "a function of Python": (lambda t, at: t.scan(lambda row: row), ["lambda", "SQL"]),  # type: ignore[arg-type]
    "operators of Python": (lambda t, at: t.scan("id == 1 && id == 2"), ["&&", "AND"]),
    "a quote that is not closed": (lambda t, at: t.scan("country = 'US"), ["'US", "not closed", "quote at its end"]),
    "a function that is not there": (lambda t, at: t.scan("uper(country) = 'US'"), ["uper", "did you mean 'upper'"]),
    "an aggregate": (lambda t, at: t.scan("count(*) > 1"), ["count", "without aggregates", "lp.sql"]),
    "a subquery": (lambda t, at: t.scan("id IN (SELECT id FROM x)"), ["subqueries", "sql"]),
    "a limit as a text": (lambda t, at: t.scan(limit="10"), ["limit", "'10'"]),  # type: ignore[arg-type]
    "a date as a number": (lambda t, at: t.scan("day = 20260101"), ["day", "date32", "20260101", "DATE '2026-01-01'"]),
    "a text as a number": (lambda t, at: t.delete("country = 5"), ["country", "string", "5", "country = '5'"]),
    "a list without values": (lambda t, at: t.scan("id IN ()"), ["IN ()", "at least one"]),
    "LIKE on a number": (lambda t, at: t.scan("id LIKE '5%'"), ["id", "int64", "LIKE", "CAST(id AS VARCHAR)"]),
    "a filter as a dict": (lambda t, at: t.scan({"id": 1}), ["{'id': 1}", "SQL"]),  # type: ignore[arg-type]
    "a filter as tuples": (lambda t, at: t.scan([("id", "=", 1)]), ["'id'", "SQL"]),  # type: ignore[arg-type]
    "parameters as a list": (lambda t, at: t.scan("id = $1", params=[1]), ["params", "dict"]),  # type: ignore[arg-type]
    "order as pairs": (lambda t, at: t.scan(order_by=[("id", "desc")]), ["order_by", "'day DESC'"]),  # type: ignore[list-item]
    "a sample of a negative size": (lambda t, at: t.sample(-3), ["n is -3"]),
    "row ids with fractions": (lambda t, at: t.take([1.5]), ["1.5", "_rowid"]),
    "row ids of another table": (lambda t, at: t.take([1 << 60]), [str(1 << 60), "snapshot"]),
    # where and when
    "a snapshot's number as a text": (lambda t, at: lp.open_table(t.root, version="9"), ["'9'", "int"]),
    "a negative snapshot": (lambda t, at: lp.open_table(t.root, version=-1), ["-1"]),
    "a plain Lance table": (lambda t, at: lp.open_table(at / "plain.lance"), ["plain.lance", "lance.dataset"]),
    "changes backwards": (lambda t, at: t.changes(t.version, t.version - 1), ["since", "until"]),
    "a tag without a name": (lambda t, at: t.tags.create("", t.version), ["''", "name"]),
    "a directory with other files": (lambda t, at: lp.create_table(at, SCHEMA, ["id"]), ["bad.", "directory"]),
    "an option that is no text": (lambda t, at: lp.open_table(t.root, storage_options={"a": 1}), ["'a'", "text"]),  # type: ignore[dict-item]
    "an age as a number": (lambda t, at: t.maintenance.expire(7), ["7", "timedelta"]),  # type: ignore[arg-type]
    "a namespace that is not there": (lambda t, at: lp.connect(at / "w").table("db.t"), ["db.t"]),
    "a snapshot as True": (lambda t, at: lp.open_table(t.root, version=True), ["True", "tag"]),
    "a tag that is taken": (lambda t, at: taken_tag(t), ["'taken'", "delete it"]),
    "an age in the future": (lambda t, at: t.maintenance.expire(timedelta(days=-1)), ["older_than", "future"]),
    "orphans of the future": (lambda t, at: t.maintenance.remove_orphans(timedelta(-1)), ["older_than", "future"]),
    "no age": (lambda t, at: t.maintenance.remove_orphans(None), ["None", "timedelta"]),  # type: ignore[arg-type]
    "fragments without rows": (lambda t, at: t.maintenance.compact(target_rows=0), ["target_rows is 0"]),
    "fewer than no snapshots": (lambda t, at: t.inspect.snapshots(limit=-1), ["limit is -1"]),
    "a key of another type": (lambda t, at: t.append([], idempotency_key=5), ["5", "string"]),  # type: ignore[arg-type]
    "options as a list": (lambda t, at: lp.open_table(t.root, storage_options=["a"]), ["list", "dict"]),  # type: ignore[arg-type]
    "no table to drop": (lambda t, at: lp.drop_table(at / "nothing"), ["nothing"]),
    # advice
    "a text in double quotes like a column": (lambda t, at: t.scan('body = "body 1"'), ["single quotes, 'body 1'"]),
    "a text without quotes": (lambda t, at: t.scan("country = Germany"), ["single quotes, 'Germany'"]),
    "a filter that breaks off": (lambda t, at: t.scan("id = 1 AND"), ["ends where an expression is expected"]),
    "a bracket that is not closed": (lambda t, at: t.scan("id IN (1, 2"), ["ends where"]),
    "a directory that can't be made": (lambda t, at: lp.create_table("/proc/t", SCHEMA), ["'/proc/t'", "may write"]),
    "a scheme that nobody has": (lambda t, at: lp.create_table("ftp://h/t", SCHEMA), ["ftp://h/t", "s3://", "local"]),
    "a misspelt key": (lambda t, at: t.upsert([{"id": 1}], on=["idd"]), ["idd", "the table has id", "mean 'id'"]),
    "a misspelt tag": (lambda t, at: misspelt_tag(t), ["takn", "did you mean 'taken'", "tags.list()"]),
    "a snapshot of the future": (lambda t, at: lp.open_table(t.root, version=999), ["999", "inspect.snapshots()"]),
    "a new table without partitioning": (lambda t, at: lp.load(at / "n", [{"id": 1}]), ["n'", "partition_by=["]),
    "a pattern of a wrong folder": (lambda t, at: t.append("nothing/*.csv"), ["nothing/*.csv", "looked for '/"]),
    "one key in two rows": (lambda t, at: t.upsert([{"id": 1}, {"id": 1}], on=["id"]), ["{'id': 1}", "keep one row"]),
    "a longer vector": (lambda t, at: t.append([{"v": [1.0, 2.0, 3.0]}]), ["'v'", "it has 3 numbers", "give 2"]),
    "a longer vector of Arrow": (lambda t, at: t.append(pa.table({"v": [[1.0]]})), ["'v'", "give 2 numbers"]),
    "a longer query": (lambda t, at: t.search([1.0, 2.0, 3.0]), ["3 numbers", "vectors of 2", "that length"]),
    "a directory above tables": (lambda t, at: lp.open_table(at / "above"), ["no warehouse", "above/inside'"]),
    # queries
    "a query that breaks off": (lambda t, at: lp.sql("SELECT id FROM t WHERE", t=t), ["ends where an expression"]),
    "a query with an open quote": (lambda t, at: lp.sql("SELECT 'x", t=t), ["string", "column 8", "not closed"]),
    "a function that no query has": (lambda t, at: lp.sql("SELECT uper(body) FROM t", t=t), ["'uper'", "'upper'"]),
    "a misspelt table": (lambda t, at: lp.sql("SELECT 1 FROM evnts", events=t), ["evnts", "tables are events", "mean"]),
    "a query that is None": (lambda t, at: lp.sql(None), ["None", "string"]),  # type: ignore[arg-type]
    "a query that changes rows": (lambda t, at: lp.sql("DELETE FROM t", t=t), ["DELETE", "table.delete"]),
    "a table that is a number": (lambda t, at: lp.sql("SELECT * FROM t", t=5), ["t is a int"]),
    "k as a text": (lambda t, at: t.search([1.0, 0.0], k="5"), ["k is '5'"]),  # type: ignore[arg-type]
    "words as a vector": (lambda t, at: t.search(["a", "b"]), ["list", "vector", "text"]),  # type: ignore[list-item]
    "a query without its tables": (lambda t, at: lp.sql("SELECT * FROM t").to_arrow(), ["t", "by name"]),
    "a column that a query misspells": (lambda t, at: lp.sql("SELECT idd FROM t", t=t).to_arrow(), ["idd", "'id'"]),
    "a query without a parameter": (lambda t, at: lp.sql("SELECT $x", t=t).to_arrow(), ["$x", "params"]),
    "two queries at once": (lambda t, at: lp.sql("SELECT 1; SELECT 2", t=t).to_arrow(), ["single"]),
    "keys of two types": (lambda t, at: t.join(t, on=[("id", "country")]), ["id", "country", "int64", "string"]),
    "a join without a key": (lambda t, at: t.join(t, on=[]), ["on", "list"]),
    "a search for nothing": (lambda t, at: t.search([1.0, 0.0], k=0), ["k is 0"]),
    "a search with another word": (lambda t, at: t.search([1.0, 0.0], metric="l2"), ["metric", "distance_type"]),
    "a vector of NaN": (lambda t, at: t.search([float("nan"), 0.0]), ["NaN", "finite"]),
    "no session": (lambda t, at: t.scan().to_spark(None), ["spark is None", "session"]),  # type: ignore[arg-type]
    # definition
    "a table of no rows": (lambda t, at: lp.create_table_from(at / "n", [], partition_by=["a"]), ["no rows", "schema"]),
    "a schema as a list": (lambda t, at: lp.create_table(at / "n", [("a", "int")]), ["list", "pyarrow.Schema"]),  # type: ignore[arg-type]
    "a schema without columns": (lambda t, at: lp.create_table(at / "n", pa.schema([])), ["no columns"]),
    "a field twice": (lambda t, at: t.update_spec(["country", "country"]), ["'country'", "more than once"]),
    "buckets by name": (lambda t, at: t.update_spec(["bucket(id, many)"]), ["bucket", "whole number"]),
    "a date set to a number": (lambda t, at: t.update({"day": "20260101"}), ["day", "date32", "DATE '2026-01-31'"]),
    "a text index on numbers": (lambda t, at: t.maintenance.create_index("id", "INVERTED"), ["INVERTED", "int64"]),
    "a type by name": (lambda t, at: t.widen_column("id", "int64"), ["pyarrow.DataType", "str"]),  # type: ignore[arg-type]
    "a transform of a text": (lambda t, at: t.update_spec(["days(country)"]), ["'days(country)'", "dates or"]),
    "no buckets": (lambda t, at: t.update_spec(["bucket(id, 0)"]), ["bucket", "0"]),
    "partitions of vectors": (lambda t, at: t.update_spec(["v"]), ["partition_by v"]),
    "a column as a text": (lambda t, at: t.add_column("note string"), ["pyarrow.Field"]),  # type: ignore[arg-type]
    "a vector index on texts": (lambda t, at: t.maintenance.create_index("body", "IVF_PQ"), ["IVF_PQ", "string"]),
    "a closed transaction": (lambda t, at: after_its_end(t), ["closed", "another"]),
    "a wrong isolation": (lambda t, at: t.transaction(isolation="none"), ["none", "serializable"]),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path_factory.mktemp("more") / "t", SCHEMA, ["country", "month(day)"])
    made.append([{"id": 1, "country": "US", "day": date(2026, 1, 1) + timedelta(days=3), "v": [1.0, 0.0]}])
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("files")
    (found / "bad.csv").write_text("id,country\n1,US\nx,FR\n")
    (found / "bad.parquet").write_text("nope")
    (found / "bad.jsonl").write_text('{"id": 1}\n{"id": \n')
    lp.create_table(found / "above" / "inside", SCHEMA, ["country"])
    lance.write_dataset(pa.table({"a": [1]}), found / "plain.lance")
    return found


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered(name: str, table: lp.PartitionedTable, folder: Path) -> None:
    act, words = MISTAKES[name]

    answered_unchanged(table, lambda: act(table, folder), words)
