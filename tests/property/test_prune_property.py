"""Pruning against DataFusion itself: never a matching row lost, and nothing kept that could be told apart."""

from __future__ import annotations

import math
import os
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import product
from tempfile import TemporaryDirectory
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from lancepart.model.parse import parse
from lancepart.model.predicate import is_portable
from lancepart.model.quoting import quote_literal
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.transforms import Bucket, Day, Hour, Identity, Month, MultiBucket, Transform, Truncate, Year
from lancepart.plan.prune import Pruner

LONG = bool(os.environ.get("LANCEPART_TORTURE"))
EXAMPLES = 3000 if LONG else 250

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("tz", pa.timestamp("us", "UTC")),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("b", pa.bool_()),
        ("n", pa.decimal128(10, 2)),
    ]
)
COLUMNS = dict(enumerate(SCHEMA))
NUMBER = {field.name: number for number, field in COLUMNS.items()}

NEGATIVE_NAN = math.copysign(math.nan, -1.0)
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 5.0, 1e300, math.inf, -math.inf, math.nan, NEGATIVE_NAN]
DATES = [date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), date(2024, 2, 29), date(2025, 12, 31), date(2026, 1, 1)]
TEXT = st.text(alphabet="abz%_'\\\0é😀\ud7ff\ue000\U0010ffff", max_size=4)
SMALL = st.integers(-30, 30)

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": SMALL | st.sampled_from([-(2**31), 2**31 - 1, 100]),
    "l": SMALL | st.sampled_from([-(2**63), 2**63 - 1, 2**53, 2**53 + 1]),
    "s": TEXT,
    "d": st.sampled_from(DATES) | st.dates(date(2023, 11, 1), date(2026, 2, 1)),
    "ts": st.datetimes(datetime(2025, 12, 28), datetime(2026, 1, 3)) | st.datetimes(datetime(1, 1, 1)),
    "tz": st.datetimes(datetime(2025, 12, 28), datetime(2026, 1, 3)) | st.datetimes(datetime(1, 1, 1)),
    "f": st.sampled_from(FLOATS),
    "g": st.sampled_from([value for value in FLOATS if value != 1e300]),
    "b": st.booleans(),
    "n": st.decimals(Decimal("-31"), Decimal("31"), places=2) | st.just(Decimal("99999999.99")),
}


def scalar(column: str, value: Any) -> Any:
    kind = SCHEMA.field(column).type
    if pa.types.is_timestamp(kind):
        micros = (value - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        return pa.scalar(micros, pa.int64()).cast(kind)
    return pa.scalar(value, kind)


def array(column: str, values: list[Any]) -> Any:
    kind = SCHEMA.field(column).type
    if pa.types.is_floating(kind):
        plain = np.array([0.0 if value is None else value for value in values], dtype=kind.to_pandas_dtype())
        return pa.array(plain, kind, mask=np.array([value is None for value in values], dtype=bool))
    return pa.array([None if value is None else scalar(column, value).as_py() for value in values], kind)


@st.composite
def tables(draw: Any) -> Any:
    size = draw(st.integers(1, 25))
    columns = [
        array(name, draw(st.lists(st.none() | VALUES[name], min_size=size, max_size=size))) for name in SCHEMA.names
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def literals(column: str) -> st.SearchStrategy[str]:
    native = VALUES[column].map(lambda value: quote_literal(scalar(column, value)))
    odd = {
        "i": st.sampled_from(["2.5", "-0.5", "7.0", "5000000000", "CAST('7' AS BIGINT)", "(3 + 4)"]),
        "l": st.sampled_from(["2.5", "9223372036854775808", "9007199254740993.0", "1e19"]),
        "n": st.sampled_from(["1.555", "3", "-2.5", "1e0"]),
        "d": st.sampled_from(["'2025-12-31'", "(DATE '2025-01-31' + INTERVAL '1 month')"]),
        "ts": st.sampled_from(["'2026-01-01'", "DATE '2025-12-30'", "'2025-12-31T23:59:59.999999'"]),
        "tz": st.sampled_from(["'2026-01-01T00:00:00Z'", "'2025-12-31T22:00:00-02:00'"]),
        "f": st.sampled_from(["1", "'NaN'", "0", "-0.0", "CAST('0.1' AS FLOAT)"]),
        "g": st.sampled_from(["0.1", "1", "0", "1e39", "-1e39", "CAST('-inf' AS FLOAT)"]),
        "s": st.sampled_from(["'a' || 'b'", "upper('z')"]),
        "b": st.sampled_from(["(1 = 1)"]),
    }
    return native | odd[column]


def like_patterns() -> st.SearchStrategy[str]:
    text = st.text(alphabet="abz%_é😀\U0010ffff", max_size=4)
    return (text | text.map(lambda t: t.replace("%", "\\%").replace("_", "\\_") + "%")).map(
        lambda t: t.replace("'", "")
    )


@st.composite
def atoms(draw: Any) -> str:
    column = draw(st.sampled_from(SCHEMA.names))
    some = literals(column)
    forms = ["compare", "compare", "mirrored", "in", "null", "between"]
    forms += {
        "s": ["like", "like", "starts"],
        "b": ["bare", "truth"],
        "ts": ["day"],
        "d": ["part"],
        "i": ["opaque"],
    }.get(column, [])
    negation = draw(st.sampled_from(["", "NOT "]))
    match draw(st.sampled_from(forms)):
        case "compare":
            return f"{column} {draw(st.sampled_from(OPERATORS))} {draw(some)}"
        case "mirrored":
            return f"{draw(some)} {draw(st.sampled_from(OPERATORS))} {column}"
        case "in":
            listed = draw(st.lists(some | st.just("NULL"), min_size=1, max_size=6))
            return f"{column} {negation}IN ({', '.join(listed)})"
        case "null":
            return f"{column} IS {negation}NULL"
        case "between":
            return f"{column} {negation}BETWEEN {draw(some)} AND {draw(some)}"
        case "like":
            return f"s {negation}LIKE '{draw(like_patterns())}'"
        case "starts":
            return f"starts_with(s, {quote_literal(pa.scalar(draw(TEXT)))})"
        case "truth":
            return f"b IS {negation}{draw(st.sampled_from(['TRUE', 'FALSE', 'UNKNOWN']))}"
        case "day":
            return f"CAST(ts AS DATE) {draw(st.sampled_from(OPERATORS))} {draw(literals('d'))}"
        case "part":
            return f"date_part('year', d) {draw(st.sampled_from(OPERATORS))} {draw(st.sampled_from([2025, 2024, 1]))}"
        case "opaque":
            return f"i % 3 {draw(st.sampled_from(OPERATORS))} 1"
    return column


OPERATORS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]


def predicates(base: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """SQL text, operators nested up to four deep."""

    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return (
            st.tuples(inner, inner).map(lambda pair: f"({pair[0]}) AND ({pair[1]})")
            | st.tuples(inner, inner).map(lambda pair: f"({pair[0]}) OR ({pair[1]})")
            | inner.map(lambda text: f"NOT ({text})")
            | st.tuples(inner, st.sampled_from(["TRUE", "NOT TRUE", "NOT FALSE", "UNKNOWN"])).map(
                lambda pair: f"({pair[0]}) IS {pair[1]}"
            )
        )

    return st.recursive(base, extend, max_leaves=6)


def part(transform: Transform, *names: str) -> PartitionField:
    types = [SCHEMA.field(name).type for name in names]
    name = f"{'_'.join(names)}_{transform.name}"
    ids = tuple(NUMBER[column] for column in names)
    return PartitionField(field_id=name, source_ids=ids, transform=transform, result_type=transform.result_type(types))


def expression(field_id: str, sql: str, result_type: Any, *names: str) -> PartitionField:
    ids = tuple(NUMBER[column] for column in names)
    return PartitionField(field_id=field_id, source_ids=ids, expression=sql, result_type=result_type)


TIMES = [part(kind(), column) for kind in (Year, Month, Day) for column in ("d", "ts", "tz")]
FIELDS = [
    *(part(Identity(), name) for name in SCHEMA.names),
    *TIMES,
    *(part(Hour(), column) for column in ("ts", "tz")),
    *(part(Bucket(num_buckets=7), name) for name in SCHEMA.names),
    *(part(Truncate(width=10), name) for name in ("i", "l", "n")),
    *(part(Truncate(width=width), "s") for width in (1, 3)),
    part(MultiBucket(num_buckets=5), "i", "s"),
    part(MultiBucket(num_buckets=5), "b", "d"),
    expression("e1", "col0 % 7", pa.int64(), "i"),
    expression("e2", "upper(col0)", pa.string(), "s"),
    expression("e3", "coalesce(col0, 0) + coalesce(col1, 1)", pa.float64(), "f", "i"),
]


def specs(fields: list[PartitionField]) -> st.SearchStrategy[PartitionSpec]:
    chosen = st.lists(st.sampled_from(fields), min_size=1, max_size=3, unique_by=lambda field: field.field_id)
    return chosen.map(lambda some: PartitionSpec(id=1, fields=tuple(some)))


def partition_values(spec: PartitionSpec, rows: Any) -> Any:
    columns = [field.apply([rows.column(at).combine_chunks() for at in field.source_ids]) for field in spec.fields]
    return pa.table(columns, names=[f"partition_field_{field.field_id}" for field in spec.fields])


def numbered(rows: Any) -> Any:
    return rows.append_column("row", pa.array(range(rows.num_rows)))


CONTEXT = SessionContext()


def matching(rows: Any, where: str) -> set[int]:
    CONTEXT.register_record_batches("t", [numbered(rows).to_batches()])
    try:
        return set(CONTEXT.sql(f"SELECT row FROM t WHERE {where}").to_arrow_table().column("row").to_pylist())
    finally:
        CONTEXT.deregister_table("t")


def oracle(rows: Any, where: str) -> set[int]:
    """What DataFusion finds; filters that it cannot evaluate itself (overflows in its own coercions) do not count."""
    try:
        return matching(rows, where)
    except Exception:
        reject()


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(spec=specs(FIELDS), rows=tables(), where=predicates(atoms()))
def test_pruning_never_loses_a_matching_row(spec: PartitionSpec, rows: Any, where: str) -> None:
    expected = oracle(rows, where)
    predicate = parse(where, SCHEMA)
    pruner = Pruner.of(predicate, spec, COLUMNS)
    values = partition_values(spec, rows)

    kept = set(np.flatnonzero(pruner.keep(values).to_numpy(zero_copy_only=False)).tolist())
    pushed = pruner.manifest_filter()

    assert expected <= kept
    assert pushed is None or expected <= matching(values, pushed)
    assert not (pruner.matches_nothing and (expected or kept))
    assert expected == matching(rows, predicate.to_sql())


@settings(max_examples=EXAMPLES // 8)
@given(spec=specs(FIELDS), rows=tables(), where=predicates(atoms()))
def test_lance_finds_nothing_in_the_leaves_that_were_dropped(spec: PartitionSpec, rows: Any, where: str) -> None:
    oracle(rows, where)
    predicate = parse(where, SCHEMA)
    assume(is_portable(predicate))
    values = partition_values(spec, rows)
    pruner = Pruner.of(predicate, spec, COLUMNS)

    with TemporaryDirectory() as directory:
        leaf = lance.write_dataset(numbered(rows), f"{directory}/leaf.lance")
        manifest = lance.write_dataset(numbered(values), f"{directory}/manifest.lance")
        found = set(leaf.to_table(columns=["row"], filter=predicate.to_sql()).column("row").to_pylist())
        pushed = manifest.to_table(columns=["row"], filter=pruner.manifest_filter()).column("row").to_pylist()

    assert found <= set(np.flatnonzero(pruner.keep(values).to_numpy(zero_copy_only=False)).tolist())
    assert found <= set(pushed)


TINY = pa.schema([("u", pa.int8()), ("b", pa.bool_()), ("c", pa.bool_())])
TINY_COLUMNS = dict(enumerate(TINY))
FIRST, LAST = date(2023, 1, 1), date(2026, 12, 31)
DAYS = pa.schema([("d", pa.date32()), ("b", pa.bool_())])
HOURS = pa.schema([("ts", pa.timestamp("s", "UTC"))])


def every_row(schema: Any, *columns: list[Any]) -> Any:
    """Each combination of the columns' values: all the rows that there can be."""
    rows = [dict(zip(schema.names, row, strict=True)) for row in product(*columns)]
    return pa.Table.from_pylist(rows, schema=schema)


def every_day(first: date, last: date) -> list[date]:
    return [first + timedelta(days=days) for days in range((last - first).days + 1)]


TINY_ROWS = every_row(TINY, [None, *range(-128, 128)], [None, True, False], [None, True, False])
DAY_ROWS = every_row(DAYS, [None, *every_day(FIRST, LAST)], [None, True, False])
HOUR_ROWS = every_row(HOURS, [None, *range(1_766_707_200, 1_767_744_000, 300)])


def field_of(schema: Any, transform: Transform, *sources: int) -> PartitionField:
    name = f"{transform.name}_{'_'.join(map(str, sources))}"
    result = transform.result_type([schema.field(at).type for at in sources])
    return PartitionField(field_id=name, source_ids=sources, transform=transform, result_type=result)


TINY_FIELDS = [
    *(field_of(TINY, Identity(), at) for at in range(3)),
    *(field_of(TINY, Bucket(num_buckets=40), at) for at in range(3)),
    field_of(TINY, Truncate(width=16), 0),
    field_of(TINY, MultiBucket(num_buckets=60), 0, 1),
    field_of(TINY, MultiBucket(num_buckets=5), 1, 2),
]
DAY_FIELDS = [
    *(field_of(DAYS, kind(), 0) for kind in (Identity, Month, Day)),
    field_of(DAYS, Bucket(num_buckets=50), 0),
    field_of(DAYS, Identity(), 1),
]
HOUR_FIELDS = [field_of(HOURS, kind(), 0) for kind in (Identity, Month, Day, Hour)]
BOOL_ATOM = st.sampled_from(["b", "NOT b", "b IS NULL", "b IS NOT TRUE", "b = false", "b IS NOT NULL"])


def checks_of(column: str, some: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    listed = st.lists(some, min_size=1, max_size=5).map(", ".join)
    return (
        st.tuples(st.sampled_from(OPERATORS), some).map(lambda pair: f"{column} {pair[0]} {pair[1]}")
        | st.tuples(st.sampled_from(["", "NOT "]), listed).map(lambda pair: f"{column} {pair[0]}IN ({pair[1]})")
        | st.tuples(some, some).map(lambda pair: f"{column} BETWEEN {pair[0]} AND {pair[1]}")
        | st.just(f"{column} IS NULL")
    )


def assert_exactly_the_leaves_that_can_match(spec: PartitionSpec, rows: Any, where: str) -> None:
    """Over all rows that there can be, the leaves kept are those with a match, and the others are dropped."""
    columns = dict(enumerate(rows.schema))
    values = partition_values(spec, rows)
    matched = values.take(pa.array(sorted(matching(rows, where)), pa.int64()))
    leaves = values.group_by(values.column_names).aggregate([])

    kept = leaves.filter(Pruner.of(parse(where, rows.schema), spec, columns).keep(leaves))

    assert set(map(tuple_of, kept.to_pylist())) == set(map(tuple_of, matched.to_pylist()))


def tuple_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.values())


@settings(max_examples=EXAMPLES // 3)
@given(
    spec=specs(TINY_FIELDS),
    where=predicates(
        checks_of("u", st.integers(-128, 127).map(str)) | BOOL_ATOM | BOOL_ATOM.map(lambda t: t.replace("b", "c"))
    ),
)
def test_identity_and_buckets_keep_only_leaves_that_can_match(spec: PartitionSpec, where: str) -> None:
    assert_exactly_the_leaves_that_can_match(spec, TINY_ROWS, where)


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 3)
@given(
    spec=specs(DAY_FIELDS),
    where=predicates(
        checks_of("d", st.dates(FIRST, LAST).map(lambda day: f"DATE '{day}'"))
        | checks_of("d", st.sampled_from(["DATE '2025-12-31'", "DATE '2024-02-29'", "DATE '2026-01-01'"]))
        | BOOL_ATOM
    ),
)
def test_dates_keep_only_leaves_that_can_match(spec: PartitionSpec, where: str) -> None:
    year = field_of(DAYS, Year(), 0)
    within = PartitionSpec(id=1, fields=(year, *spec.fields))
    assert_exactly_the_leaves_that_can_match(within, DAY_ROWS, where)


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 3)
@given(
    spec=specs(HOUR_FIELDS),
    where=predicates(
        checks_of("ts", st.integers(0, 1727).map(lambda step: f"to_timestamp_seconds({1_766_707_200 + 600 * step})"))
    ),
)
def test_timestamps_keep_only_leaves_that_can_match(spec: PartitionSpec, where: str) -> None:
    first, last = 1_766_707_200, 1_767_744_000 - 300
    window = f"(ts IS NULL OR ts BETWEEN to_timestamp_seconds({first}) AND to_timestamp_seconds({last}))"
    assert_exactly_the_leaves_that_can_match(spec, HOUR_ROWS, f"{window} AND ({where})")
