from __future__ import annotations

import dataclasses
import decimal
import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, TableColumnNotFoundError
from lancepart.model.parse import parse
from lancepart.model.transforms import Bucket, Day, Hour, Month, MultiBucket, Truncate, Year
from lancepart.read import leaf as reading

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us", "America/New_York")),
        ("name", pa.string()),
        ("n", pa.int32()),
        ("price", pa.decimal128(10, 2)),
    ]
)
FAR = pa.array([-(2**24), -719_529, -1, 0, 20_000, None], pa.int32()).cast(pa.date32())
"""Days in the year -43964, the last day of the year -1, in 1969, 1970 and 2024."""
SPECS = {
    "days": ["year(ts)", "month(ts)", "day(ts)"],
    "hour": ["hour(ts)", "month(day)"],
    "hashes": ["bucket(4, id)", "multi_bucket(3, name, n)"],
    "cuts": ["truncate(2, name)", "truncate(10, n)", "truncate(1, price)"],
    "years": ["year(day)"],
    "other": ["name"],
}


def rows() -> pa.Table:
    start = datetime(1969, 12, 30, 22, 30)
    moments = [None if n == 9 else start + timedelta(hours=7 * n + 2500 * (n % 3)) for n in range(24)]
    names = ["", "a", "ab", "abc", "abd", "b", "héllo", None]
    return pa.table(
        {
            "id": pa.array([None if n == 7 else n * 37 for n in range(24)], pa.int64()),
            "day": pa.concat_arrays([FAR] * 4),
            "ts": pa.array(
                [None if n == 9 else moment for n, moment in enumerate(moments)], pa.timestamp("us", "UTC")
            ).cast(SCHEMA.field("ts").type),
            "name": [names[n % 8] for n in range(24)],
            "n": pa.array([None if n == 3 else n - 12 for n in range(24)], pa.int32()),
            "price": [None if n == 5 else Decimal(n - 12) / 4 for n in range(24)],
        },
        schema=SCHEMA,
    )


TERMS: dict[str, tuple[Any, list[str]]] = {
    "year(day)": (Year(), ["day"]),
    "month(day)": (Month(), ["day"]),
    "year(ts)": (Year(), ["ts"]),
    "month(ts)": (Month(), ["ts"]),
    "day(ts)": (Day(), ["ts"]),
    "hour(ts)": (Hour(), ["ts"]),
    "bucket(4, id)": (Bucket(4), ["id"]),
    "bucket(id, 4)": (Bucket(4), ["id"]),
    "multi_bucket(3, name, n)": (MultiBucket(3), ["name", "n"]),
    "truncate(2, name)": (Truncate(2), ["name"]),
    "truncate(n, 10)": (Truncate(10), ["n"]),
    "truncate(1, price)": (Truncate(1), ["price"]),
}
TESTS = {
    "=": lambda value, other: value == other,
    "<>": lambda value, other: value != other,
    "<": lambda value, other: value < other,
    ">=": lambda value, other: value >= other,
}


QUICK = ("hashes",)


@pytest.fixture(params=[pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in SPECS])
def table(request: Any, tmp_path: Path) -> Any:
    made = lp.create_table(tmp_path / "t", SCHEMA, SPECS[request.param])
    made.append(rows())
    return made


def literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def test_partition_functions_filter_as_they_compute(table: Any) -> None:
    data = rows()
    for text, (transform, columns) in TERMS.items():
        values = transform.apply([data.column(name).combine_chunks() for name in columns]).to_pylist()
        some = next(value for value in values[3:] if value is not None)
        for operator, holds in TESTS.items():
            expected = sum(value is not None and holds(value, some) for value in values)
            assert table.scan(f"{text} {operator} {literal(some)}").count() == expected, (text, operator, some)
        missing = values.count(None)
        assert table.scan(f"{text} IS NULL").count() == missing, text
        listed = f"{text} NOT IN ({literal(some)}) AND id >= 0"
        others = zip(values, data["id"].to_pylist(), strict=True)
        expected = sum(v is not None and v != some and i is not None for v, i in others)
        assert table.scan(listed).count() == expected, text


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        (["month(ts)"], "month(ts) = 3"),
        (["day(ts)"], "day(ts) IN (1, 30, 31)"),
        (["hour(ts)"], "hour(ts) > 20"),
        (["bucket(8, id)"], "bucket(8, id) = 5"),
        (["multi_bucket(8, name, n)"], "multi_bucket(8, name, n) < 2"),
        (["year(ts)"], "year(ts) = 1970"),
        (["year(ts)", "month(ts)", "day(ts)"], "year(ts) = 1970 AND month(ts) = 1"),
        (["truncate(2, name)"], "truncate(2, name) = 'ab'"),
        (["truncate(10, n)"], "truncate(10, n) = -10"),
        (["bucket(8, id)"], "bucket(8, id) IS NULL"),
    ],
)
def test_a_partition_field_of_the_same_function_is_pruned_exactly(tmp_path: Path, spec: list[str], where: str) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, spec)
    table.append(rows())

    kept = {leaf.object_id for leaf in table.scan(where).plan().leaves}

    everything = lp.open_table(tmp_path / "t").scan().plan().leaves
    holding = {leaf.object_id for leaf in everything if sum(batch.num_rows for batch in _rows_of(table, leaf, where))}
    assert kept == holding
    assert len(kept) < len(everything)


def _rows_of(table: Any, leaf: Any, where: str) -> Any:

    (task,) = [task for task in table.scan().tasks() if task.leaf.object_id == leaf.object_id]

    return reading.read(dataclasses.replace(task, predicate=parse(where, SCHEMA)))


@pytest.mark.slow
def test_partition_functions_delete_update_overwrite_and_join(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["bucket(4, id)", "month(ts)"])
    table.append(rows())
    before = table.scan().count()
    gone = table.scan("bucket(4, id) = 1 AND month(ts) <> 3").count()

    table.delete("bucket(4, id) = 1 AND month(ts) <> 3")
    table.update({"n": "99"}, "year(day) < 0")
    replaced = table.scan("hour(ts) = 5 OR truncate(1, name) = 'h'").to_arrow()
    table.overwrite(replaced, where="hour(ts) = 5 OR truncate(1, name) = 'h'")

    assert gone > 0
    assert table.scan().count() == before - gone
    assert table.scan("n = 99").count() == table.scan("year(day) < 0").count() > 0
    joined = table.join(table, on=["id"], how="full", where="bucket(4, id) <> 1 AND year(day_right) <= 1970")
    expected = table.scan("bucket(4, id) <> 1 AND year(day) <= 1970").count()
    assert joined.to_arrow().num_rows == expected > 0


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("yeer(day) = 2025", "there is no function 'yeer'; did you mean 'year'"),
        ("nosuch(id) = 1", "there is no function 'nosuch'"),
        ("year(id) = 2025", "year is not defined for columns of type int64"),
        ("hour(day) = 2", "hour is not defined for columns of type date32"),
        ("bucket(id) = 2", "bucket takes a whole number and a column"),
        ("bucket(0, id) = 2", "between 1 and"),
        ("year(day, ts) = 2", "exactly one column"),
        ("nam = 'a'", "did you mean 'name'"),
    ],
)
def test_a_wrong_function_or_column_is_named_with_others_like_it(where: str, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        parse(where, SCHEMA)


def test_functions_of_expressions_are_computed_and_never_prune(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", SCHEMA, ["bucket(4, id)"])
    table.append(rows())

    found = table.scan("bucket(4, id + 0) = 1 AND year(coalesce(day, DATE '2000-01-01')) + 1 > 1971")

    expected = table.scan("bucket(4, id) = 1 AND (year(day) > 1970 OR day IS NULL)").count()
    assert found.count() == expected > 0
    assert len(found.plan().leaves) == 5


NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.struct([("a", pa.int64()), ("B b", pa.string()), ("in.ner", pa.struct([("x", pa.int32())]))])),
        ("a.b", pa.int64()),
    ]
)


@pytest.mark.parametrize(
    "test",
    ["s.a = {0}", "s['a'] = {0}", "`s`.`a` = {0}", "s.\"B b\" = 'v{0}'", "s['in.ner']['x'] = {0}", '"a.b" = {0}'],
)
def test_fields_inside_structs_are_filtered_on(tmp_path: Path, test: str) -> None:
    table = lp.create_table(tmp_path / "t", NESTED, ["bucket(2, id)"])
    made = [{"id": n, "s": {"a": n, "B b": f"v{n}", "in.ner": {"x": n}}, "a.b": n} for n in range(6)]
    table.append(pa.Table.from_pylist([*made, {"id": 9, "s": None, "a.b": None}], NESTED))

    assert table.scan(test.format(3), columns=["id"]).to_arrow().to_pylist() == [{"id": 3}]
    assert table.scan(f"NOT ({test.format(3)})").count() == 5
    assert table.scan(f"({test.format(3)}) IS NULL").count() == 1
    table.update({"id": "id + 100"}, test.format(3))
    table.delete(test.format(4))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 5, 9, 103]


@pytest.fixture
def exact() -> Iterator[None]:
    with decimal.localcontext(prec=100):
        yield


def test_fields_inside_structs_are_projected(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", NESTED, ["bucket(2, id)"])
    made = [{"id": n, "s": {"a": n, "B b": f"v{n}", "in.ner": {"x": n}}, "a.b": n} for n in range(6)]
    table.append(pa.Table.from_pylist([*made, {"id": 9, "s": None, "a.b": None}], NESTED))

    found = table.scan("s.a > 3 OR s IS NULL", columns=["s.a", "s.`in.ner`.x", 's."B b"', "a.b"])

    assert found.to_arrow().sort_by("s.a").to_pylist() == [
        {"s.a": 4, "s.`in.ner`.x": 4, 's."B b"': "v4", "a.b": 4},
        {"s.a": 5, "s.`in.ner`.x": 5, 's."B b"': "v5", "a.b": 5},
        {"s.a": None, "s.`in.ner`.x": None, 's."B b"': None, "a.b": None},
    ]
    assert table.scan(columns=["s.a"], limit=2).to_arrow().num_rows == 2
    assert table.scan("id = 77", columns=["s.a"]).to_arrow().schema == pa.schema([("s.a", pa.int64())])
    with pytest.raises(TableColumnNotFoundError, match=r"'s\.z'"):
        table.scan(columns=["s.z"])


DECIMALS = {
    pa.decimal128(38, 18): "12345678901234567890.123456789012345678",
    pa.decimal128(38, 0): "12345678901234567890123456789012345678",
    pa.decimal128(20, 10): "1234567890.0123456789",
    pa.decimal128(5, 2): "123.45",
}


@pytest.mark.parametrize("kind", DECIMALS, ids=str)
def test_long_decimals_are_compared_digit_by_digit(tmp_path: Path, kind: Any, exact: None) -> None:
    step = Decimal(1).scaleb(-kind.scale)
    middle = Decimal(DECIMALS[kind])
    values = [middle - step, middle, middle + step, -middle, None]
    table = lp.create_table(tmp_path / "t", pa.schema([("d", kind), ("f", pa.float64())]), ["bucket(2, d)"])
    table.append(pa.table({"d": pa.array(values, kind), "f": [0.1, 0.30000000000000004, 1.5, 2.5, 3.5]}))
    half = Decimal("0.5").scaleb(-kind.scale)
    numbers = [
        middle,
        middle + half,
        -middle - half,
        Decimal(10) ** 37,
        -(Decimal(10) ** 37),
        Decimal("0.5"),
        Decimal(7),
    ]
    for number, (operator, holds) in itertools.product(numbers, TESTS.items()):
        text = f"{number:f}"
        if len(text.strip("-").replace(".", "").lstrip("0")) > 38:
            continue
        expected = sum(value is not None and holds(value, number) for value in values)
        assert table.scan(f"d {operator} {text}").count() == expected, (operator, text)
        mirrored = {"<": ">", ">=": "<="}.get(operator, operator)
        assert table.scan(f"{text} {mirrored} d").count() == expected, (operator, text)
    between = table.scan(f"d BETWEEN {middle - half:f} AND {middle + half:f}") if kind.precision < 38 else None
    assert between is None or between.count() == 1
    assert table.scan(f"d IN ({middle:f}, {middle + step:f})").count() == 2
    assert table.scan("f = 0.30000000000000004 AND d > 0.0").count() == 1


def test_a_number_of_more_digits_than_a_decimal_has_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="more than 38 digits"):
        parse(f"price + 1 > {'1' * 39}.5", SCHEMA)


def test_a_date_is_still_a_word_of_its_own() -> None:
    assert parse("extract(year FROM day) = 2024", SCHEMA) == parse("date_part('year', day) = 2024", SCHEMA)
