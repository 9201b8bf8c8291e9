from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from datafusion import SessionContext

from lancepart.errors import InvalidInputError
from lancepart.model.filtering import matching_rows
from lancepart.model.parse import parse
from lancepart.model.predicate import And, Comparison, Constant, In, Not, Opaque, Or, StartsWith, is_portable
from lancepart.model.quoting import quote_identifier, quote_literal

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("tz", pa.timestamp("us", "UTC")),
        ("f", pa.float64()),
        ("b", pa.bool_()),
        ("n", pa.decimal128(10, 2)),
        ("Odd Näme", pa.int32()),
        ("st", pa.struct([("x", pa.int32())])),
    ]
)


def sql(where: str) -> str:
    return parse(where, SCHEMA).to_sql()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("i = 5", "(`i` = 5)"),
        ("5 < i", "(`i` > 5)"),
        ("I = 5", "(`i` = 5)"),
        ("i = '5'", "(`i` = 5)"),
        ("i BETWEEN 1 AND 5", "((`i` >= 1) AND (`i` <= 5))"),
        ("i NOT BETWEEN 1 AND 5", "((`i` < 1) OR (`i` > 5))"),
        ("NOT (i < 5)", "(`i` >= 5)"),
        ("i > 3.7", "(arrow_cast(`i`, 'Float64') > 3.7)"),
        ("CAST(i AS BIGINT) >= 5", "(`i` >= 5)"),
        ("i IN (1, 2, 3, 4, 5)", "(`i` IN (1, 2, 3, 4, 5))"),
        ("i NOT IN (1, 2, 3, 4, 5)", "(`i` NOT IN (1, 2, 3, 4, 5))"),
        ("i IS NULL", "(`i` IS NULL)"),
        ("d = '2025-12-10'", "(`d` = DATE '2025-12-10')"),
        ("d >= DATE '2025-01-31' + INTERVAL '1 month'", "(`d` >= DATE '2025-02-28')"),
        ("d < CAST('2025-12-10' AS DATE)", "(`d` < DATE '2025-12-10')"),
        ("tz = '1970-01-01T02:00:00+02:00'", "(`tz` = arrow_cast(0, 'Timestamp(Microsecond, Some(\"UTC\"))'))"),
        ("n = 1.5", "(`n` = arrow_cast('1.50', 'Decimal128(10, 2)'))"),
        ("b", "`b`"),
        ("b <> true", "(NOT `b`)"),
        ("b IS UNKNOWN", "(`b` IS NULL)"),
        ("s LIKE 'ab'", "(`s` = 'ab')"),
        ("s LIKE 'ab%'", "starts_with(`s`, 'ab')"),
        ("s LIKE 'a\\_b%'", "starts_with(`s`, 'a_b')"),
        ("s LIKE 'a!%%' ESCAPE '!'", "starts_with(`s`, 'a%')"),
        ("s LIKE 'a_b%'", "(starts_with(`s`, 'a') AND (`s` LIKE 'a_b%'))"),
        ("s NOT LIKE 'ab%'", "(NOT starts_with(`s`, 'ab'))"),
        ("starts_with(s, 'x')", "starts_with(`s`, 'x')"),
        ('"Odd Näme" = 1', "(`Odd Näme` = 1)"),
        ("`Odd Näme` = 1", "(`Odd Näme` = 1)"),
        ("1 = 1", "true"),
        ("1 = 2 AND i = 3", "false"),
        ("i = NULL", "false"),
        ("coalesce(i, 0) = 0", "(coalesce(arrow_cast(`i`, 'Int64'), 0) = 0)"),
    ],
)
def test_a_filter_is_read_with_its_literals_in_the_types_they_are_compared_in(where: str, expected: str) -> None:
    assert sql(where) == expected


def test_the_tree_has_a_node_for_each_kind_of_test() -> None:
    predicate = parse("i = 1 AND (s LIKE 'a%' OR NOT b) AND l IN (1, 2, 3, 4)", SCHEMA)

    assert isinstance(predicate, And)
    compared, either, listed = predicate.operands
    assert isinstance(compared, Comparison)
    assert isinstance(listed, In)
    assert isinstance(either, Or)
    assert isinstance(either.operands[0], StartsWith)
    assert isinstance(either.operands[1], Not)
    assert predicate.columns() == {"i", "s", "b", "l"}


def test_what_is_not_understood_is_kept_with_its_columns() -> None:
    predicate = parse("upper(s) = 'X{0}' OR i + l > 3", SCHEMA)

    assert isinstance(predicate, Or)
    assert all(isinstance(operand, Opaque) for operand in predicate.operands)
    assert predicate.columns() == {"s", "i", "l"}
    assert "'X{0}'" in predicate.to_sql()


def test_columns_can_be_called_by_their_older_names() -> None:
    predicate = parse("i = 1 AND upper(s) = 'A' AND starts_with(s, 'b')", SCHEMA)

    renamed = predicate.to_sql({"i": "old i", "s": "old s"})

    assert "`old i` = 1" in renamed
    assert "`upper`(`old s`)" in renamed
    assert "starts_with(`old s`, 'b')" in renamed


def test_a_deep_chain_of_ors_is_read() -> None:
    where = " OR ".join(f"(i = {number} AND l = {number})" for number in range(300))

    predicate = parse(where, SCHEMA)

    assert isinstance(predicate, Or)
    assert len(predicate.operands) == 300


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("i = = 3", "where an expression is expected"),
        ("", "it is empty"),
        ("i = 3 ORDER BY i", "where end of expression is expected"),
        ("1 = 1) OR (1 = 1", "where end of expression is expected"),
        ("nosuch = 1", "there is no column 'nosuch'"),
        ("i = 'x'", "the text 'x' is no whole number"),
        ("i", "i is Int32 and no condition: compare it with a value"),
        ("EXISTS (SELECT 1)", "subqueries"),
        ("i IN (SELECT 1)", "subqueries"),
        ("sum(i) > 3", "one row at a time, without aggregates and windows: for whole queries there is lp.sql"),
        ("row_number() OVER () > 3", "without aggregates and windows"),
        ("abs(s) = 1", "abs takes numbers, not String: CAST it"),
        ("upper(s, s) = 'X'", "upper takes 1 arguments, not 2"),
        ("nosuch(i) = 1", "nosuch"),
    ],
)
def test_a_bad_filter_is_refused_by_name_and_reason(where: str, reason: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse(where, SCHEMA)

    assert repr(where) in str(caught.value)
    assert reason in str(caught.value)
    assert "filtered_rows" not in str(caught.value)


@pytest.mark.parametrize(
    ("where", "portable"),
    [("i = 1 AND upper(s) = 'A'", True), ("CASE WHEN i = 1 THEN l ELSE 7 END = 7", False), ("i & 1 = 1", False)],
)
def test_a_filter_knows_whether_lance_can_read_it(where: str, portable: bool) -> None:
    assert is_portable(parse(where, SCHEMA)) is portable


def test_a_constant_null_is_no_match() -> None:
    assert parse("NULL", SCHEMA) == Constant(value=False)


LITERALS = [
    pa.scalar(True),
    pa.scalar(-128, pa.int8()),
    pa.scalar(2**31 - 1, pa.int32()),
    pa.scalar(-(2**63)),
    pa.scalar(2**63 - 1),
    pa.scalar(2**64 - 1, pa.uint64()),
    pa.scalar(0.1, pa.float32()),
    pa.scalar(0.1),
    pa.scalar(1e22),
    pa.scalar(5e-324),
    pa.scalar(-1.7976931348623157e308),
    pa.scalar(math.inf),
    pa.scalar(-math.inf, pa.float32()),
    pa.scalar(math.nan),
    pa.scalar(Decimal("-1.50"), pa.decimal128(10, 2)),
    pa.scalar(Decimal(10) ** 35, pa.decimal128(38, 2)),
    pa.scalar(date(2025, 12, 10)),
    pa.scalar(date(1, 1, 1)),
    pa.scalar(date(9999, 12, 31)),
    pa.scalar(-(2**31), pa.int32()).cast(pa.date32()),
    pa.scalar(datetime(9999, 12, 31), pa.timestamp("s")),
    pa.scalar(-1, pa.timestamp("ms")),
    pa.scalar(-1, pa.timestamp("us", "UTC")),
    pa.scalar(-1, pa.timestamp("us", "America/New_York")),
    pa.scalar(2**62 + 1, pa.timestamp("ns")),
    pa.scalar(1, pa.time64("us")),
    pa.scalar(1, pa.time32("s")),
    pa.scalar(1, pa.duration("us")),
    pa.scalar("it's"),
    pa.scalar(""),
    pa.scalar('\\%_\n"`😀\0\U0010ffff'),
    pa.scalar("x", pa.large_string()),
    pa.scalar(b"\x00\xff'"),
    pa.scalar(b""),
    pa.scalar(b"ab", pa.binary(2)),
]


@pytest.mark.parametrize("literal", LITERALS, ids=quote_literal)
def test_every_literal_finds_its_own_row_in_lance_and_in_datafusion(literal: Any, tmp_path: Path) -> None:
    rows = pa.table({"v": pa.chunked_array([pa.repeat(literal, 1), pa.nulls(1, literal.type)])})
    dataset = lance.write_dataset(rows, str(tmp_path / "t.lance"))
    context = SessionContext()
    context.from_arrow(rows, "t")
    where = f"{quote_identifier('v')} = {quote_literal(literal)}"

    assert dataset.count_rows(filter=where) == 1
    assert context.sql(f"SELECT * FROM t WHERE {where}").count() == 1


@pytest.mark.parametrize("name", ["v", "Upper", "two words", "it's", 'dou"ble', "😀", "select", "date", "a-b", "x{0}"])
def test_every_name_that_lance_stores_can_be_quoted(name: str, tmp_path: Path) -> None:
    rows = pa.table({name: [1, 2, None]})
    dataset = lance.write_dataset(rows, str(tmp_path / "t.lance"))
    double_quoted = '"' + name.replace('"', '""') + '"'
    predicate = parse(f"{double_quoted} = 1 OR {double_quoted} % 7 = 5", rows.schema)

    assert dataset.count_rows(filter=predicate.to_sql()) == 1


FILTERS = [
    "d = '2025-12-10'",
    "i > 0.5 AND i < 2.5",
    "i IN (1, 2, NULL)",
    "i NOT IN (1, 2, 3, 4, 5)",
    "i IS DISTINCT FROM 1",
    "i IS NOT DISTINCT FROM NULL",
    "n = 1.5 OR n = 1.555",
    "ts >= '2025-12-10T10:00:00' AND tz < '2026-01-01'",
    "ts < DATE '2026-01-01' - INTERVAL '1 day'",
    "CAST(ts AS DATE) = '2025-12-10'",
    "(i = 1) IS NOT TRUE",
    "(i = 1 AND b) IS UNKNOWN",
    "NOT (b OR i = 2)",
    "s LIKE 'a%' AND s NOT LIKE 'ab%'",
    "s LIKE '%'",
    "s LIKE 'a_c%'",
    "substr(s, 1, 1) = 'a' AND character_length(trim(s)) > 1",
    "coalesce(i, l, 0) = 0",
    "try_cast(s AS INT) IS NULL",
    "f > 1 OR f < -1",
    "i = 1 OR NULL",
    "i = l",
    "date_trunc('day', ts) = '2025-12-10'",
    "extract(month FROM d) = 12",
    "s ILIKE 'A%'",
    "concat(s, '{x}') = 'abc{x}'",
    "l = 9223372036854775808 OR i = 5000000000",
]


@pytest.mark.parametrize("where", FILTERS)
def test_the_sql_of_a_filter_means_the_same_to_lance(where: str, tmp_path: Path) -> None:
    row = {
        "i": 1,
        "l": 1,
        "s": "abc",
        "d": date(2025, 12, 10),
        "ts": datetime(2025, 12, 10, 11),
        "tz": datetime(2025, 12, 10, 11),
        "f": 1.5,
        "b": True,
        "n": Decimal("1.50"),
        "Odd Näme": 1,
        "st": {"x": 1},
    }
    changed = {"i": 2, "s": "a", "d": date(2024, 2, 29), "ts": datetime(1969, 12, 31, 23), "f": math.nan, "b": False}
    some = [row, {**row, **changed}, {**row, "s": "axc", "f": -2.0, "i": None}, dict.fromkeys(row)]
    rows = pa.Table.from_pylist(some, schema=SCHEMA).append_column("k", pa.array(range(4)))
    dataset = lance.write_dataset(rows, str(tmp_path / "t.lance"))
    context = SessionContext()
    context.from_arrow(rows, "t")
    predicate = parse(where, SCHEMA)

    found = dataset.to_table(columns=["k"], filter=predicate.to_sql()).column("k").to_pylist()

    assert is_portable(predicate)
    assert found == context.sql(f"SELECT k FROM t WHERE {where} ORDER BY k").to_arrow_table().column("k").to_pylist()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("n NOT IN (NULL, 1) OR n NOT IN (1, 3)", [2, 4]),
        ("NOT (n IN (NULL, 1)) OR NOT (n IN (1, 3)) OR n = 9", [2, 4]),
        ("(n NOT IN (1, NULL) OR n NOT IN (1, 3)) AND n < 4", [2]),
        ("n IN (NULL, 1) OR n IN (3)", [1, 3]),
        ("n NOT IN (NULL, 1)", []),
        ("NOT (n IN (NULL))", []),
        ("NOT (NOT (NOT (n IN (NULL))))", []),
        ("NOT (n IN (NULL, 9) AND n > 2)", [1, 2]),
        ("NOT (n = NULL AND (" + " OR ".join(f"n <> {k}" for k in range(10, 200)) + "))", []),
        ("NOT (n = NULL OR NOT (" + " AND ".join(f"n < {k}" for k in range(3, 200)) + "))", []),
        ("NOT (n IS NULL AND n = NULL) AND NOT (" + " OR ".join(f"n = {k}" for k in range(3, 200)) + ")", [1, 2]),
    ],
)
def test_a_null_in_a_list_is_not_lost_where_lists_are_merged(where: str, expected: list[int]) -> None:
    rows = pa.RecordBatch.from_pydict({"n": [1, 2, 3, 4, None]})
    assert matching_rows(rows, parse(where, rows.schema)).column("n").to_pylist() == expected
