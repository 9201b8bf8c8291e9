"""Mistakes of somebody who has read nothing, each answered by an error of the class that fits, with what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lancepart as lp
from lancepart import errors
from tests.support.mistakes import answered

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("country", pa.string()),
        ("day", pa.date32()),
        ("v", pa.list_(pa.float32(), 4)),
        ("body", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("ok", pa.bool_()),
    ]
)
Mistake = Callable[[lp.PartitionedTable, Path], object]
INVALID, GONE = errors.InvalidInputError, errors.InvalidTableStateError
NO_TABLE, NO_COLUMN, UNFIT = (
    errors.TableNotFoundError,
    errors.TableColumnNotFoundError,
    errors.TableSchemaValidationError,
)
NO_STORE = {
    "aws_endpoint": "http://127.0.0.1:9",
    "allow_http": "true",
    "aws_region": "eu-west-1",
    "aws_access_key_id": "nobody",
    "aws_secret_access_key": "swordfish",
    "client_max_retries": "0",
}


def make(at: Path, *by: object) -> object:
    return lp.create_table(at / "n", SCHEMA, list(by))  # type: ignore[arg-type]


def both(table: lp.PartitionedTable) -> lp.Query:
    return lp.sql("SELECT id FROM a JOIN b ON a.country = b.country", a=table, b=table)


MISTAKES: dict[str, tuple[Mistake, type[Exception], list[str]]] = {
    # definition
    "no bucket at all": (lambda t, at: make(at, "bucket(id, 0)"), INVALID, ["'bucket(id, 0)'", "between 1 and"]),
    "fewer than no buckets": (lambda t, at: make(at, "bucket(id, -4)"), INVALID, ["'bucket(id, -4)'", "not -4"]),
    "nothing left of a text": (lambda t, at: make(at, "truncate(country, 0)"), INVALID, ["truncate(country, 0)"]),
    "a bracket that stays open": (lambda t, at: make(at, "bucket(id, 4"), INVALID, ["'bucket(id, 4'", "not closed"]),
    "a misspelt column in an expression": (
        lambda t, at: make(at, "expr(lower(countri)) AS c"),
        INVALID,
        ["there is no column 'countri'", "did you mean 'country'"],
    ),
    "None among the fields": (lambda t, at: make(at, None), INVALID, ["None", "'year(ts)'"]),
    "one value twice": (lambda t, at: make(at, "day", "day"), INVALID, ["'day' and 'day_2'", "leave one out"]),
    "a field as a dict": (lambda t, at: make(at, {"country": "identity"}), INVALID, ["country", "strings such as"]),
    "a spec of a table that is there": (
        lambda t, at: lp.load(t.root, [{"id": 1}], partition_by=["day"]),
        errors.TableAlreadyExistsError,
        ["['country']", "['day']", "update_spec"],
    ),
    # where tables are
    "a scheme without its colon": (lambda t, at: lp.open_table("s3//b/t"), INVALID, ["s3//b/t", "s3://b/t"]),
    "a scheme with one slash": (lambda t, at: lp.open_table("gs:/b/t"), INVALID, ["gs:/b/t", "gs://b/t"]),
    "a warehouse as a table": (lambda t, at: lp.open_table(at / "w"), NO_TABLE, ["is a warehouse", "connect('"]),
    "a table as a warehouse": (lambda t, at: lp.connect(t.root).list_tables(), INVALID, ["is a table", "open_table"]),
    "SQL over a table's root": (lambda t, at: lp.connect(t.root).sql("SELECT 1"), INVALID, ["is a table"]),
    "a namespace that exists": (
        lambda t, at: lp.connect(at / "w").create_namespace("sales"),
        errors.NamespaceAlreadyExistsError,
        ["'sales'", "exist_ok=True"],
    ),
    "a table's name that is taken": (
        lambda t, at: lp.connect(at / "w").create_table("sales.events", SCHEMA, []),
        errors.TableAlreadyExistsError,
        ["'sales.events'", "exist_ok=True"],
    ),
    "a table in no namespace": (
        lambda t, at: lp.connect(at / "w").create_table("sale.events", SCHEMA, []),
        errors.NamespaceNotFoundError,
        ["'sale'", "did you mean 'sales'", "create_namespace"],
    ),
    "a namespace in no namespace": (
        lambda t, at: lp.connect(at / "w").create_namespace("a.b"),
        errors.NamespaceNotFoundError,
        ["'a'", "create_namespace"],
    ),
    "a manifest that is damaged": (lambda t, at: lp.open_table(at / "damaged"), GONE, ["__manifest", "backup"]),
    "files that were removed": (
        lambda t, at: lp.open_table(at / "gone").scan().to_arrow(),
        GONE,
        ["could not read the leaf", "inspect.broken()", "backup"],
    ),
    "files that are missing when counting": (
        lambda t, at: lp.open_table(at / "gone").scan("id = 1").count(),
        GONE,
        ["inspect.broken()"],
    ),
    # filters
    "a filter with WHERE": (lambda t, at: t.scan("WHERE id = 1"), INVALID, ["leave 'WHERE' out"]),
    "a whole query as a filter": (lambda t, at: t.scan("SELECT * FROM t"), INVALID, ["only what follows WHERE", "sql"]),
    "None as Python writes it": (lambda t, at: t.scan("country == None"), INVALID, ["IS NULL"]),
    "a division by zero": (lambda t, at: t.scan("1 / (id - id) = 1").count(), INVALID, ["zero", "NULLIF"]),
    "a cast of words": (lambda t, at: t.scan("CAST(body AS INT) = 1").to_arrow(), INVALID, ["red", "TRY_CAST"]),
    "a filter with a semicolon": (lambda t, at: t.scan("id = 1; DROP TABLE t"), INVALID, ["';'", "column 7"]),
    "a filter of bytes": (lambda t, at: t.scan(b"id = 1"), INVALID, ["b'id = 1'", "SQL in a string"]),  # type: ignore[arg-type]
    "an open group": (lambda t, at: t.scan("regexp_like(body, '(')").count(), INVALID, ["unclosed group"]),
    "a month too many": (lambda t, at: t.scan("day > '2026-13-01'"), INVALID, ["2026-13-01", "DATE '"]),
    # rows
    "two columns of one name in a file": (lambda t, at: t.append(at / "twice.csv"), INVALID, ["twice.csv", "named id"]),
    "a row that is too short": (lambda t, at: t.append(at / "short.csv"), INVALID, ["short.csv", "Row #2"]),
    "a file without a line": (lambda t, at: t.append(at / "empty.csv"), INVALID, ["empty.csv"]),
    "a column of another type": (lambda t, at: t.append(at / "texts.parquet"), UNFIT, ["'id'", "string", "int64"]),
    "True as a number": (lambda t, at: t.append([{"id": True}]), UNFIT, ["'id'", "True", "whole number"]),
    "yes as a truth": (lambda t, at: t.append([{"ok": "yes"}]), UNFIT, ["'ok'", "True or False"]),
    "words as a vector": (lambda t, at: t.append([{"v": list("abcd")}]), UNFIT, ["'v'", "give a number"]),
    "a set of rows": (lambda t, at: t.append({1, 2}), INVALID, ["set", "list of dicts"]),  # type: ignore[arg-type]
    "a generator of numbers": (lambda t, at: t.append(n for n in (1, 2)), INVALID, ["yields a int"]),  # type: ignore[arg-type]
    # queries
    "a key that is None": (lambda t, at: t.join(t, on=None), INVALID, ["on is None", "pairs"]),  # type: ignore[arg-type]
    "None as a key beside rows": (lambda t, at: t.join([{"id": 1}], on=None), INVALID, ["on is None"]),  # type: ignore[arg-type]
    "vectors where a frame is due": (
        lambda t, at: t.search_batch([[1.0, 0.0, 0.0, 0.0]]),  # type: ignore[arg-type]
        INVALID,
        ["list", "Spark DataFrame", "table.search"],
    ),
    "a column of two tables": (lambda t, at: both(t), INVALID, ["several tables", "t.id"]),
    "a sum of a number and a text": (lambda t, at: lp.sql("SELECT id + body FROM t", t=t), INVALID, ["CAST"]),
    "a distance of another name": (lambda t, at: t.search([1.0], distance_type="euclid"), INVALID, ["euclid", "l2"]),  # type: ignore[arg-type]
    "an index on no column": (lambda t, at: t.maintenance.create_index("bdy"), NO_COLUMN, ["'bdy'", "mean 'body'"]),
    "a cache as a text": (lambda t, at: setattr(lp.config, "cache_bytes", "1GB"), INVALID, ["1GB", "number of bytes"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path_factory.mktemp("strange") / "t", SCHEMA, ["country"])
    made.append([{"id": n, "country": "US", "day": date(2026, 1, 1), "body": f"red {n}"} for n in range(4)])
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse, files that are wrong, a table without its rows and one whose manifest is damaged."""
    at = tmp_path_factory.mktemp("places")
    db = lp.connect(at / "w")
    db.create_namespace("sales")
    db.create_table("sales.events", SCHEMA, ["country"])
    (at / "twice.csv").write_text("id,id\n1,2\n")
    (at / "short.csv").write_text("id,country\n1\n")
    (at / "empty.csv").write_text("")
    pq.write_table(pa.table({"id": ["a"]}), at / "texts.parquet")
    for name in ("gone", "damaged"):
        lp.create_table(at / name, SCHEMA, ["country"]).append([{"id": 1, "country": "US"}])
    for file in (at / "gone").glob("*$dataset/data/*"):
        os.unlink(file)
    for file in (at / "damaged" / "__manifest" / "_versions").iterdir():
        file.write_bytes(b"garbage")
    return at


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered(name: str, table: lp.PartitionedTable, folder: Path) -> None:
    act, kind, words = MISTAKES[name]
    before = table.version

    with pytest.raises(kind):
        act(table, folder)
    answered(lambda: act(table, folder), words)

    assert table.version == before
    assert not (folder / "n").exists()


@pytest.mark.slow
def test_a_store_that_does_not_answer_is_named_and_its_secrets_are_not() -> None:
    with pytest.raises(
        errors.ServiceUnavailableError, match=r"127\.0\.0\.1:9.* look at the endpoint.*s3://b/t"
    ) as raised:
        lp.open_table("s3://b/t", storage_options=NO_STORE)
    assert "swordfish" not in str(raised.value)


def test_a_table_describes_its_expressions_as_create_table_takes_them(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("net price", pa.float64())])
    table = lp.create_table(tmp_path / "t", schema, ['expr("net price" > 1) AS dear', "expr(id % 2) AS odd"])
    shown = table.describe().partition_by

    assert shown == ('expr("net price" > 1) AS dear', "expr(id % 2) AS odd")
    assert lp.create_table(tmp_path / "again", schema, shown).spec == table.spec
