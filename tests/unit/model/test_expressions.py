from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import mmh3
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancepart.errors import InvalidInputError, UnsupportedOperationError
from lancepart.model.allowed import ALLOWED, KINDS
from lancepart.model.expression_plans import stable_functions
from lancepart.model.expressions import Expression, referenced_columns
from tests.support.pages import DOCS

UTC = pa.timestamp("us", "UTC")


def evaluated(sql: str, result_type: Any, *columns: Any) -> list[Any]:
    expression = Expression(sql, len(columns))
    expression.check_new([column.type for column in columns], result_type)
    return expression.apply(columns, result_type).to_pylist()


@pytest.mark.parametrize(
    "sql",
    [
        *("now()", "current_date", "current_timestamp", "CURRENT_TIME", "today()", "random()", "uuid()", "version()"),
        *("date_part('year', now())", '"now"()', "CASE WHEN col0 = 1 THEN 1 ELSE random() END", "murmur3(now())"),
        *("(SELECT 1)", "EXISTS (SELECT 1)", "col0 IN (SELECT 1)", "sum(col0)", "row_number() OVER ()"),
        *("CASE WHEN col0 = 1 THEN 1 ELSE sum(col0) END", "unnest([1, 2])", "col0 AS x", "col0, col0", "*", ""),
        *("col1", "t.col0", "id", "unknown(col0)", "$1 + col0", "@@x", "col0; col0", "col0 -- why", "col0 /* why */"),
        *("'unclosed", "(col0"),
    ],
)
def test_what_is_not_a_pure_function_of_its_columns_is_refused(sql: str) -> None:
    with pytest.raises(InvalidInputError):
        Expression(sql, 1)


def test_words_inside_quotes_are_only_text() -> None:
    assert evaluated("concat(col0, ' now() ', 'it''s random')", pa.string(), pa.array(["a"])) == ["a now() it's random"]


def test_a_refusal_names_the_expression_and_the_reason() -> None:
    with pytest.raises(InvalidInputError, match=r"'col2 \+ 1' is not SQL over col0 to col1"):
        Expression("col2 + 1", 2)
    with pytest.raises(InvalidInputError, match="at least one source column"):
        Expression("1", 0)
    with pytest.raises(InvalidInputError, match="takes 1 columns, not 2"):
        Expression("col0", 1).apply([pa.array([1])] * 2, pa.int64())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), min_size=1))
def test_narrow_and_wide_columns_give_the_same(values: list[int | None]) -> None:
    for sql in ("col0 % 10", "col0 * col0 % 7", "abs(murmur3(col0)) % 16", "abs(col0) % 5"):
        expression = Expression(sql, 1)
        narrow = expression.apply([pa.array(values, pa.int32())], pa.int32())
        assert narrow == expression.apply([pa.array(values, pa.int64())], pa.int32())


@pytest.mark.parametrize(
    ("sql", "source", "result"),
    [
        ("arrow_typeof(col0)", pa.int32(), pa.string()),
        ("arrow_typeof(col0)", pa.decimal128(5, 2), pa.string()),
        ("CAST(col0 AS TEXT)", pa.float32(), pa.string()),
    ],
)
def test_what_depends_on_the_width_is_refused(sql: str, source: Any, result: Any) -> None:
    with pytest.raises(InvalidInputError, match="once its columns are widened"):
        Expression(sql, 1).check_new([source], result)


@pytest.mark.parametrize(
    ("sql", "source", "result"),
    [("left(col0, 2)", pa.string(), pa.int32()), ("col0 > 1", pa.int8(), pa.int32()), ("col0", pa.date32(), UTC)],
)
def test_the_declared_type_must_be_what_comes_out(sql: str, source: Any, result: Any) -> None:
    with pytest.raises(InvalidInputError, match="which is not the declared"):
        Expression(sql, 1).check([source], result)


def test_sources_that_do_not_fit_are_named() -> None:
    with pytest.raises(InvalidInputError, match=r"'upper\(col0\) \|\| 1' cannot be evaluated over \(struct<a: int8>\)"):
        Expression("upper(col0) || 1", 1).check([pa.struct([("a", pa.int8())])], pa.string())


def test_a_value_that_does_not_fit_the_type_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="'col0' cannot be evaluated"):
        Expression("col0", 1).apply([pa.array([2**40])], pa.int32())


def test_null_in_gives_null_out_unless_the_expression_says_otherwise() -> None:
    numbers = pa.array([7, None], pa.int32())
    assert evaluated("col0 % 4", pa.int32(), numbers) == [3, None]
    assert evaluated("coalesce(col0, -1)", pa.int32(), numbers) == [7, -1]
    assert evaluated("col0 IS NULL", pa.bool_(), numbers) == [False, True]


@pytest.mark.parametrize(
    ("sql", "kind", "expected"),
    [
        ("date_part('hour', col0)", pa.int32(), None),
        ("left(col0, 2)", pa.string(), None),
        ("coalesce(col0, 4)", pa.int32(), 4),
        ("abs(murmur3(col0)) % 16", pa.int32(), None),
    ],
)
def test_a_removed_column_reads_as_null_of_a_type_that_fits(sql: str, kind: Any, expected: Any) -> None:
    assert Expression(sql, 1).apply([pa.nulls(2)], kind).to_pylist() == [expected] * 2


def test_one_of_several_columns_may_be_removed() -> None:
    mixed = Expression("coalesce(date_part('year', col0), 0) + coalesce(length(col1), 0)", 2)
    moments = pa.array([datetime(2024, 1, 1)], pa.timestamp("us"))

    assert mixed.apply([moments, pa.nulls(1)], pa.int64()).to_pylist() == [2024]
    assert mixed.apply([pa.nulls(1), pa.nulls(1)], pa.int64()).to_pylist() == [0]


def test_times_are_in_utc() -> None:
    column = pa.array([0, None], pa.timestamp("us", "Europe/Berlin"))
    assert evaluated("date_part('hour', col0)", pa.int32(), column) == [0, None]


def test_hashes_take_any_types_and_any_number_of_columns() -> None:
    numbers, texts = pa.array([34, None], pa.int32()), pa.array(["iceberg", None]).dictionary_encode()
    assert evaluated("murmur3(col0)", pa.int32(), numbers) == [2017239379, None]
    assert evaluated("murmur3(col1)", pa.int32(), numbers, texts) == [1210000089, None]
    assert evaluated("murmur3_multi(col1, upper(col1))", pa.int32(), numbers, texts) == [
        mmh3.hash("icebergICEBERG"),
        None,
    ]
    assert evaluated("abs(murmur3(col0)) % 7", pa.int32(), pa.array([6018035362574630912])) == [2**31 % 7]
    with pytest.raises(InvalidInputError, match="murmur3 takes exactly one argument"):
        Expression("murmur3(col0, col0)", 1).check([pa.int64()], pa.int32())


def test_order_is_kept_over_many_rows_and_threads() -> None:
    column = pa.array(range(300_000))
    expression = Expression("col0 + murmur3(col0) - murmur3(col0)", 1)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: expression.apply([column], pa.int64()), range(4)))

    assert all(result == column for result in results)


def test_no_rows_give_no_values() -> None:
    assert Expression("col0", 1).apply([pa.array([], pa.int32())], pa.int64()) == pa.array([], pa.int64())


def test_columns_are_told_from_words_that_look_like_them() -> None:
    assert referenced_columns("extract(year FROM ts)", ["ts", "year"]) == {"ts"}
    assert referenced_columns('"a b" + `c`', ["a b", "c", "d"]) == {"a b", "c"}
    assert referenced_columns("nope + 1", ["a"]) is None


UNBOUNDED = [
    *("repeat('x', 1000000000)", "lpad(col0, 1000000000)", "rpad('x', 1000000000)", "replace(col0, '', col0)"),
    *("array_repeat('x', 1000000000)[1]", "generate_series(1, 1000000000)[1]", "encode(col0, 'hex')"),
    *("col0 ~ '((a{100}){100}){100}'", "col0 !~* 'a'", "regexp_like(col0, 'a')", "regexp_replace(col0, 'a', 'b')"),
    *("levenshtein(col0, col0)", "arrow_cast(col0, 'FixedSizeBinary(2000000000)')", '"repeat"(col0, 2)'),
    *("col0" + " || col0" * 5_000, "'" + "x" * 20_000 + "'", "(" * 300 + "col0" + ")" * 300),
]


@pytest.mark.parametrize("sql", UNBOUNDED, ids=lambda sql: sql[:20])
def test_what_is_not_bounded_is_made_and_never_evaluated(sql: str) -> None:
    expression = Expression(sql, 1)
    expression.check([pa.string()], pa.string())
    assert expression.unlisted is not None

    with pytest.raises(UnsupportedOperationError, match="does not evaluate") as caught:
        expression.apply([pa.array(["a"])], pa.string())
    assert expression.unlisted in str(caught.value)
    assert len(str(caught.value)) < 700
    with pytest.raises(InvalidInputError, match=r"docs/partitioned-table\.md"):
        expression.check_new([pa.string()], pa.string())


@pytest.mark.parametrize(
    "around",
    [
        *("upper({})", "CAST({} AS INT)", "try_cast({} AS INT)", "CASE {} WHEN 'a' THEN 1 END", "{} || 'a'"),
        *("CASE WHEN {} = 'a' THEN 1 END", "CASE WHEN col0 = 'a' THEN {} ELSE 'b' END", "{} LIKE 'a'", "{} IS NULL"),
        *("CASE WHEN col0 = 'a' THEN 'b' ELSE {} END", "col0 BETWEEN 'a' AND {}", "{} IN ('a')", "col0 IN ('a', {})"),
        *("col0 LIKE {}", "NOT ({} = 'a')", "({} = 'a') IS NOT UNKNOWN", "-length({})", "{}::int", "murmur3({})"),
        *("extract(year FROM {})", "position({} IN col0)", "trim({} FROM col0)", "overlay(col0 PLACING {} FROM 1)"),
    ],
)
def test_it_is_found_wherever_it_hides(around: str) -> None:
    assert Expression(around.format("repeat('x', 1000000000)"), 1).unlisted == "the function repeat"


def test_every_listed_function_is_one_of_datafusions() -> None:
    assert stable_functions() >= ALLOWED


def test_the_page_lists_the_functions() -> None:
    page = (DOCS / "partitioned-table.md").read_text()
    section = page.split("## Functions of partition expressions")[1].split("\n## ")[0]

    assert {name for names in KINDS.values() for name in names} <= set(re.findall(r"`(\w+)`", section))


@pytest.mark.parametrize(
    ("sql", "listed"),
    [
        ("lpad(to_hex(col0), 8, '0')", True),
        ("rpad(col0, 100)", True),
        ("rpad(col0, 101)", False),
        ("lpad(col0, col0, 'x')", False),
        ("lpad(col0, 50 + 60, 'x')", False),
        ("lpad(col0, CAST('1000000000' AS BIGINT))", False),
    ],
)
def test_padding_is_evaluated_to_a_small_width_that_is_written_out(sql: str, listed: bool) -> None:
    assert (Expression(sql, 1).unlisted is None) == listed
