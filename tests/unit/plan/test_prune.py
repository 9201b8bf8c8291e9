from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lancepart.model.parse import parse
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.transforms import Bucket, Day, Hour, Identity, Month, MultiBucket, Transform, Truncate, Year
from lancepart.plan.formula import Some, formula
from lancepart.plan.image_memo import Images
from lancepart.plan.prune import Pruner
from lancepart.plan.transform_image import image

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("event_date", pa.date32()),
        ("country", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("f", pa.float64()),
        ("flag", pa.bool_()),
    ]
)
COLUMNS = dict(enumerate(SCHEMA))
NUMBERS = {field.name: number for number, field in COLUMNS.items()}


def field(transform: Transform, *names: str, field_id: str | None = None) -> PartitionField:
    result = transform.result_type([SCHEMA.field(name).type for name in names])
    ids = tuple(NUMBERS[name] for name in names)
    name = field_id or f"{'_'.join(names)}_{transform.name}"
    return PartitionField(field_id=name, source_ids=ids, transform=transform, result_type=result)


def expression(sql: str, result_type: Any, *names: str) -> PartitionField:
    ids = tuple(NUMBERS[name] for name in names)
    return PartitionField(field_id="e", source_ids=ids, expression=sql, result_type=result_type)


def spec(*fields: PartitionField) -> PartitionSpec:
    return PartitionSpec(id=1, fields=fields)


def pruner(where: str, *fields: PartitionField, columns: dict[int, Any] | None = None) -> Pruner:
    known = COLUMNS if columns is None else columns
    return Pruner.of(parse(where, pa.schema(list(known.values()))), spec(*fields), known)


def leaves(fields: tuple[PartitionField, ...], rows: list[tuple[Any, ...]]) -> Any:
    columns = [pa.array(values, each.result_type) for values, each in zip(zip(*rows, strict=True), fields, strict=True)]
    return pa.table(columns, names=[f"partition_field_{each.field_id}" for each in fields])


def kept(where: str, fields: tuple[PartitionField, ...], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    table = leaves(fields, rows)
    mask = pruner(where, *fields).keep(table)
    return [tuple(row.values()) for row in table.filter(mask).to_pylist()]


def one(where: str, transform: Transform, column: str, values: list[Any]) -> list[Any]:
    return [row[0] for row in kept(where, (field(transform, column),), [(value,) for value in values])]


V1 = (field(Identity(), "event_date", field_id="event_date"),)
V2 = (field(Year(), "event_date", field_id="event_year"), field(Identity(), "country", field_id="country"))
YMD = tuple(field(kind(), "ts") for kind in (Year, Month, Day))


def test_the_documents_example_is_pushed_as_it_stands_there() -> None:
    where = "event_date = '2025-12-10' AND country = 'US'"

    assert pruner(where, *V1).manifest_filter() == "partition_field_event_date = DATE '2025-12-10'"
    assert pruner(where, *V2).manifest_filter() == (
        "partition_field_event_year = 2025 AND partition_field_country = 'US'"
    )


def test_the_first_drafts_example_leaves_one_leaf() -> None:
    fields = (field(Identity(), "event_date"), field(Identity(), "country"))
    days = [date(2025, 12, 10), date(2025, 12, 11)]
    rows = [(days[0], "US"), (days[0], "CN"), (days[1], "US"), (days[1], "FR"), (days[1], None), (None, "US")]

    assert kept("event_date = '2025-12-11' AND country <> 'FR'", fields, rows) == [(days[1], "US")]


def test_a_range_within_a_day_leaves_that_day() -> None:
    where = "ts >= '2025-12-10T10:00:00Z' AND ts < '2025-12-11T00:00:00Z'"
    rows = [(2025, 12, day) for day in range(1, 32)] + [(2024, 12, 10), (2025, 11, 10), (None, None, None)]

    assert kept(where, YMD, rows) == [(2025, 12, 10)]
    assert pruner(where, *YMD).manifest_filter() == (
        "partition_field_ts_year = 2025 AND partition_field_ts_month = 12 AND partition_field_ts_day = 10"
    )


def test_a_range_across_new_year_is_right_without_the_year() -> None:
    where = "ts >= '2025-12-30T00:00:00Z' AND ts < '2026-01-02T00:00:00Z'"
    rows = [(month, day) for month in (1, 2, 12) for day in (1, 2, 29, 30, 31)]

    assert kept(where, YMD[1:], rows) == [(1, 1), (12, 30), (12, 31)]


def test_a_day_that_the_calendar_lacks_is_never_read() -> None:
    rows = [(2025, 2, 30), (2025, 2, 29), (2024, 2, 29), (2024, 2, 28)]

    assert kept("ts > '2000-01-01T00:00:00Z'", YMD, rows) == [(2024, 2, 29), (2024, 2, 28)]
    assert kept("ts > '2000-01-01T00:00:00Z'", YMD[1:], [(2, 29), (2, 30), (4, 31)]) == [(2, 29)]
    assert kept("ts BETWEEN '2025-01-01' AND '2027-12-31'", YMD[1:], [(2, 29), (2, 28)]) == [(2, 28)]


def test_hours_are_those_of_the_range_alone() -> None:
    fields = (field(Hour(), "ts"),)
    where = "ts > '2025-12-10T22:59:59.999999Z' AND ts < '2025-12-11T01:00:00Z'"

    assert [row[0] for row in kept(where, fields, [(hour,) for hour in range(24)])] == [0, 23]


def test_the_year_before_1970_and_the_last_day_of_the_calendar() -> None:
    assert one("event_date <= '1969-12-31'", Year(), "event_date", [1, 1969, 1970]) == [1, 1969]
    assert one("event_date = '9999-12-31'", Year(), "event_date", [9998, 9999]) == [9999]
    assert one("event_date = '0001-01-01'", Year(), "event_date", [1, 2]) == [1]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("n = 2", [2]),
        ("2 = n", [2]),
        ("n <> 2", [1, 3]),
        ("n < 2", [1]),
        ("n <= 2", [1, 2]),
        ("n > 2", [3]),
        ("n >= 2", [2, 3]),
        ("n BETWEEN 2 AND 3", [2, 3]),
        ("n NOT BETWEEN 2 AND 3", [1]),
        ("n IN (1, 3)", [1, 3]),
        ("n IN (1, NULL)", [1]),
        ("n NOT IN (1, 3)", [2]),
        ("n NOT IN (1, NULL)", []),
        ("n IS NULL", [None]),
        ("n IS NOT NULL", [1, 2, 3]),
        ("n IS DISTINCT FROM 2", [1, 3, None]),
        ("n IS NOT DISTINCT FROM NULL", [None]),
        ("NOT (n < 2)", [2, 3]),
        ("(n < 2) IS NOT TRUE", [2, 3, None]),
        ("(n < 2) IS UNKNOWN", [None]),
        ("n > 1.5", [2, 3]),
        ("n = 1.5", []),
        ("n = 2.0", [2]),
        ("n < 5000000000", [1, 2, 3]),
        ("n = 1 OR n = 3", [1, 3]),
        ("n = 1 AND id = 5", [1]),
        ("n = 1 OR id = 5", [1, 2, 3, None]),
        ("n % 2 = 1", [1, 2, 3, None]),
        ("n % 2 = 1 AND n > 1", [2, 3]),
        ("true", [1, 2, 3, None]),
        ("false", []),
    ],
)
def test_identity_follows_every_operator(where: str, expected: list[Any]) -> None:
    assert one(where, Identity(), "n", [1, 2, 3, None]) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("flag", [True]),
        ("NOT flag", [False]),
        ("flag IS NOT TRUE", [False, None]),
        ("flag = false", [False]),
        ("flag IS NULL", [None]),
        ("flag > false", [True]),
    ],
)
def test_boolean_columns_are_filters_of_their_own(where: str, expected: list[Any]) -> None:
    assert one(where, Identity(), "flag", [True, False, None]) == expected


def test_floats_with_one_zero_and_one_nan() -> None:
    nan = float("nan")
    values = [nan, float("inf"), 0.0, 1.0, None]

    assert one("f >= 0.0", Identity(), "f", values[1:]) == [float("inf"), 0.0, 1.0]
    assert one("f = -0.0", Identity(), "f", values) == [0.0]
    assert one("f > 1", Identity(), "f", values)[1:] == [float("inf")]
    assert len(one("f > 1", Identity(), "f", values)) == 2
    assert len(one("f = CAST('NaN' AS DOUBLE)", Identity(), "f", values)) == 1


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("n > 125", [120, 130]),
        ("n > 129", [130]),
        ("n = 7", [0]),
        ("n = -7", [0]),
        ("n < -9", [-20, -10]),
        ("n < -19", [-20]),
        ("n BETWEEN -9 AND 9", [0]),
        ("n = 10", [10]),
        ("n = -10", [-10]),
        ("n IS NULL", [None]),
        ("n IN (121, -11)", [-10, 120]),
        ("n <> 0", [-20, -10, 0, 10, 120, 130]),
    ],
)
def test_truncated_numbers_reach_both_ways_around_zero(where: str, expected: list[Any]) -> None:
    assert one(where, Truncate(width=10), "n", [-20, -10, 0, 10, 120, 130, None]) == expected


def test_truncated_decimals_go_by_their_scale() -> None:
    values = [Decimal("-10.00"), Decimal("0.00"), Decimal("10.00")]

    assert one("price = 9.99", Truncate(width=10), "price", values) == [Decimal("0.00")]
    assert one("price >= 19.99", Truncate(width=10), "price", values) == [Decimal("10.00")]
    assert one("price < -9.999", Truncate(width=10), "price", values) == [Decimal("-10.00")]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("country LIKE 'ab%'", ["ab", "abc", "abd"]),
        ("country LIKE 'abcd%'", ["abc"]),
        ("country LIKE 'ab'", ["ab"]),
        ("country LIKE 'a_c%'", ["a", "ab", "abc", "abd"]),
        ("country LIKE '%c'", ["", "a", "ab", "abc", "abd", "\U0010ffff", None]),
        ("starts_with(country, 'abd')", ["abd"]),
        ("country = 'abcdef'", ["abc"]),
        ("country > 'abcz'", ["abc", "abd", "\U0010ffff"]),
        ("country < 'abc'", ["", "a", "ab"]),
        ("country <= 'abc'", ["", "a", "ab", "abc"]),
        ("country LIKE '\U0010ffff%'", ["\U0010ffff"]),
        ("country IS NULL", [None]),
        ("country NOT LIKE 'a%'", ["", "\U0010ffff"]),
    ],
)
def test_truncated_texts_follow_prefixes(where: str, expected: list[Any]) -> None:
    values = ["", "a", "ab", "abc", "abd", "\U0010ffff", None]
    assert one(where, Truncate(width=3), "country", values) == expected


def test_a_bucket_is_found_by_value_and_null_by_null() -> None:
    bucket = Bucket(num_buckets=16)
    values = [*range(16), None]

    assert one("id = 34", bucket, "id", values) == [3]
    assert one("id IN (34, 1)", bucket, "id", values) == sorted(bucket.apply([pa.array([34, 1])]).to_pylist())
    assert one("id IS NULL", bucket, "id", values) == [None]
    assert one("id > 5", bucket, "id", values) == list(range(16))
    assert one("id = 34 OR id IS NULL", bucket, "id", values) == [3, None]


def test_several_columns_in_one_bucket() -> None:
    fields = (field(MultiBucket(num_buckets=8), "id", "country"),)
    rows = [(number,) for number in [*range(8), None]]
    (expected,) = MultiBucket(num_buckets=8).apply([pa.array([1]), pa.array(["a"])]).to_pylist()

    assert kept("id = 1 AND country = 'a'", fields, rows) == [(expected,)]
    assert kept("id IS NULL AND country IS NULL", fields, rows) == [(None,)]
    assert kept("id = 1", fields, rows) == rows[:-1]
    assert kept("id IS NULL", fields, rows) == rows


def test_a_column_known_from_the_leaf_helps_a_bucket_over_several() -> None:
    fields = (field(Identity(), "country"), field(MultiBucket(num_buckets=8), "id", "country"))
    rows = [(country, number) for country in ("a", "b", None) for number in range(8)]
    expected = MultiBucket(num_buckets=8).apply([pa.array([1, 1, 1]), pa.array(["a", "b", None])]).to_pylist()

    assert kept("id = 1", fields, rows) == list(zip(["a", "b", None], expected, strict=True))


@pytest.mark.parametrize(
    ("where", "expected"),
    [("id = 10", [3]), ("id IN (10, 11)", [3, 4]), ("id BETWEEN 7 AND 8", [0, 1]), ("id > 0", [*range(7), None])],
)
def test_an_expression_is_evaluated_for_the_values_asked_for(where: str, expected: list[Any]) -> None:
    fields = (expression("col0 % 7", pa.int64(), "id"),)
    assert [row[0] for row in kept(where, fields, [(value,) for value in [*range(7), None]])] == expected


def test_fields_over_one_column_rule_a_leaf_out_together() -> None:
    fields = (field(Year(), "event_date"), field(Bucket(num_buckets=50), "event_date"))
    (bucket,) = Bucket(num_buckets=50).apply([pa.array([date(2024, 12, 31)])]).to_pylist()
    rows = [(2024, number) for number in range(50)]

    assert kept("event_date >= '2024-12-31'", fields, rows) == [(2024, bucket)]


@pytest.mark.parametrize("where", ["n = 1 AND n = 2", "n > 2147483647", "id = 1 AND false", "n = 1 AND n IS NULL"])
def test_a_filter_that_nothing_can_match_reads_nothing(where: str) -> None:
    found = pruner(where, field(Identity(), "n"))

    assert found.matches_nothing
    assert found.manifest_filter() == "false"
    assert not any(found.keep(leaves((field(Identity(), "n"),), [(1,), (None,)])).to_pylist())
    assert found.explain() == ["the filter matches no row: nothing is read"]


@pytest.mark.slow
def test_too_many_alternatives_are_followed_without_losing_any() -> None:
    fields = (field(Identity(), "n"), field(Identity(), "country"))
    where = " OR ".join(f"(n = {number} AND country = 'c{number}')" for number in range(200))
    rows = [(number, f"c{number}") for number in range(0, 400, 7)]

    found = pruner(where, *fields)

    assert found.choices is None
    assert kept(where, fields, rows) == [row for row in rows if row[0] < 200]
    assert found.manifest_filter() is not None


@pytest.mark.slow
def test_a_function_is_computed_once_for_all_alternatives(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = (field(Bucket(16), "n"), field(Identity(), "country"))
    calls: list[int] = []
    apply = PartitionField.apply
    monkeypatch.setattr(
        PartitionField, "apply", lambda self, arrays: (calls.append(len(arrays[0])), apply(self, arrays))[1]
    )
    where = " OR ".join(f"(n = {number} AND country = 'c{number}')" for number in range(3000))

    found = pruner(where, *fields)
    found.explain()
    found.manifest_filter()
    found.keep(leaves(fields, [(1, "c1"), (None, None)]))

    assert calls == [3000]


@pytest.mark.parametrize(
    ("each", "tests"),
    [
        (field(Bucket(16), "n"), ["n = 7", "n IN (1, 2, 3)", "n IS NULL", "n = 7 OR n IS NULL", "n > 3", "n < 100"]),
        (field(Bucket(4), "f"), ["f = 0.0", "f = -0.0", "f = 'NaN'", "f IN (1.5, 2.5)", "f > 1"]),
        (field(Bucket(4), "country"), ["country = 'a'", "country LIKE 'a%'", "country = ''", "country IS NULL"]),
        (expression("col0 % 10", pa.int64(), "n"), ["n = 7", "n = 27 OR n = 17", "n IS NULL", "n BETWEEN 1 AND 30"]),
    ],
    ids=["numbers", "floats", "texts", "expression"],
)
def test_images_that_are_computed_together_are_those_computed_alone(each: PartitionField, tests: list[str]) -> None:
    types = {column.name: column.type for column in SCHEMA}
    asked = [formula(parse(test, SCHEMA), types) for test in tests]
    together = Images.of_filter(Some(parts=tuple(asked)), [each], COLUMNS)
    (name,) = asked[0].domains

    for every in asked:
        domain = every.domains[name]
        assert together.image(each, domain, each.result_type) == image(each, [domain], each.result_type)


def test_a_removed_source_leaves_everything() -> None:
    left = {number: column for number, column in COLUMNS.items() if column.name != "country"}
    fields = (field(MultiBucket(num_buckets=8), "id", "country"), field(Identity(), "country"))
    found = pruner("id = 1", *fields, columns=left)

    assert found.manifest_filter() == "partition_field_id_country_multi_bucket IS NOT NULL"
    assert found.keep(leaves(fields, [(1, "a"), (2, None), (None, "a")])).to_pylist() == [True, True, False]
    assert all("removed" in line for line in found.explain())


def test_a_renamed_column_prunes_by_its_new_name() -> None:
    renamed = {**COLUMNS, NUMBERS["event_date"]: pa.field("day", pa.date32())}

    assert pruner("day = '2025-12-10'", *V1, columns=renamed).manifest_filter() == (
        "partition_field_event_date = DATE '2025-12-10'"
    )


def test_a_widened_column_finds_partitions_made_before() -> None:
    widened = {
        **COLUMNS,
        NUMBERS["n"]: pa.field("n", pa.int64()),
        NUMBERS["price"]: pa.field("price", pa.decimal128(20, 2)),
    }
    fields = (field(Identity(), "n"), field(Identity(), "price"))
    table = leaves(fields, [(1, Decimal("1.50")), (2, Decimal("2.50"))])

    assert pruner("n = 1", *fields, columns=widened).keep(table).to_pylist() == [True, False]
    assert pruner("n < 5000000000", *fields, columns=widened).keep(table).to_pylist() == [True, True]
    assert pruner("price > 1.5", *fields, columns=widened).keep(table).to_pylist() == [False, True]


def test_explain_says_what_is_pushed_and_what_cannot_be() -> None:
    fields = (field(Identity(), "n"), field(Bucket(num_buckets=4), "id"), field(Year(), "ts"))

    assert pruner("n = 1 AND id > 5", *fields).explain() == [
        "n_identity: partition_field_n_identity = 1",
        "id_bucket: partition_field_id_bucket IS NOT NULL; bucket prunes only on equality, IN and short ranges",
        "ts_year: not pruned, the filter asks nothing of ts that could prune",
    ]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("country <> 'FR'", "partition_field_country <> 'FR'"),
        ("country NOT IN ('FR', 'US')", "partition_field_country NOT IN ('FR', 'US')"),
        ("country IN ('FR', 'US')", "partition_field_country IN ('FR', 'US')"),
        ("country IS NOT NULL", "partition_field_country IS NOT NULL"),
        ("country = 'FR' OR country IS NULL", "(partition_field_country = 'FR' OR partition_field_country IS NULL)"),
        ("country LIKE 'it''s%'", "(partition_field_country >= 'it''s' AND partition_field_country < 'it''t')"),
        ("country > 'a' AND country <= 'b'", "(partition_field_country > 'a' AND partition_field_country <= 'b')"),
        ("event_date < '2025-03-01'", "partition_field_event_year <= 2025"),
        (
            "country = 'a' OR event_date = '2025-03-01'",
            "(partition_field_country = 'a') OR (partition_field_event_year = 2025)",
        ),
        ("id = 1", None),
    ],
)
def test_the_pushed_filter_is_simple(where: str, expected: str | None) -> None:
    assert pruner(where, *V2).manifest_filter() == expected


ODD_ID = field(Identity(), "country", field_id="Län`s".replace("`", "'"))
PUSHED = [
    ("n > 5 OR n IS NULL", field(Identity(), "n"), [1, 6, None]),
    ("country LIKE 'it''s%'", ODD_ID, ["it's", "it's so", "x", None]),
    ("f > 1", field(Identity(), "f"), [float("nan"), 0.0, 2.0, None]),
    ("f < 0.5", field(Identity(), "f"), [float("nan"), 0.0, 2.0, None]),
    ("f <= -0.0", field(Identity(), "f"), [0.0, -1.0, 1.0, None]),
    ("f IS NOT NULL", field(Identity(), "f"), [float("nan"), 0.0, None]),
    ("price = 1.5", field(Identity(), "price"), [Decimal("1.50"), Decimal("2.00"), None]),
    ("ts < '2025-01-01'", field(Identity(), "ts"), [datetime(2024, 1, 1), datetime(2025, 1, 1), None]),
    ("flag", field(Identity(), "flag"), [True, False, None]),
    ("ts < '2025-01-01'", field(Year(), "ts"), [2024, 2025, None]),
    ("id = 34", field(Bucket(num_buckets=16), "id"), [3, 4, None]),
]


@pytest.mark.parametrize(("where", "part", "values"), PUSHED, ids=[row[0] for row in PUSHED])
@pytest.mark.parametrize("indexed", [False, True])
def test_lance_keeps_with_the_pushed_filter_what_the_exact_test_keeps(
    where: str, part: PartitionField, values: list[Any], indexed: bool, tmp_path: Path
) -> None:
    table = leaves((part,), [(value,) for value in values])
    manifest = lance.write_dataset(table, str(tmp_path / "m.lance"))
    if indexed:
        manifest.create_scalar_index(table.column_names[0], "BTREE")
    found = pruner(where, part)

    pushed = manifest.to_table(filter=found.manifest_filter())

    assert str(pushed.to_pylist()) == str(table.filter(found.keep(table)).to_pylist())
