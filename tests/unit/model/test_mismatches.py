"""Comparisons of a column with a literal that can never be meant: refused, with what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, TableSchemaValidationError
from lancepart.model.parse import parse

SCHEMA = pa.schema(
    [
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("clock", pa.time64("us")),
        ("took", pa.duration("s")),
        ("n", pa.int32()),
        ("price", pa.decimal128(9, 2)),
        ("name", pa.string()),
        ("kind", pa.dictionary(pa.int32(), pa.string())),
        ("on", pa.bool_()),
        ("raw", pa.binary()),
        ("place", pa.struct([("since", pa.date32()), ("inner", pa.struct([("n", pa.int64())]))])),
        ("tags", pa.list_(pa.string())),
    ]
)


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("day = 20260101", "day is of type date32[day], and 20260101 is a number: write day = DATE '2026-01-01'"),
        ("20260101 <= day", "write day = DATE '2026-01-01'"),
        ("day >= 2026-01-31", "2026 - 1 - 31 is a number: write day = DATE '2026-01-31'"),
        ("2026-01-31 <= day", "2026 - 1 - 31 is a number: write day = DATE '2026-01-31'"),
        ("day BETWEEN 2026-01-01 AND 2026-01-31", "2026 - 1 - 1 is a number: write day = DATE '2026-01-01'"),
        ("day IN (2026-01-31)", "2026 - 1 - 31 is a number"),
        ("day = 2026-13-01", "write a date, as in day = DATE '2026-01-31'"),
        ("at > 2026-01-31", "write at = TIMESTAMP '2026-01-31 00:00:00'"),
        ("name = 5 + 1 * 2", "name is of type string, and 5 + 1 * 2 is a number"),
        ("day = 20261301", "write a date, as in day = DATE '2026-01-31'"),
        ("day <> -1", "day is of type date32[day], and -1 is a number"),
        ("n = 1 AND (name = 'x' OR NOT day > 5)", "day is of type date32[day], and 5 is a number"),
        ("CASE WHEN day = 5 THEN true ELSE on END", "day is of type date32[day], and 5 is a number"),
        ("day IN (DATE '2026-01-01', 20260102)", "20260102 is a number"),
        ("day IN (20260101, 20260102)", "20260101 is a number: write day = DATE '2026-01-01'"),
        ("day NOT IN (1, 2)", "day is of type date32[day], and 1 is a number"),
        ("day BETWEEN 20260101 AND 20260131", "20260101 is a number: write day = DATE '2026-01-01'"),
        ("day BETWEEN DATE '2026-01-01' AND 20260131", "20260131 is a number: write day = DATE '2026-01-31'"),
        ("day IS DISTINCT FROM 5", "5 is a number"),
        ("day = 'yesterday'", "the text 'yesterday' is no date: write a date, as in day = DATE '2026-01-31'"),
        ("day = '01.02.2026'", "the text '01.02.2026' is no date"),
        ("day = DATE '2026-02-30'", "DATE '2026-02-30' is no date that there is: write a date, as in day = DATE"),
        ("at > TIMESTAMP '2026-01-31 25:00:00'", "25:00:00' is no timestamp that there is: write a timestamp"),
        ("day = true", "true is a truth value"),
        ("at = 20260101", "at is of type timestamp[us, tz=UTC], and 20260101 is a number: write at = TIMESTAMP '2026"),
        ("at > 'noon'", "the text 'noon' is no timestamp: write a timestamp, as in at = TIMESTAMP '2026-01-31 10:00"),
        ("at > 1.5", "1.5 is a number"),
        ("clock = 'late'", "the text 'late' is no time of day"),
        ("took > 60", "took is of type duration[s], and 60 is a number: write took = arrow_cast(60, 'Duration(Second)"),
        ("n = 'seven'", "n is of type int32, and the text 'seven' is no whole number: write a number, as in n = 7"),
        ("n IN ('1', 'two')", "the text 'two' is no whole number"),
        ("n BETWEEN '1' AND 'two'", "the text 'two' is no whole number"),
        ("n = true", "n is of type int32, and true is a truth value"),
        ("n = DATE '2026-01-01'", "n is of type int32, and DATE '2026-01-01' is a date"),
        ("n = INTERVAL '1 day'", "is an interval"),
        ("price = 'dear'", "price is of type decimal128(9, 2), and the text 'dear' is no number"),
        ("name = 5", "name is of type string, and 5 is a number: write name = '5'"),
        ("name IN (1, 2)", "name is of type string, and 1 is a number: write name = '1'"),
        ("name = false", "write name = 'false'"),
        ("kind > 5", "write kind = '5'"),
        ("on = 1", "on is of type bool, and 1 is a number: write on or NOT on"),
        ("on = 'yes'", "on is of type bool, and 'yes' is a text: write on or NOT on"),
        ("raw = 5", "write a binary value, as in raw = X'00FF'"),
        ("place.since = 20260101", "place.since is of type date32[day], and 20260101 is a number"),
        ("place['inner']['n'] = 'x'", "place.inner.n is of type int64, and the text 'x' is no whole number"),
        ("tags = 'a'", "tags is of type list<item: string>, and 'a' is a text: test its values with array_has"),
        ("n LIKE '5%'", "n is of type int32, and LIKE compares texts: write CAST(n AS VARCHAR) LIKE"),
        ("place = 5", "compare one of its fields"),
        ("year(day) = DATE '2026-01-01'", "year(day) is of type int32, and DATE '2026-01-01' is a date"),
    ],
)
def test_names_the_column_its_type_the_literal_and_what_to_write(where: str, reason: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        parse(where, SCHEMA)

    assert reason in str(raised.value)


@pytest.mark.parametrize(
    "where",
    [
        "day = '2026-01-01'",
        "day = '2026-01-01T10:00:00'",
        "day > TIMESTAMP '2026-01-01 00:00:00'",
        "at >= '2026-01-01'",
        "at >= DATE '2026-01-01'",
        "clock < '12:00:00'",
        "n = '5'",
        "n = 1.5",
        "n = 1 + 5 * 2",
        "n > 2026-01-31",
        "price > 3 - 0.5",
        "day > DATE '2026-01-01' + INTERVAL '1 day'",
        "day > to_date('2026-01-01')",
        "n = 99999999999",
        "price = '1.5'",
        "price > 3",
        "name = '5'",
        "name = DATE '2026-01-01'",
        "CAST(name AS INT) = 5",
        "day = arrow_cast(20454, 'Date32')",
        "CAST(day AS INT) = 20454",
        "name = NULL",
        "day = NULL",
        "day IN (NULL, '2026-01-01')",
        "day > now()",
        "on = true",
        "raw = 'text'",
        "raw = X'00'",
        "took > arrow_cast(60, 'Duration(Second)')",
        "year(day) = 2026",
        "length(name) = 5",
        "array_has(tags, 'a')",
    ],
)
def test_keeps_what_converts_to_what_is_meant(where: str) -> None:
    parse(where, SCHEMA)


def test_a_long_sum_of_numbers_is_taken() -> None:
    parse(f"n = {' + '.join(['1'] * 1_900)}", SCHEMA)


def test_a_long_list_names_the_value_that_does_not_fit() -> None:
    values = ", ".join([*map(str, range(5_000)), "'x'"])

    with pytest.raises(InvalidInputError, match="name is of type string, and 0 is a number"):
        parse(f"name IN ({values})", SCHEMA)


VERBS: dict[str, Callable[[lp.PartitionedTable, str], object]] = {
    "scan": lambda t, where: t.scan(where),
    "count": lambda t, where: t.count_rows(where),
    "search": lambda t, where: t.search([1.0, 2.0], where=where),
    "delete": lambda t, where: t.delete(where),
    "update": lambda t, where: t.update({"name": "'x'"}, where),
    "overwrite": lambda t, where: t.overwrite([{"day": date(2026, 1, 1), "name": "a"}], where=where),
    "rewrite": lambda t, where: t.maintenance.rewrite(where),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("where", ["day = 20260101", "day >= 2026-01-01", "name = 5", "day = 'soon'"])
def test_every_verb_refuses_it(tmp_path: Path, verb: str, where: str) -> None:
    schema = pa.schema([("day", pa.date32()), ("name", pa.string()), ("v", pa.list_(pa.float32(), 2))])
    table = lp.create_table(tmp_path / "t", schema, ["name"])
    table.append([{"day": date(2026, 1, 1), "name": "a", "v": [1.0, 0.0]}])
    before = table.version

    with pytest.raises(InvalidInputError, match="is of type"):
        VERBS[verb](table, where)

    assert lp.open_table(table.root).version == before


def test_parameters_and_expressions_are_refused_too(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("day", pa.date32())]))

    with pytest.raises(InvalidInputError, match="write day = DATE '2026-01-01'"):
        table.scan("day = $d", params={"d": 20260101})
    with pytest.raises(InvalidInputError, match="day is of type"):
        table.scan(pc.field("day") == 20260101)


@pytest.mark.parametrize(("column", "word"), [("day", "DATE"), ("at", "TIMESTAMP")])
def test_no_column_of_times_is_set_to_a_number(tmp_path: Path, column: str, word: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("at", pa.timestamp("us"))])
    table = lp.create_table_from(tmp_path / "t", pa.table({"id": [1]}), [], schema=schema)

    with pytest.raises(
        TableSchemaValidationError, match=f"{column!r} is of type .* int64; write it as in {word} '2026"
    ):
        table.update({column: "2026-01-31"})
    with pytest.raises(TableSchemaValidationError, match=f"{column!r} is of type"):
        table.merge([{"id": 1}], on=["id"]).when_matched_update({column: "2026-01-31"}).execute()
    table.update({column: f"{word} '2026-01-31'"})
    table.update({column: "NULL"})

    assert table.scan().to_list() == [{"id": 1, "day": None, "at": None}]
